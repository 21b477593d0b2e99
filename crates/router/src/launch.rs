//! A router to run, as the command line describes it.

use flashweir_config::{Overrides, RouterConfig};
use flashweir_runtime::ReadyFile;
use std::path::PathBuf;

/// A router to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The checked configuration.
    pub config: RouterConfig,
    /// The file it came from: read again on SIGHUP.
    pub config_file: Option<PathBuf>,
    /// The flags that win over the file, at every reload too.
    pub overrides: Overrides,
    /// The file that says where its admin listener is, once it guards.
    pub ready_file: Option<ReadyFile>,
}

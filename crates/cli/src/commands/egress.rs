//! `flashweir egress`.

use crate::{logging, ready_file};
use flashweir_config::Log;
use flashweir_egress::Config;
use std::path::PathBuf;

/// Send a process's requests on, no more than the called services ask for: a sidecar for processes that know
/// nothing of it.
///
/// The process connects to a listener instead of the service, or uses it as its HTTP proxy. When a service
/// asks for less (the response field Flashweir-Overload), more important requests go first, some wait for a
/// moment, and the rest is answered here, at once. SIGTERM and SIGINT end it in order; SIGHUP reads the files
/// of keys again.
#[derive(Debug, clap::Args)]
pub(crate) struct EgressArgs {
    /// The configuration file (TOML), described in docs/egress.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only check the file, and the files of keys and certificates that it names.
    #[arg(long)]
    check: bool,
    /// Write where it listens into FILE, as JSON, once it does; for supervisors, and with port 0.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl EgressArgs {
    /// Checks the configuration, then serves until a signal.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        if self.check {
            return Ok(());
        }
        let ready_file = ready_file::prepare(self.ready_file)?;
        logging::start(&Log::default());
        Ok(flashweir_egress::run(config, ready_file, env!("CARGO_PKG_VERSION"))?)
    }
}

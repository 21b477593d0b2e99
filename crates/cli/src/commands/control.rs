//! `flashweir control`.

use crate::logging;
use flashweir_config::{Log, LogFormat, LogLevel};
use flashweir_control::Config;
use std::path::PathBuf;

/// Order servers by what a gateway refuses: start and stop copies of a command, or tell another program how many.
///
/// Reads what the gateway was offered, admitted and refused every few seconds, and plans servers for the demand, refused requests
/// included. The copies stop with it, by SIGTERM or SIGINT; the gateway does without it.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlArgs {
    /// The configuration file (TOML), described in docs/control.md.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl ControlArgs {
    /// Checks the configuration, then controls until a signal.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.config)?;
        logging::start(&Log { level: LogLevel::Info, format: LogFormat::Text });
        Ok(flashweir_control::run(config)?)
    }
}

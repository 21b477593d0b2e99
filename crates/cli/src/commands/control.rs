//! `flashweir control`.

use crate::{kubernetes, logging, ready_file};
use flashweir_config::Log;
use flashweir_control::Config;
use std::path::PathBuf;

/// Order servers by what a gateway refuses: copies of a command, another program's servers, or workloads of
/// Kubernetes.
///
/// Reads what gateways were offered, admitted and refused every few seconds, and plans servers for the
/// demand, refused requests included. With --config the copies stop with it, by SIGTERM or SIGINT; with
/// --kubernetes replicas stay as they are. Gateways do without it.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlArgs {
    /// The configuration file (TOML), described in docs/control.md.
    #[arg(long, value_name = "FILE", required_unless_present = "kubernetes", conflicts_with = "kubernetes")]
    config: Option<PathBuf>,
    /// Write where its metrics are into FILE, as JSON, once they are; with --config.
    #[arg(long, value_name = "FILE", conflicts_with = "kubernetes")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    kubernetes: kubernetes::ControllerArgs,
}

impl ControlArgs {
    /// Checks what was given, then controls until a signal.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let log = Log::default();
        // The parser has seen that there is one of the two.
        let Some(file) = self.config.filter(|_| !self.kubernetes.kubernetes) else {
            return self.kubernetes.run(&log);
        };
        let config = Config::load(&file)?;
        let ready_file = ready_file::prepare(self.ready_file)?;
        logging::start(&log);
        Ok(flashweir_control::run(config, ready_file)?)
    }
}

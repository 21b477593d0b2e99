//! `flashweir demo-chain`.

use crate::demo::chain::{self, Options};
use flashweir_config::command::numbers::within;
use std::path::PathBuf;

/// Send the same crowd through a caller's sidecar and an overloaded gateway, without and with the gateway's
/// feedback to the sidecar.
///
/// Starts an origin that does real work, a gateway before it and a sidecar (`flashweir egress`) before that.
/// In the first visit of the crowd the gateway refuses what is too much; in the second it asks the sidecar
/// for less (docs/feedback.md). Then people come who need three calls each, through two gateways, again
/// without and with. Takes a minute and a half, uses only loopback, and leaves a report in its own directory.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoChainArgs {
    /// Draws when people arrive: the same seed is the same crowd.
    #[arg(long, value_name = "N", default_value_t = 1998)]
    seed: u64,
    /// Where report.html and data.json go.
    #[arg(long, value_name = "DIR", default_value = "flashweir-demo-chain")]
    out: PathBuf,
    /// Print the numbers alone on stdout, as JSON; progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// The crowd, in multiples of the origin's measured capacity (0.1 to 20).
    #[arg(long, value_name = "X", default_value_t = 2.25, value_parser = within(0.1, 20.0))]
    crowd_multiple: f64,
    /// Processor time the origin spends on each request, milliseconds (1 to 1000).
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = within(1.0, 1000.0))]
    origin_ms: f64,
}

impl DemoChainArgs {
    /// Runs the demo.
    ///
    /// # Errors
    /// As [`chain::run`].
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { seed, out, json, crowd_multiple, origin_ms } = self;
        chain::run(&Options { seed, out, json, crowd_multiple, origin_ms })
    }
}

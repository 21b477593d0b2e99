//! `flashweir demo`.

use crate::demo::{self, Options};
use flashweir_config::command::numbers::within;
use std::path::PathBuf;

/// Send the same crowd at a service twice, without and with Flashweir, and show what becomes of it.
///
/// Starts an origin that does real work, measures how much it can do, and sends it the semi-final of the 1998
/// World Cup squeezed into half a minute, first straight and then through `flashweir run` with nothing tuned.
/// Takes a minute and a half, uses only loopback, and leaves a report in its own directory.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Draws when people arrive: the same seed is the same crowd.
    #[arg(long, value_name = "N", default_value_t = 1998)]
    seed: u64,
    /// Where report.html, data.json and series.csv go.
    #[arg(long, value_name = "DIR", default_value = "flashweir-demo")]
    out: PathBuf,
    /// Print the numbers alone on stdout, as JSON; progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// Print plain lines even on a terminal.
    #[arg(long)]
    plain: bool,
    /// The crowd's busiest moment, in multiples of the origin's measured capacity (0.1 to 20).
    #[arg(long, value_name = "X", default_value_t = 5.0, value_parser = within(0.1, 20.0))]
    crowd_multiple: f64,
    /// Processor time the origin spends on each request, milliseconds (1 to 1000).
    #[arg(long, value_name = "MS", default_value_t = 5.0, value_parser = within(1.0, 1000.0))]
    origin_ms: f64,
}

impl DemoArgs {
    /// Runs the demo.
    ///
    /// # Errors
    /// As [`demo::run`].
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { seed, out, json, plain, crowd_multiple, origin_ms } = self;
        demo::run(&Options { seed, out, json, plain, crowd_multiple, origin_ms })
    }
}

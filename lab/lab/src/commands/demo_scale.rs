//! `flashweir demo-scale`.

use crate::demo::numbers_only::Choices;
use crate::demo::scale;
use flashweir_config::command::numbers::within;
use std::path::PathBuf;

/// Send a crowd at a service that grows with it: people are refused for seconds, servers come, no more are
/// refused, servers go.
///
/// Starts a gateway, and `flashweir control`, which starts and stops real processes as servers. Takes two
/// minutes, uses only loopback.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoScaleArgs {
    /// Draws when people arrive: the same seed is the same crowd.
    #[arg(long, value_name = "N", default_value_t = 1998)]
    seed: u64,
    /// Where scale.json and the children's logs go.
    #[arg(long, value_name = "DIR", default_value = "flashweir-demo")]
    out: PathBuf,
    /// Print the numbers as JSON.
    #[arg(long)]
    json: bool,
    /// The crowd, in multiples of one server's capacity (0.1 to 6).
    #[arg(long, value_name = "X", default_value_t = 4.0, value_parser = within(0.1, 6.0))]
    multiple: f64,
}

impl DemoScaleArgs {
    /// Runs it.
    ///
    /// # Errors
    /// As [`scale::run`].
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { seed, out, json, multiple } = self;
        scale::run(&Choices { seed, out, json, multiple, always_caches: false })
    }
}

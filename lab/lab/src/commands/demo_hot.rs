//! `flashweir demo-hot`.

use crate::demo::hot;
use crate::demo::numbers_only::Choices;
use flashweir_config::command::numbers::within;
use std::path::PathBuf;

/// Send a crowd that wants one page at a service: without Flashweir, with admission, with admission and the
/// cache, and with a grace for a page that no cache may keep.
///
/// Starts an origin that does real work, measures how much it can do, and asks it for one page at fifty times
/// that, while others want something else of it. Takes a minute and a quarter, uses only loopback.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoHotArgs {
    /// Draws when people arrive: the same seed is the same crowd.
    #[arg(long, value_name = "N", default_value_t = 1998)]
    seed: u64,
    /// Where hot.json and the children's logs go.
    #[arg(long, value_name = "DIR", default_value = "flashweir-demo")]
    out: PathBuf,
    /// Print the numbers as JSON.
    #[arg(long)]
    json: bool,
    /// The crowd, in multiples of the origin's measured capacity (0.1 to 100).
    #[arg(long, value_name = "X", default_value_t = 50.0, value_parser = within(0.1, 100.0))]
    multiple: f64,
    /// Use the cache before the crowd comes, too: `cache.mode = "always"` in place of `"crowd"`.
    #[arg(long)]
    cache_always: bool,
}

impl DemoHotArgs {
    /// Runs it.
    ///
    /// # Errors
    /// As [`hot::run`].
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { seed, out, json, multiple, cache_always } = self;
        hot::run(&Choices { seed, out, json, multiple, always_caches: cache_always })
    }
}

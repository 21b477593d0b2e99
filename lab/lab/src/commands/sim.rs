//! `flashweir sim`.

mod csv;
mod json;
mod judge;
mod judged;
mod network_charts;
mod network_csv;
mod page;
mod progress;
mod swarm;
mod table;
mod whatif;

use std::path::PathBuf;
use whatif::WhatIfArgs;

/// Try a policy in virtual time, before deploying it.
///
/// A scenario FILE says who comes and what they do, who serves them, who lets them in, what goes wrong, and
/// within which ranges the statistics have to lie; docs/simulator.md is the manual. Gate and planner are the
/// gateway's own. The same file and seed are the same run on every machine.
///
/// With --whatif a recorded log is sent against the policy of a configuration file instead: what would have
/// been refused, and when. With --swarm random scenarios look for trouble in the simulator and the
/// controllers themselves.
///
/// Exit codes: 0 done, 1 a range was missed or a run failed, 64 wrong usage or a wrong scenario.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("what").args(["file", "whatif", "swarm"]).required(true))]
pub(crate) struct SimArgs {
    /// The scenario: TOML.
    file: Option<PathBuf>,
    /// Run N seeds, one a core at a time [default: as the file says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "file")]
    seeds: Option<u32>,
    /// The first seed [default: as the file says, or 1].
    #[arg(long, value_name = "N", conflicts_with = "whatif")]
    seed: Option<u64>,
    /// Put a value in place of what the file says, like `controller.mode=none` or `class[0].work=exp:9ms`;
    /// may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "file")]
    settings: Vec<String>,
    /// Write tables (CSV), charts (SVG) and a report (HTML) to a directory, which is made if it is not there.
    ///
    /// Of a swarm: the scenarios that failed.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the result as JSON on stdout, instead of the table.
    #[arg(long, conflicts_with = "swarm")]
    json: bool,
    #[command(flatten)]
    whatif: WhatIfArgs,
    /// Run N random scenarios, each of a seed from --seed on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(flashweir_core::limits::SCENARIO_SEEDS)))]
    swarm: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  Does the policy hold a crowd, and what would happen without it?
    flashweir sim scenarios/crowd.toml
    flashweir sim scenarios/crowd.toml --set controller.mode=none --out without
  Twenty seeds for narrower intervals:
    flashweir sim scenarios/retry_storm.toml --seeds 20
  Whom would this configuration have refused yesterday, had four times as many come?
    flashweir sim --whatif access.log --config flashweir.toml --scale 4 --service-ms 20 --workers 4
  A thousand random scenarios:
    flashweir sim --swarm 1000";

impl SimArgs {
    /// Runs it.
    ///
    /// # Errors
    /// A scenario that cannot be run as written, a run that meets a bound, ranges that are missed, results
    /// that cannot be written.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(count) = self.swarm {
            return swarm::run(count, self.seed.unwrap_or(1), self.out.as_deref());
        }
        match &self.file {
            Some(file) => judge::run(&self, file),
            None => self.whatif.run(self.out.as_deref(), self.json),
        }
    }
}

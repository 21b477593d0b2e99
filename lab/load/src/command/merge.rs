//! `flashweir load merge`.

use super::ending::EndingArgs;
use super::{assertion, result_file};
use crate::LoadResult;
use anyhow::Context as _;
use flashweir_config::command::exit::UsageError;
use flashweir_core::limits::LOAD_RESULTS_MERGED;
use std::path::PathBuf;

/// Add the results of shards to that of the whole run.
///
/// Each shard sent its part of one schedule (`--shard I/N --start-at TIME`) and wrote its result (`--out
/// FILE`). Counts and histograms add exactly; percentiles, ratios and the recovery are computed again from
/// the sums, as if one machine had sent everything. Results of other runs (another URL, seed or length) and
/// shards given twice are refused; a shard that is missing is reported.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct MergeArgs {
    /// Results of shards, as `--out` wrote them, in any order.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    ending: EndingArgs,
}

const EXAMPLE: &str = "\
Example, on two machines and then on one:
  flashweir load http://10.0.0.1/ --rate 2000 --shard 1/2 --start-at 2026-11-21T20:00:00Z --out one.json
  flashweir load http://10.0.0.1/ --rate 2000 --shard 2/2 --start-at 2026-11-21T20:00:00Z --out two.json
  flashweir load merge one.json two.json --html run.html --assert 'p99 < 500ms'";

impl MergeArgs {
    /// Reads, adds, and hands the sum over.
    ///
    /// # Errors
    /// Files that cannot be read or added; what handing over can meet.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.files.len() > LOAD_RESULTS_MERGED {
            let message =
                format!("at most {LOAD_RESULTS_MERGED} results are merged, not {}", self.files.len());
            return Err(UsageError::new(message).into());
        }
        self.ending.check_places()?;
        let mut results = Vec::with_capacity(self.files.len());
        for file in &self.files {
            results.push(result_file::read(file)?);
        }
        let merged = crate::merge(&results).context("the results cannot be added")?;
        let classes: Vec<_> = merged.classes.keys().map(String::as_str).collect();
        assertion::check(&self.ending.assertions, &classes, merged.crowd.is_some())
            .map_err(UsageError::new)?;
        missing(&merged).iter().for_each(|line| eprintln!("{line}"));
        self.ending.deliver(&merged)
    }
}

/// A line for each shard that is not there, but not for thousands of them.
fn missing(merged: &LoadResult) -> Vec<String> {
    const LINES: u64 = 16;
    let shards = &merged.run.shards;
    // All are of one division, or they would not have been added.
    let Some(count) = shards.first().and_then(|shard| shard.split_once('/')?.1.parse::<u64>().ok()) else {
        return Vec::new();
    };
    let is_missing = |shard: &String| !shards.contains(shard);
    // More shards than results merged: some are missing for certain, and counting on would tell nothing more.
    let candidates =
        (1..=count.min(LOAD_RESULTS_MERGED as u64 + LINES)).map(|index| format!("{index}/{count}"));
    let line = |shard: String| format!("shard {shard} is missing: the sum is not the whole run");
    let mut lines: Vec<_> = candidates.filter(is_missing).take(LINES as usize).map(line).collect();
    let more = count.saturating_sub(shards.len() as u64 + lines.len() as u64);
    if more > 0 {
        lines.push(format!("{more} more shards are missing"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;

    fn missing_of(shards: &[&str]) -> Vec<String> {
        let mut result = sample::result();
        result.run.shards = shards.iter().map(|shard| (*shard).to_owned()).collect();
        missing(&result)
    }

    #[test]
    fn missing_shards_are_told_by_number() {
        assert!(missing_of(&["1/1"]).is_empty() && missing_of(&["2/2", "1/2"]).is_empty());
        let gap = missing_of(&["1/3", "3/3"]);
        assert_eq!(gap, ["shard 2/3 is missing: the sum is not the whole run"]);
        let many = missing_of(&["7/5000"]);
        assert_eq!((many.len(), many[16].as_str()), (17, "4983 more shards are missing"));
    }
}

//! Tables for other tools: the statistics of each seed, and what happened bin by bin.

use super::judged::Judged;
use anyhow::Context as _;
use csv::{Terminator, Writer, WriterBuilder};
use flashweir_load::command::file;
use flashweir_sim::request::{Counts, RunOutcome};
use std::path::Path;

/// Writes `statistics.csv` and `series.csv`: RFC 4180, CRLF as there.
///
/// # Errors
/// A file that cannot be written, by its name.
pub(super) fn write(judged: &Judged<'_>, directory: &Path) -> anyhow::Result<()> {
    put(&directory.join("statistics.csv"), &statistics(judged)?)?;
    put(&directory.join("series.csv"), &series(judged)?)
}

/// Writes a file whole or not at all.
pub(super) fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    file::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

/// A table in memory.
pub(super) fn table() -> Writer<Vec<u8>> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new())
}

/// The table as text.
pub(super) fn text(table: Writer<Vec<u8>>) -> anyhow::Result<String> {
    Ok(String::from_utf8(table.into_inner()?)?)
}

fn statistics(judged: &Judged<'_>) -> anyhow::Result<String> {
    let mut table = table();
    let seeds = judged.scenario.seeds();
    let head = ["statistic", "meaning", "mean", "half_width_95", "accepted", "ok"].map(str::to_owned);
    table.write_record(head.into_iter().chain(seeds.iter().map(|seed| format!("seed_{seed}"))))?;
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for line in &judged.sheet.lines {
        let cells = [
            line.name(),
            line.statistic.meaning.to_owned(),
            number(line.summary.map(|summary| summary.mean)),
            number(line.summary.and_then(|summary| summary.half_width)),
            line.accepted.as_ref().map(ToString::to_string).unwrap_or_default(),
            line.is_ok().map(|ok| ok.to_string()).unwrap_or_default(),
        ];
        table.write_record(cells.into_iter().chain(line.values.iter().map(|value| number(*value))))?;
    }
    text(table)
}

const COUNTS: [&str; 11] = [
    "offered",
    "unique_offered",
    "admitted",
    "shed",
    "completed",
    "goodput",
    "refused",
    "timed_out",
    "abandoned",
    "broken",
    "mean_latency_ms",
];

fn series(judged: &Judged<'_>) -> anyhow::Result<String> {
    let mut table = table();
    table.write_record(["seed", "from_s", "class"].into_iter().chain(COUNTS))?;
    for (seed, outcome) in judged.scenario.seeds().into_iter().zip(&judged.outcomes) {
        for (from_s, class, counts) in bins(outcome) {
            let cells = [seed.to_string(), from_s.to_string(), class.to_owned()];
            table.write_record(cells.into_iter().chain(cells_of(counts)))?;
        }
    }
    text(table)
}

fn bins(outcome: &RunOutcome) -> impl Iterator<Item = (f64, &str, &Counts)> {
    let bin_s = outcome.bin.as_secs_f64();
    outcome.classes.iter().flat_map(move |class| {
        class
            .bins
            .iter()
            .enumerate()
            .map(move |(place, counts)| (place as f64 * bin_s, class.name.as_str(), counts))
    })
}

fn cells_of(counts: &Counts) -> [String; 11] {
    let mean = counts.mean_latency_s().map(|seconds| (seconds * 1e3).to_string()).unwrap_or_default();
    let number = |count: u64| count.to_string();
    [
        number(counts.offered),
        number(counts.unique_offered),
        number(counts.admitted),
        number(counts.shed_total()),
        number(counts.completed),
        number(counts.goodput),
        number(counts.refused),
        number(counts.timed_out),
        number(counts.abandoned),
        number(counts.broken),
        mean,
    ]
}

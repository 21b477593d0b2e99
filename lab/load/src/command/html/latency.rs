//! Latency: over time, and its distribution over the whole run.

use super::text::{NOTHING, count, digits};
use super::timeline::{SECONDS, Timeline};
use crate::report::{Chart, Figure, HeatMap, Hue, ReportError, Section, Series, Table};
use crate::{LoadResult, Percentiles, Tally};
use anyhow::Context;
use flashweir_core::measure::histogram::Sparse;

const US_PER_MS: f64 = 1e3;

/// The section.
pub(super) fn section(result: &LoadResult, time: &Timeline) -> anyhow::Result<Section> {
    let totals = &result.totals;
    Ok(Section::new("How long people waited")
        .text(
            "Latency counts from the moment at which a try was to begin, so that a generator or a server that \
             falls behind cannot hide it. Tries that timed out or were abandoned have no latency: where many did, \
             the worst is not in these pictures but in the ledger. A line that cannot be seen lies below another.",
        )
        .table(points(totals))
        .figure(over_time(result, time)?)
        .figure(heat_map(totals, time)?)
        .figure(percentiles(totals)?)
        .figure(cumulative(totals)?))
}

fn points(totals: &Tally) -> Table {
    let columns = ["milliseconds", "measured", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    [
        ("latency of completed tries", &totals.latency_ms),
        ("time to first byte of completed tries", &totals.ttfb_ms),
        ("latency of refused tries", &totals.refusal_ms),
        ("first try to whole answer, waits included", &totals.served_ms),
    ]
    .into_iter()
    .fold(Table::new("Points of the distributions", columns), |table, (name, points)| {
        table.row(name, cells(points))
    })
}

/// The cells of one distribution.
pub(super) fn cells(points: &Percentiles) -> Vec<String> {
    let values = [points.mean, points.p50, points.p90, points.p99, points.p999, points.p9999, points.max];
    let values = values.map(|value| value.map_or_else(|| NOTHING.to_owned(), digits));
    [count(points.count)].into_iter().chain(values).collect()
}

fn over_time(result: &LoadResult, time: &Timeline) -> Result<Figure, ReportError> {
    let series = &result.totals.series;
    let chart = time
        .chart("Latency of completed tries", "milliseconds")
        .log_scale()
        .series(Series::line("p99", Hue::Blue, time.points(series, |second| second.latency_p99_ms)))
        .series(Series::line("median", Hue::Green, time.points(series, |second| second.latency_p50_ms)));
    let chart = match result.recovery {
        Some(recovery) => chart.reference("longest p99 before the crowd", Hue::Ink, recovery.p99_before_ms),
        None => chart,
    };
    chart.figure()
}

fn heat_map(totals: &Tally, time: &Timeline) -> anyhow::Result<Figure> {
    let (from_s, to_s) = time.range();
    let mut map = HeatMap::new("Latency of every completed try", SECONDS, "milliseconds", "tries")
        .x_range(from_s, to_s);
    for second in &totals.series {
        let sparse = Sparse::from_pairs(second.latency_buckets.iter().copied())
            .with_context(|| format!("series, second {}: latency_buckets", second.second))?;
        let (from_s, to_s) = time.bin(second);
        let cells = sparse
            .buckets()
            .map(|bucket| (bucket.low as f64 / US_PER_MS, bucket.high as f64 / US_PER_MS, bucket.count));
        map = map.column(from_s, to_s, cells);
    }
    Ok(map.figure()?)
}

fn percentiles(totals: &Tally) -> Result<Figure, ReportError> {
    let chart = Chart::new(
        "Percentiles: how slow the slowest were",
        "share of tries that were at most so slow",
        "milliseconds",
    );
    distributions(totals)
        .into_iter()
        .fold(chart.log_scale().nines_x(), |chart, (name, hue, pairs)| {
            chart.series(Series::percentiles(name, hue, milliseconds(pairs)))
        })
        .figure()
}

fn cumulative(totals: &Tally) -> Result<Figure, ReportError> {
    let chart = Chart::new("Cumulative distribution", "milliseconds", "% that took at most so long");
    distributions(totals)
        .into_iter()
        .fold(chart.log_x(), |chart, (name, hue, pairs)| {
            chart.series(Series::cumulative(name, hue, milliseconds(pairs)))
        })
        .figure()
}

/// The name and colour of a line, and the values (microseconds) it is made of with how often each was seen.
type Line<'a> = (&'static str, Hue, &'a [(u64, u64)]);

/// The distributions worth a line: those with something in them, each by itself. Refusals are quick and many,
/// and would make any server look fast if they were counted with the answers.
fn distributions(totals: &Tally) -> Vec<Line<'_>> {
    let histograms = &totals.histograms;
    let mut lines: Vec<Line<'_>> = vec![
        ("time to first byte", Hue::Sky, &histograms.ttfb_us),
        ("completed", Hue::Blue, &histograms.latency_us),
        ("refused", Hue::Amber, &histograms.refusal_us),
    ];
    // Without retries it is the same line.
    if histograms.served_us != histograms.latency_us {
        lines.push(("first try to whole answer", Hue::Green, &histograms.served_us));
    }
    lines.retain(|(.., pairs)| !pairs.is_empty());
    lines
}

/// Below a microsecond is a microsecond: a logarithm has no place for nothing.
fn milliseconds(pairs: &[(u64, u64)]) -> impl Iterator<Item = (f64, u64)> {
    pairs.iter().map(|&(us, count)| (us.max(1) as f64 / US_PER_MS, count))
}

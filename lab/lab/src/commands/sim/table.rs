//! The statistics as a table for people.

use super::judged::Judged;
use crate::scenario::{Line, Scope, Summary, Unit};
use std::fmt::Write as _;

/// Statistics of windows and classes that are shown even if no range asks for them.
const OF_PARTS: [&str; 6] =
    ["goodput_rps", "goodput_ratio", "shed_ratio", "useful_ratio", "retry_amplification", "p99_ms"];

/// The table, with a line below that says whether all is as it should be.
pub(super) fn text(judged: &Judged<'_>) -> String {
    let rows: Vec<[String; 5]> = judged.sheet.lines.iter().filter(|line| is_shown(line)).map(row).collect();
    let head = ["statistic", "mean", "95 % interval", "accepted", ""].map(str::to_owned);
    let widths: Vec<usize> = (0..head.len())
        .map(|place| rows.iter().chain([&head]).map(|row| row[place].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = format!("{}\n\n", heading(judged));
    for row in [&head].into_iter().chain(&rows) {
        let [name, mean, interval, accepted, verdict] = row;
        let line = format!(
            "{name:<0$}  {mean:>1$}  {interval:>2$}  {accepted:<3$}  {verdict}",
            widths[0], widths[1], widths[2], widths[3]
        );
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(text, "\n{}", verdict(judged));
    text
}

/// Scenario and seeds of the runs.
pub(super) fn heading(judged: &Judged<'_>) -> String {
    let seeds = judged.scenario.seeds();
    let title = if judged.scenario.title().is_empty() { &judged.file } else { judged.scenario.title() };
    let (first, last) = (seeds.first().copied().unwrap_or(0), seeds.last().copied().unwrap_or(0));
    let which = if first == last { format!("seed {first}") } else { format!("seeds {first} to {last}") };
    format!("{title}: {:.0} s, {which}", judged.scenario.length().as_secs_f64())
}

/// Verdict on the accepted ranges, in words.
pub(super) fn verdict(judged: &Judged<'_>) -> String {
    let ranges = judged.sheet.lines.iter().filter(|line| line.accepted.is_some()).count();
    let missed = judged.sheet.missed().count();
    match (ranges, missed) {
        (0, _) => "no range is to be met".to_owned(),
        (_, 0) => format!("ok: all {ranges} ranges are met"),
        _ => format!("MISSED: {missed} of {ranges} ranges"),
    }
}

/// Returns whether a line is for people: all of the whole run and of the network, and the most telling of
/// windows and classes.
pub(super) fn is_shown(line: &Line) -> bool {
    let is_of_people = matches!(line.scope, Scope::Window(_) | Scope::Class(_));
    !is_of_people || line.accepted.is_some() || OF_PARTS.contains(&line.statistic.name)
}

/// Name, mean, interval, range and verdict.
pub(super) fn row(line: &Line) -> [String; 5] {
    let unit = line.statistic.unit;
    let mean = line.summary.map_or_else(|| "-".to_owned(), |summary| written(summary.mean, unit));
    let interval = line.summary.and_then(|summary| interval(summary, unit)).unwrap_or_default();
    let accepted = line.accepted.as_ref().map(ToString::to_string).unwrap_or_default();
    let verdict = match line.is_ok() {
        Some(true) => "ok",
        Some(false) if line.summary.is_none() => "MISSED: nothing to measure in some run",
        Some(false) => "MISSED",
        None => "",
    };
    [line.name(), mean, interval, accepted, verdict.to_owned()]
}

fn interval(summary: Summary, unit: Unit) -> Option<String> {
    summary.half_width.map(|half| format!("± {}", written(half, unit)))
}

/// With the digits that matter; the unit is in the name.
fn written(value: f64, unit: Unit) -> String {
    let decimals = match unit {
        Unit::Count => 0,
        Unit::Share => 4,
        Unit::PerSecond | Unit::Milliseconds | Unit::KilobitsPerSecond => 1,
        Unit::Factor => 3,
    };
    flashweir_load::report::number(value, decimals)
}

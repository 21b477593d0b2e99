//! The classes beside one another.

use super::ledger;
use super::text::{NOTHING, count, digits, share};
use super::timeline::Timeline;
use crate::report::{ReportError, Section, Table};
use crate::{LoadResult, Tally};

/// More ledgers below one another are not compared any more, only scrolled past; the table has all classes.
const LEDGERS_MOST: usize = 8;

const COUNTS: [&str; 9] =
    ["class", "requests", "tries", "goodput", "of requests", "refused", "timed out", "abandoned", "errors"];
const WAITS: [&str; 8] =
    ["milliseconds", "p50", "p90", "p99", "p99.9", "max", "first byte p99", "refused p99"];

/// The section; `None` when all people were of one class, of whom everything has been said.
pub(super) fn section(result: &LoadResult, time: &Timeline) -> Result<Option<Section>, ReportError> {
    if result.classes.len() < 2 {
        return Ok(None);
    }
    let mut section = Section::new("Class by class")
        .table(table(result, Table::new("What became of each class", COUNTS), counts))
        .text("How long they waited:")
        .table(table(
            result,
            Table::new("Latency of completed tries; in the last column of refused ones", WAITS),
            waits,
        ));
    if result.classes.len() > LEDGERS_MOST {
        return Ok(Some(
            section
                .text(format!("More than {LEDGERS_MOST} classes: their ledgers over time are in the JSON.")),
        ));
    }
    for (name, tally) in &result.classes {
        section = section.figure(ledger::stack(&format!("Ledger of {name}"), tally, time)?);
    }
    Ok(Some(section))
}

/// A row for each class, and one for all together.
fn table(result: &LoadResult, empty: Table, cells: fn(&Tally) -> Vec<String>) -> Table {
    let table = result.classes.iter().fold(empty, |table, (name, tally)| table.row(name, cells(tally)));
    table.row("everybody", cells(&result.totals))
}

fn counts(tally: &Tally) -> Vec<String> {
    let others = [tally.refused, tally.timed_out, tally.abandoned, tally.errors];
    [count(tally.unique_offered), count(tally.offered), count(tally.goodput)]
        .into_iter()
        .chain([share(tally.goodput, tally.unique_offered)])
        .chain(others.map(count))
        .collect()
}

fn waits(tally: &Tally) -> Vec<String> {
    let latency = &tally.latency_ms;
    [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p999,
        latency.max,
        tally.ttfb_ms.p99,
        tally.refusal_ms.p99,
    ]
    .map(|value| value.map_or_else(|| NOTHING.to_owned(), digits))
    .into()
}

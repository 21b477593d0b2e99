//! Outcome of every try: the ledger over time, the rates, and the tables of refusals and errors.

use super::text::{count, plural, share};
use super::timeline::Timeline;
use crate::report::{Chart, Figure, Hue, ReportError, Section, Series, Table};
use crate::{LoadResult, Second, Tally};

/// The name and colour of an outcome, and how many tries of a second had it.
type Layer = (&'static str, Hue, fn(&Second) -> u64);

/// The layers of the stack, lowest first. Together they are all tries that had an outcome.
const LAYERS: [Layer; 6] = [
    ("goodput", Hue::Green, |second| second.goodput),
    ("late: completed after the target", Hue::Sky, |second| second.completed.saturating_sub(second.goodput)),
    ("refused", Hue::Amber, |second| second.refused),
    ("timed out", Hue::Purple, |second| second.timed_out),
    ("abandoned", Hue::Grey, |second| second.abandoned),
    ("errors", Hue::Vermillion, |second| second.errors),
];

/// The ledger of all classes.
pub(super) fn section(result: &LoadResult, time: &Timeline) -> Result<Section, ReportError> {
    let totals = &result.totals;
    let mut section = Section::new("What became of every try").text(
        "Each try counts in the second in which it was to begin, so that what is stacked there adds up to what was \
         offered.",
    );
    if let Some(note) = time.note() {
        section = section.text(note);
    }
    if totals.in_flight > 0 {
        section = section.text(format!(
            "{} had no outcome when the run ended; by so much the stack stays below the line.",
            plural(totals.in_flight, "try", "tries")
        ));
    }
    section =
        section.figure(stack("Ledger", totals, time)?).table(outcomes(totals)).figure(rates(totals, time)?);
    Ok(match details(totals) {
        Some(details) => section.table(details),
        None => section,
    })
}

/// A ledger over time: outcomes stacked, what was offered as a line above them.
pub(super) fn stack(title: &str, tally: &Tally, time: &Timeline) -> Result<Figure, ReportError> {
    let chart = time.chart(title, "tries/s");
    let chart =
        LAYERS.into_iter().filter(|layer| occurs(layer, tally)).fold(chart, |chart, (name, hue, of)| {
            chart.stacked(Series::area(name, hue, time.rates(&tally.series, of)))
        });
    chart
        .series(Series::line("offered", Hue::Ink, time.rates(&tally.series, |second| second.offered)))
        .figure()
}

/// The same as lines: what came, and what came of it.
fn rates(totals: &Tally, time: &Timeline) -> Result<Figure, ReportError> {
    let rates = |of: fn(&Second) -> u64| time.rates(&totals.series, of);
    let chart = time.chart("Rates", "per second").series(Series::area(
        "offered (tries)",
        Hue::Grey,
        rates(|second| second.offered),
    ));
    // Without retries it is the same line.
    let chart = if totals.offered == totals.unique_offered {
        chart
    } else {
        chart.series(Series::line(
            "unique offered (requests)",
            Hue::Ink,
            rates(|second| second.unique_offered),
        ))
    };
    added(chart, totals, time)
        .series(Series::line("goodput", Hue::Green, rates(|second| second.goodput)))
        .figure()
}

/// The lines that only some runs have.
fn added(chart: Chart, totals: &Tally, time: &Timeline) -> Chart {
    let lines: [Layer; 3] = [
        ("refused", Hue::Amber, |second| second.refused),
        ("timed out", Hue::Purple, |second| second.timed_out),
        ("completed", Hue::Blue, |second| second.completed),
    ];
    lines.into_iter().filter(|layer| occurs(layer, totals)).fold(chart, |chart, (name, hue, of)| {
        chart.series(Series::line(name, hue, time.rates(&totals.series, of)))
    })
}

/// Returns whether any try had this outcome.
fn occurs((.., of): &Layer, tally: &Tally) -> bool {
    tally.series.iter().any(|second| of(second) > 0)
}

/// The ledger of the whole run; it adds up.
fn outcomes(totals: &Tally) -> Table {
    let table =
        Table::new("The whole run: the outcomes add up to what was offered.", ["", "tries", "of all tries"]);
    [
        ("offered", totals.offered),
        ("completed", totals.completed),
        ("completed within the target (goodput)", totals.goodput),
        ("refused", totals.refused),
        ("timed out", totals.timed_out),
        ("abandoned", totals.abandoned),
        ("errors", totals.errors),
        ("in flight", totals.in_flight),
    ]
    .into_iter()
    .fold(table, |table, (name, tries)| table.row(name, [count(tries), share(tries, totals.offered)]))
}

/// Reasons of refusals and kinds of errors; `None` without either.
fn details(totals: &Tally) -> Option<Table> {
    let reasons = totals.refused_by_reason.iter().map(|(reason, &tries)| match reason.as_str() {
        "other" => ("refused by another program than Flashweir".to_owned(), tries),
        reason => (format!("refused by Flashweir: {reason}"), tries),
    });
    let statuses = totals
        .refused_by_status
        .iter()
        .map(|(status, &tries)| (format!("refused with status {status}"), tries));
    let errors = totals.errors_by_kind.iter().map(|(kind, &tries)| (format!("error: {kind}"), tries));
    let rows: Vec<(String, u64)> = reasons.chain(statuses).chain(errors).collect();
    let table = Table::new(
        "Refusals by reason and again by status, and errors by kind",
        ["", "tries", "of all tries"],
    );
    (!rows.is_empty()).then(|| {
        rows.into_iter()
            .fold(table, |table, (name, tries)| table.row(name, [count(tries), share(tries, totals.offered)]))
    })
}

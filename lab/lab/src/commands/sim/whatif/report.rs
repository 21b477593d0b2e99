//! The charts of a recorded log, and the page that holds them.

use super::refusals::{Refusals, clock, number, percent};
use crate::commands::sim::csv::put;
use flashweir_load::report::{Chart, Figure, Hue, KeyFigure, Page, Point, Section, Series, Table, Tone};
use flashweir_sim::request::Counts;
use std::path::Path;

/// Rows of a table of the page; all are in the files beside it.
const ROWS: usize = 40;

/// Writes `report.html`, and its charts as `requests.svg` and `refused.svg`.
///
/// # Errors
/// A file that cannot be written, by its name.
pub(super) fn write(refusals: &Refusals<'_>, directory: &Path) -> anyhow::Result<()> {
    let (requests, refused) = (requests(refusals)?, refused(refusals)?);
    put(&directory.join("requests.svg"), &requests.standalone()?)?;
    put(&directory.join("refused.svg"), &refused.standalone()?)?;
    put(&directory.join("report.html"), &page(refusals, requests, refused)?)
}

fn page(refusals: &Refusals<'_>, requests: Figure, refused: Figure) -> anyhow::Result<String> {
    let totals = refusals.outcome.totals();
    let shed = totals.shed_total();
    let tone = if shed == 0 { Tone::Good } else { Tone::Bad };
    let figures = [
        KeyFigure::new("requests", number(totals.offered)),
        KeyFigure::new("refused", number(shed)).note(percent(shed, totals.offered)).tone(tone),
        KeyFigure::new("completed", number(totals.completed)),
        KeyFigure::new("gave up waiting", number(totals.timed_out)),
    ];
    let stretches = refusals.stretches().filter(|(_, counts)| counts.shed_total() > 0).take(ROWS).fold(
        Table::new("When", ["from", "offered", "refused", "part"]),
        |table, (from_s, counts)| {
            let shed = counts.shed_total();
            table.row(clock(from_s), [number(counts.offered), number(shed), percent(shed, counts.offered)])
        },
    );
    let documents = refusals.refused_documents().into_iter().take(ROWS).fold(
        Table::new("Which documents", ["document", "offered", "refused", "part"]),
        |table, class| {
            let (offered, shed) = (class.totals.offered, class.totals.shed_total());
            table.row(class.name.as_str(), [number(offered), number(shed), percent(shed, offered)])
        },
    );
    let mut page = Page::new("What this configuration would have refused", refusals.summary())
        .section(Section::new("In short").text(refusals.assumption.as_str()).key_figures(figures))
        .section(Section::new("Over time").figure(requests).figure(refused));
    if shed > 0 {
        page = page.section(Section::new("Who was refused").table(stretches).table(documents));
    }
    let page = page.footer(
        "flashweir sim --whatif, in virtual time. See docs/simulator.md for what the models leave out.",
    );
    Ok(page.html()?)
}

fn requests(refusals: &Refusals<'_>) -> anyhow::Result<Figure> {
    let chart = Chart::new("Requests", Axis::of(refusals).label, "a second")
        .x_range(0.0, Axis::of(refusals).length)
        .series(Series::area("offered", Hue::Grey, rates(refusals, |counts| counts.offered)))
        .series(Series::line("completed", Hue::Green, rates(refusals, |counts| counts.completed)))
        .series(Series::line("gave up waiting", Hue::Vermillion, rates(refusals, |counts| counts.timed_out)));
    Ok(chart.figure()?)
}

fn refused(refusals: &Refusals<'_>) -> anyhow::Result<Figure> {
    let part = |(from_s, counts): (u64, Counts)| {
        let part = (counts.offered > 0).then(|| 100.0 * counts.shed_total() as f64 / counts.offered as f64);
        (Axis::of(refusals).middle(refusals, from_s), part)
    };
    let chart = Chart::new("Refused of the requests", Axis::of(refusals).label, "%")
        .x_range(0.0, Axis::of(refusals).length)
        .series(Series::line("refused", Hue::Vermillion, refusals.stretches().map(part).collect()));
    Ok(chart.y_at_least(1.0).figure()?)
}

fn rates(refusals: &Refusals<'_>, part: fn(&Counts) -> u64) -> Vec<Point> {
    let bin_s = refusals.outcome.bin.as_secs_f64();
    let rate = |(from_s, counts): (u64, Counts)| {
        (Axis::of(refusals).middle(refusals, from_s), Some(part(&counts) as f64 / bin_s))
    };
    refusals.stretches().map(rate).collect()
}

/// Minutes of short logs, hours of long ones.
struct Axis {
    label: &'static str,
    unit_s: f64,
    length: f64,
}

impl Axis {
    fn of(refusals: &Refusals<'_>) -> Self {
        let length_s = refusals.crowd.length.as_secs_f64();
        let (label, unit_s) = if length_s < 3.0 * 3_600.0 {
            ("minutes since the log begins", 60.0)
        } else {
            ("hours since the log begins", 3_600.0)
        };
        Self { label, unit_s, length: length_s / unit_s }
    }

    /// The middle of a stretch.
    fn middle(&self, refusals: &Refusals<'_>, from_s: u64) -> f64 {
        (from_s as f64 + refusals.outcome.bin.as_secs_f64() / 2.0) / self.unit_s
    }
}

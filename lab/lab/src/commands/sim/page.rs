//! Charts and the report: one page of HTML that needs nothing else.

use super::csv::put;
use super::judged::Judged;
use super::network_charts::{self, Figures};
use super::table;
use crate::scenario::Statistic;
use flashweir_load::report::{Chart, Figure, Hue, KeyFigure, Page, Section, Series, Table, Tone};
use flashweir_sim::request::Counts;
use std::path::Path;

/// Writes `report.html`, and its charts as `rates.svg`, `latency.svg` and `server.svg`; of a network that has
/// packets also as `loss.svg`, `utilization.svg`, `transfers.svg` and `router.svg`.
///
/// # Errors
/// A file that cannot be written, by its name.
pub(super) fn write(judged: &Judged<'_>, directory: &Path) -> anyhow::Result<()> {
    let people = vec![
        ("rates.svg", rates(judged)?),
        ("latency.svg", latency(judged)?),
        ("server.svg", server(judged)?),
    ];
    let network = network_charts::figures(judged)?;
    for (name, figure) in people.iter().chain(&network) {
        put(&directory.join(name), &figure.standalone()?)?;
    }
    put(&directory.join("report.html"), &page(judged, people, network)?)
}

fn page(judged: &Judged<'_>, people: Figures, network: Figures) -> anyhow::Result<String> {
    let lines = judged.sheet.lines.iter().filter(|line| table::is_shown(line));
    let columns = ["statistic", "mean", "95 % interval", "accepted", "verdict"];
    let statistics = lines.fold(Table::new("Statistics over all seeds", columns), |statistics, line| {
        let [name, cells @ ..] = table::row(line);
        statistics.row(name, cells)
    });
    let is_used = |name| judged.sheet.lines.iter().any(|line| line.statistic.name == name);
    let words = Statistic::all().iter().filter(|statistic| is_used(statistic.name));
    let words = words.fold(Table::new("Words", ["statistic", "what it is"]), |words, statistic| {
        words.row(statistic.name, [statistic.meaning])
    });
    let mut overview = Section::new("What was found");
    if !judged.sheet.is_accepted() {
        overview = overview.warning(table::verdict(judged));
    }
    let judged_lines = judged.sheet.lines.iter().filter(|line| line.accepted.is_some()).take(KEY_FIGURES);
    let overview = overview.key_figures(judged_lines.map(|line| {
        let [name, mean, _, accepted, _] = table::row(line);
        let tone = if line.is_ok() == Some(true) { Tone::Good } else { Tone::Bad };
        KeyFigure::new(name, mean).note(format!("accepted: {accepted}")).tone(tone)
    }));
    let seeds = judged.scenario.seeds().len();
    let over_time = people.into_iter().fold(
        Section::new("Over time")
            .text(format!("Means over {seeds} seeds. Tries are counted where they began.")),
        |section, (_, figure)| section.figure(figure),
    );
    let mut page =
        Page::new(table::heading(judged), table::verdict(judged)).section(overview).section(over_time);
    if !network.is_empty() {
        let section = Section::new("The network").text(network_charts::legend(judged));
        page = page.section(network.into_iter().fold(section, |section, (_, figure)| section.figure(figure)));
    }
    let page = page.section(Section::new("All numbers").table(statistics).table(words)).footer(format!(
        "flashweir sim {}, in virtual time. See docs/simulator.md for what the models leave out.",
        judged.file
    ));
    Ok(page.html()?)
}

/// More would not be read.
const KEY_FIGURES: usize = 6;

fn rates(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let bin_s = judged.bin_s();
    let rate = |part: fn(&Counts) -> u64| {
        judged.over_time(move |outcome, place| {
            Some(part(&outcome.began_within(place..place + 1)) as f64 / bin_s)
        })
    };
    let mut chart = Chart::new("What became of the crowd", "seconds", "a second")
        .series(Series::area("offered (tries)", Hue::Grey, rate(|counts| counts.offered)))
        .series(Series::line("unique offered", Hue::Ink, rate(|counts| counts.unique_offered)))
        .series(Series::line("admitted", Hue::Blue, rate(|counts| counts.admitted)))
        .series(Series::line("goodput", Hue::Green, rate(|counts| counts.goodput)));
    for window in judged.scenario.windows() {
        chart = chart.band(&window.name, window.from.as_secs_f64(), window.to.as_secs_f64());
    }
    Ok(chart.x_range(0.0, judged.scenario.length().as_secs_f64()).figure()?)
}

fn latency(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let mean_ms = judged.over_time(|outcome, place| {
        outcome.began_within(place..place + 1).mean_latency_s().map(|seconds| seconds * 1e3)
    });
    let chart = Chart::new("Mean latency of the completed", "seconds", "ms")
        .series(Series::line("mean latency", Hue::Blue, mean_ms))
        .x_range(0.0, judged.scenario.length().as_secs_f64());
    Ok(chart.figure()?)
}

fn server(judged: &Judged<'_>) -> anyhow::Result<Figure> {
    let level = |part: fn(flashweir_sim::request::MeanLevel) -> f64| {
        judged.over_time(move |outcome, place| {
            (place < outcome.levels.len()).then(|| part(outcome.mean_level(place..place + 1)))
        })
    };
    let chart = Chart::new("The server", "seconds", "requests")
        .series(Series::line("waiting", Hue::Vermillion, level(|level| level.waiting)))
        .series(Series::line("in service", Hue::Blue, level(|level| level.in_service)))
        .x_range(0.0, judged.scenario.length().as_secs_f64());
    Ok(chart.figure()?)
}

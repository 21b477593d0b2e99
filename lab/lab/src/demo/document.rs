//! The HTML report: the numbers, then the pictures that explain them.

use crate::demo::outcome::VisitOutcome;
use crate::demo::verdicts::{Sighting, stretches};
use crate::demo::{PATIENCE, PROTECTED, Story, TARGET, UNPROTECTED, table};
use flashweir_load::Second;
use flashweir_load::report::{
    Chart, Figure, Hue, Page, Point, ReportError, Section, Series, Span, Strip, Table,
};

const SECONDS: &str = "seconds since the first person was due";

/// The whole document.
pub(crate) fn html(story: &Story) -> Result<String, ReportError> {
    Page::new("The same crowd twice", lead(story))
        .section(in_numbers(story))
        .section(
            Section::new("How many came, and how many were served in time")
                .text(
                    "Both pictures show the same people coming at the same moments. People above the dashed \
                     line cannot be served, whatever one does; the question is what becomes of the others.",
                )
                .figure(rates(story, UNPROTECTED, &story.unprotected.load.totals.series)?)
                .figure(rates(story, PROTECTED, &story.protected.load.totals.series)?),
        )
        .section(
            Section::new("How long those served had to wait")
                .text(format!(
                    "From the moment a person came to the end of the answer; the scale is logarithmic. Those who \
                     gave up after {} s are not in it: where a line ends, nobody was served any more.",
                    PATIENCE.as_secs()
                ))
                .figure(latency(story)?),
        )
        .section(
            Section::new("What Flashweir saw and did").figure(verdict(story)?).figure(limit(story)?),
        )
        .footer(footer(story))
        .html()
}

/// People let in of those who came in one second: all people not refused and not failed.
pub(crate) fn admitted(second: &Second) -> u64 {
    second.offered.saturating_sub(second.refused + second.errors)
}

fn lead(story: &Story) -> String {
    let percent =
        |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0));
    let numbers = &story.numbers;
    format!(
        "A service that can answer {:.0} requests a second met a crowd of up to {:.0} a second. On its own it kept \
         {} of its capacity for people still waiting; behind Flashweir, {}.",
        numbers.capacity_rps,
        numbers.capacity_rps * story.options.crowd_multiple,
        percent(numbers.unprotected.goodput_ratio),
        percent(numbers.protected.outcome.goodput_ratio),
    )
}

fn in_numbers(story: &Story) -> Section {
    let section = Section::new("In numbers").table(numbers(story)).text(
        "Useful is the share of the origin's time that went into answers in time while the crowd was there: the time in \
         which it was busy, or could have been but waited for the processor, over the time that passed; times the answers \
         that people got in time over all that it completed, also for people who had left.",
    );
    table::notes(&story.numbers).into_iter().fold(section, |section, note| section.text(note))
}

fn numbers(story: &Story) -> Table {
    let caption = format!(
        "Goodput: answers within {} s. Crowd: the time in which more people come than can be served.",
        TARGET.as_secs()
    );
    let empty = Table::new(caption, table::COLUMNS);
    table::rows(&story.numbers)
        .into_iter()
        .fold(empty, |table, [name, before, after]| table.row(name, [before, after]))
}

fn rates(story: &Story, name: &str, seconds: &[Second]) -> Result<Figure, ReportError> {
    let numbers = &story.numbers;
    let outcome = if name == PROTECTED { &numbers.protected.outcome } else { &numbers.unprotected };
    let chart = base(story, format!("Requests {name}"), "requests/s")
        .y_at_least(story.numbers.capacity_rps * story.options.crowd_multiple)
        .series(Series::area("offered", Hue::Grey, points(story, seconds, |s| Some(s.offered as f64))))
        .series(Series::line("admitted", Hue::Blue, points(story, seconds, |s| Some(admitted(s) as f64))))
        .series(Series::line("goodput", Hue::Green, points(story, seconds, |s| Some(s.goodput as f64))))
        .reference(capacity_name(outcome), Hue::Vermillion, outcome.capacity_rps);
    let chart = if name == PROTECTED { moments(story, chart) } else { chart };
    chart.figure()
}

fn latency(story: &Story) -> Result<Figure, ReportError> {
    let (before, after) = (&story.unprotected.load.totals.series, &story.protected.load.totals.series);
    let named = |percentile: &str, visit: &str| format!("{percentile} {visit}");
    base(story, "Latency of completed requests".to_owned(), "milliseconds")
        .log_scale()
        .series(Series::line(
            named("median", UNPROTECTED),
            Hue::Amber,
            points(story, before, |s| s.latency_p50_ms),
        ))
        .series(Series::line(
            named("p99", UNPROTECTED),
            Hue::Vermillion,
            points(story, before, |s| s.latency_p99_ms),
        ))
        .series(Series::line(
            named("median", PROTECTED),
            Hue::Sky,
            points(story, after, |s| s.latency_p50_ms),
        ))
        .series(Series::line(named("p99", PROTECTED), Hue::Blue, points(story, after, |s| s.latency_p99_ms)))
        .reference(format!("target {} s", TARGET.as_secs()), Hue::Ink, TARGET.as_secs_f64() * 1e3)
        .figure()
}

fn verdict(story: &Story) -> Result<Figure, ReportError> {
    let sightings = &story.protected.sightings;
    let spans = |state: fn(&Sighting) -> &str| {
        let span = |(range, state): (std::ops::Range<std::time::Duration>, &str)| Span {
            from: range.start.as_secs_f64(),
            to: range.end.as_secs_f64(),
            state: state.replace('_', " "),
            hue: hue(state),
        };
        stretches(sightings, state).into_iter().map(span).collect()
    };
    Strip::new("Verdict", SECONDS, (0.0, story.crowd.length().as_secs_f64()))
        .row("mode", spans(|sighting| &sighting.mode))
        .row("cause", spans(|sighting| &sighting.cause))
        .figure()
}

fn limit(story: &Story) -> Result<Figure, ReportError> {
    let sightings = story.protected.sightings.iter();
    let limit =
        sightings.map(|sighting| (sighting.at.as_secs_f64(), sighting.limit.map(|limit| limit as f64)));
    let title = "How many requests the origin was given at once, as learned".to_owned();
    let chart = base(story, title, "requests").series(Series::step("limit", Hue::Purple, limit.collect()));
    moments(story, chart).figure()
}

/// A chart over the demo's time with the crowd shaded.
fn base(story: &Story, title: String, y_label: &str) -> Chart {
    let chart = Chart::new(title, SECONDS, y_label).x_range(0.0, story.crowd.length().as_secs_f64());
    match &story.crowd.overload {
        Some(crowd) => {
            chart.band("more people than capacity", crowd.start.as_secs_f64(), crowd.end.as_secs_f64())
        }
        None => chart,
    }
}

/// Marks when protection began and when the limit was gone.
fn moments(story: &Story, mut chart: Chart) -> Chart {
    let Some(crowd) = &story.crowd.overload else { return chart };
    if let Some(delay) = story.numbers.protected.protect_delay_s {
        chart = chart.marker(format!("protected after {delay:.2} s"), crowd.start.as_secs_f64() + delay);
    }
    if let Some(delay) = story.numbers.protected.release_delay_s {
        chart = chart.marker(format!("released after {delay:.2} s"), crowd.end.as_secs_f64() + delay);
    }
    chart
}

/// A value for each second, drawn at its middle. A last second that the crowd did not fill would look like a
/// fall.
fn points(story: &Story, seconds: &[Second], value: impl Fn(&Second) -> Option<f64>) -> Vec<Point> {
    let filled = |second: &&Second| second.second < story.crowd.length().as_secs();
    seconds.iter().filter(filled).map(|second| (second.second as f64 + 0.5, value(second))).collect()
}

fn capacity_name(outcome: &VisitOutcome) -> String {
    format!("capacity {:.0}/s", outcome.capacity_rps)
}

/// The same state has the same colour wherever it appears.
fn hue(state: &str) -> Hue {
    match state {
        "normal" | "calm" => Hue::Green,
        "alarm" | "popular" | "abusive" => Hue::Vermillion,
        "full" => Hue::Sky,
        "probe" => Hue::Amber,
        "surge_ok" => Hue::Blue,
        "slow_backend" | "congested_link" => Hue::Purple,
        _ => Hue::Grey,
    }
}

fn footer(story: &Story) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "flashweir {version} demo, seed {}, peak {} times the capacity, {} ms of work per request; people give up \
         after {} s. The crowd has the shape of the semi-final Brazil–Netherlands of the 1998 football World Cup, \
         7 July 1998, squeezed in time (relative rates from the 1998 World Cup web trace of the Internet Traffic \
         Archive). Origin, load generator and Flashweir shared this machine.",
        story.options.seed,
        story.options.crowd_multiple,
        story.options.origin_ms,
        PATIENCE.as_secs(),
    )
}

//! The numbers of both visits: on the terminal, as JSON and as a page.

use super::calls::{CALLS, Chain, OVERLOAD};
use super::{CROWD, JUDGED_AFTER, QUIET, Story, TARGET, Visit};
use crate::demo::files::write_file;
use flashweir_load::Second;
use flashweir_load::report::{Chart, Figure, Hue, Page, Point, ReportError, Section, Series, Table, number};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Names of the two visits.
const NAMES: [&str; 2] = ["without feedback", "with feedback"];

/// Writes `report.html` and `data.json`; gives the page's path.
pub(super) fn write(story: &Story) -> anyhow::Result<PathBuf> {
    let directory = &story.options.out;
    write_file(directory, "data.json", &serde_json::to_string_pretty(&numbers(story))?)?;
    write_file(directory, "report.html", &html(story)?)
}

/// The numbers.
pub(super) fn numbers(story: &Story) -> Value {
    json!({
        "seed": story.options.seed,
        "capacity_rps": story.capacity_rps,
        "crowd_multiple": story.options.crowd_multiple,
        "without_feedback": story.visits[0].outcome,
        "with_feedback": story.visits[1].outcome,
        "calls_of_a_user_request": CALLS,
        "calls_without_feedback": story.chains[0],
        "calls_with_feedback": story.chains[1],
    })
}

/// The table for a terminal.
pub(super) fn text(story: &Story) -> String {
    let (rows, of_calls) = (rows(story), rows_of_calls(story));
    let width = rows.iter().chain(&of_calls).map(|[name, ..]| name.chars().count()).max().unwrap_or(0);
    let line = |[name, before, after]: &[String; 3]| format!("{name:<width$}  {before:>18}  {after:>18}\n");
    let head = line(&["".to_owned(), NAMES[0].to_owned(), NAMES[1].to_owned()]);
    let [body, calls] = [&rows, &of_calls].map(|rows| rows.iter().map(line).collect::<String>());
    format!(
        "The origin's capacity: {:.1} requests/s\n\n{head}{body}\nUser requests of {CALLS} calls each, {OVERLOAD} times what the origin can do\n{calls}",
        story.capacity_rps
    )
}

fn rows(story: &Story) -> Vec<[String; 3]> {
    let [before, after] = story.visits.each_ref().map(|visit| &visit.outcome);
    let both = |name: &str, value: &dyn Fn(&super::ChainOutcome) -> String| {
        [name.to_owned(), value(before), value(after)]
    };
    let rate = |value: f64| format!("{value:.1}/s");
    let percent = |value: f64| format!("{:.1} %", value * 100.0);
    vec![
        both("people who came", &|o| rate(o.offered_rps)),
        both("answers in time (goodput)", &|o| rate(o.goodput_rps)),
        both("origin's time put to use (useful)", &|o| o.useful.map_or("–".to_owned(), percent)),
        both("p99 of the worst second", &|o| o.p99_ms.map_or("–".to_owned(), |ms| format!("{ms:.0} ms"))),
        both("refused by the caller's sidecar", &|o| rate(o.refused_at_caller_rps)),
        both("refused by the overloaded gateway", &|o| rate(o.refused_at_node_rps)),
        both("refused there, of what people asked for", &|o| percent(o.refused_at_node_part)),
        both("came to the overloaded gateway", &|o| rate(o.offered_to_node_rps)),
        both("processor time of the overloaded gateway", &|o| format!("{:.3} cores", o.node_cores)),
        both("processor time there spent on refusing", &|o| {
            o.node_refusing_cores.map_or("–".to_owned(), |cores| format!("{cores:.4} cores"))
        }),
        both("the same, of that without feedback", &|o| o.node_refusing_part.map_or("–".to_owned(), percent)),
    ]
}

fn rows_of_calls(story: &Story) -> Vec<[String; 3]> {
    let [before, after] = &story.chains;
    let both = |name: &str, value: &dyn Fn(&Chain) -> String| [name.to_owned(), value(before), value(after)];
    vec![
        both("user requests", &|chain| format!("{:.1}/s", chain.offered_rps)),
        both("completed in time", &|chain| format!("{:.1}/s", chain.completed_rps)),
        both("the same, of what an oracle completes", &|chain| format!("{:.1} %", chain.of_oracle * 100.0)),
    ]
}

fn html(story: &Story) -> Result<String, ReportError> {
    let [before, after] = story.visits.each_ref().map(|visit| &visit.outcome);
    let lead = format!(
        "A crowd of {} times what the origin can do came through its callers' sidecar to the gateway before the origin. Without \
         feedback the gateway refused {:.1} % of what people asked for; with it, {:.1} %, and the sidecar the rest.",
        number(story.options.crowd_multiple, 2),
        before.refused_at_node_part * 100.0,
        after.refused_at_node_part * 100.0,
    );
    let caption = format!(
        "From {} s after the crowd came to shortly before it left. In time: within {} s.",
        JUDGED_AFTER.as_secs(),
        TARGET.as_secs()
    );
    let empty = Table::new(caption, ["", NAMES[0], NAMES[1]]);
    let table =
        rows(story).into_iter().fold(empty, |table, [name, before, after]| table.row(name, [before, after]));
    let caption = format!(
        "People ask a front end, which makes {CALLS} calls for each of them through two gateways, {OVERLOAD} times what the origin can do. An oracle begins only what it can finish."
    );
    let empty = Table::new(caption, ["", NAMES[0], NAMES[1]]);
    let of_calls = rows_of_calls(story)
        .into_iter()
        .fold(empty, |table, [name, before, after]| table.row(name, [before, after]));
    let mut section = Section::new("What people got, second by second");
    for (name, visit) in NAMES.into_iter().zip(&story.visits) {
        section = section.figure(rates(story, name, visit)?);
    }
    Page::new("One crowd, a sidecar and a gateway", lead)
        .section(Section::new("In numbers").table(table))
        .section(section)
        .section(Section::new("Work that is begun is finished").table(of_calls))
        .footer(format!("flashweir {}, seed {}", env!("CARGO_PKG_VERSION"), story.options.seed))
        .html()
}

fn rates(story: &Story, name: &str, visit: &Visit) -> Result<Figure, ReportError> {
    let points = |value: fn(&Second) -> u64| {
        let seconds = visit.load.totals.series.iter();
        seconds.map(|second| (second.second as f64, Some(value(second) as f64))).collect::<Vec<Point>>()
    };
    Chart::new(format!("Requests {name}"), "seconds", "requests/s")
        .y_at_least(story.capacity_rps * story.options.crowd_multiple)
        .series(Series::area("offered", Hue::Grey, points(|second| second.offered)))
        .series(Series::line("refused", Hue::Amber, points(|second| second.refused)))
        .series(Series::line("goodput", Hue::Green, points(|second| second.goodput)))
        .reference("capacity", Hue::Vermillion, story.capacity_rps)
        .marker("the crowd comes", QUIET.as_secs_f64())
        .marker("it goes", (QUIET + CROWD).as_secs_f64())
        .figure()
}

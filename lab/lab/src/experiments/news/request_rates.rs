//! NEWS-F12: when the crowd is found, and what becomes of the request rates and the loss.

use super::plant::{AS_RUN, Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::news::NewsOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F12",
    title: "Request rates to the target server, and the delay of detection",
    paper: "Figure 12 and §7.2: found 20 s after the onset (T = 60 s), admitted rate −32 %, response loss \
            from 25 % to 2 %, offered rate rises as dropped connections are tried again",
    run,
};

const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &MODES, |_| ())?;
    let (crowd, onset_s) = (runs.within(Stretch::Crowd), runs.onset_s());
    let delay = |outcome: &NewsOutcome| outcome.first_alarm_s(onset_s).map(|at| at - onset_s as f64);
    let admitted = runs.admitted(Stretch::Crowd);
    let without = runs.mean(Mode::None, &admitted);
    let fall = |outcome: &NewsOutcome| admitted(outcome).map(|rate| (1.0 - rate / without) * 100.0);
    let loss = runs.loss_percent(Stretch::Crowd);
    let offered = |outcome: &NewsOutcome| Some(outcome.per_second(crowd.clone(), |bin| bin.gate.offered));
    let near = |by| Rule::Near { mode: AS_RUN.to_owned(), by };
    let rows = vec![
        runs.row("found after, s", Some(20.0), near(1.0), &NEWS_MODES, delay),
        runs.row("admitted rate falls by %", Some(32.0), near(5.0), &NEWS_MODES, fall),
        runs.row("response loss %", Some(2.0), near(1.0), &NEWS_MODES, &loss),
        runs.row(
            "response loss % without NEWS",
            Some(25.0),
            Rule::Near { mode: Mode::None.name(), by: 5.0 },
            &[Mode::None],
            &loss,
        ),
        runs.row("offered/s, tries included", None, Rule::Reported, &MODES, offered),
    ];
    let news = Mode::Scoreboard;
    let without = runs.seeds(Mode::None, &admitted);
    let fall = runs.seeds(news, &admitted).with(&without, |rate, without| (1.0 - rate / without) * 100.0);
    let over_none = |value: &dyn Fn(&NewsOutcome) -> Option<f64>| {
        runs.seeds(news, value).over(&runs.seeds(Mode::None, value))
    };
    let shapes = vec![
        Shape::new(
            "found within two intervals of the onset",
            [runs.seeds(news, delay).at_most(120.0).named("s")],
        ),
        Shape::new(
            "repaired finds it within two intervals",
            [runs.seeds(Mode::Repaired, delay).at_most(120.0).named("s")],
        ),
        Shape::new("admitted rate falls by a quarter or more", [fall.at_least(25.0).named("%")]),
        Shape::new("loss falls to a fifth or less", [over_none(&loss).at_most(0.2)]),
        Shape::new(
            "tries of the refused make the offered rate rise",
            [over_none(&|outcome| offered(outcome)).above(1.2)],
        ),
    ];
    let mut notes = notes(laboratory.options());
    notes.push(
        "20 s is where the tick of T = 60 s falls after an onset at 1,000 s, not a property of NEWS \
         (docs/algorithms/news.md, N-7); and −32 % does not follow from Table I (−48.9 %)."
            .to_owned(),
    );
    let mut lines: Vec<_> = MODES
        .iter()
        .map(|&mode| (format!("admitted, {}", mode.name()), runs.per_minute(mode, |bin| bin.gate.admitted)))
        .collect();
    lines.push((format!("offered, {}", news.name()), runs.per_minute(news, |bin| bin.gate.offered)));
    let plot = Plot {
        title: "Request rates",
        x_label: "seconds",
        y_label: "connections/s",
        lines,
        onset: Some(onset_s as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

//! NEWS-F6: which responses feel the crowd most.

use super::plant::{Mode, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape, Spread};
use flashweir_sim::news::NewsOutcome;
use flashweir_sim::router::{Rates, Tick};
use std::collections::BTreeMap;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F6",
    title: "Fall of the response rate in the crowd: fastest tenth, all, slowest tenth",
    paper: "Figure 6 and §4.1: −78 % for the fastest tenth, −52 % for all, −40 % for the slowest tenth",
    run,
};

/// Choice of the rates of a tick.
type Reading = fn(&Tick) -> Option<Rates>;
/// The paper's reading of a rate, and the one without flaw N-1.
const READINGS: [(&str, Reading); 2] =
    [("as published", |tick| tick.published), ("corrected", |tick| tick.corrected)];
type Part = fn(Rates) -> f64;
const PARTS: [(&str, f64, Part); 3] = [
    ("fastest tenth", 78.0, |rates| rates.fastest),
    ("all", 52.0, |rates| rates.all),
    ("slowest tenth", 40.0, |rates| rates.slowest),
];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &[Mode::None], |_| ())?;
    let fall = |reading: Reading, part: Part| {
        let rate = move |tick: &Tick| reading(tick).map(part);
        let (before, during) = (runs.rate_kbps(Stretch::Quiet, rate), runs.rate_kbps(Stretch::Crowd, rate));
        runs.seeds(Mode::None, |outcome: &NewsOutcome| {
            Some((1.0 - during(outcome)? / before(outcome)?) * 100.0)
        })
    };
    let rows: Vec<Row> = PARTS
        .iter()
        .map(|&(name, paper, part)| {
            let ours = READINGS
                .iter()
                .filter_map(|&(label, reading)| Some((label.to_owned(), fall(reading, part).spread()?)));
            let rule = Rule::Near { mode: READINGS[0].0.to_owned(), by: 10.0 };
            let ours: BTreeMap<String, Spread> = ours.collect();
            Row { what: format!("{name} falls by %"), paper: Some(paper), ours, rule }
        })
        .collect();
    let [fastest, all, slowest] = PARTS.map(|(_, _, part)| fall(READINGS[0].1, part));
    let shapes = vec![
        Shape::new(
            "the fastest tenth falls more than the mean",
            [fastest.minus(&all).above(0.0).named("percentage points")],
        ),
        Shape::new(
            "the mean falls more than the slowest tenth",
            [all.minus(&slowest).above(0.0).named("percentage points")],
        ),
    ];
    let mut notes = notes(laboratory.options());
    notes.push(
        "The paper contradicts itself: here the fastest tenth falls by 78 %, in Figure 13 and Table I from 96 \
         to 58 kb/s, by 40 %. Figure 6 may come from its earlier, simpler model."
            .to_owned(),
    );
    let lines = PARTS.map(|(name, _, part)| {
        let rate = move |tick: &Tick| tick.published.map(|rates| part(rates) * 8.0 / 1_000.0);
        (name.to_owned(), runs.over_ticks(Mode::None, rate))
    });
    let plot = Plot {
        title: "Response rates without control",
        x_label: "seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

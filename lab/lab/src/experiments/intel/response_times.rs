//! INTEL-F4: how long a response takes, by what is offered.

use super::runs::{CRITICAL, CRITICAL_NOTE, EVEN_RATES, HIGH, HIGHEST, LIGHT, Runs, within};
use super::server::Spacing;
use crate::experiments::finding::Claim;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-F4",
    title: "Response time by offered load, without overload control",
    paper: "Figure 4 and §5.1: 0.17, 3.3, 7.3 and 8.8 s on average at 32, 44, 71 and 100 requests/s",
    run,
};

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, Spacing::Even, &EVEN_RATES)?;
    let row = |rate, paper, rule| {
        runs.row("response time, s,", rate, Some(paper), rule, |measured| measured.response_s)
    };
    let rows = vec![
        row(LIGHT, 0.17, within(0.1)),
        row(CRITICAL, 3.3, Rule::Reported),
        row(HIGH, 7.3, within(0.1)),
        row(HIGHEST, 8.8, within(0.1)),
    ];
    let response_s = |rate| runs.seeds(rate, |measured| measured.response_s);
    let shapes = vec![
        Shape::new(
            "it never falls as more is offered",
            [SeedValues::smallest_step(&EVEN_RATES.map(response_s)).at_least(0.0).named("smallest step, s")],
        ),
        Shape::new(
            "at 71.42/s it is thirty times that at 32.58/s",
            [response_s(HIGH).over(&response_s(LIGHT)).at_least(30.0)],
        ),
        Shape::new(
            "from there on it rises by no more than a third: the queue is full",
            [response_s(HIGHEST).over(&response_s(HIGH)).at_most(4.0 / 3.0)],
        ),
    ];
    let mut notes = runs.notes(laboratory);
    notes.push(CRITICAL_NOTE.to_owned());
    notes.push("Response times are those of the served; what a refusal takes is not in them.".to_owned());
    let paper = [(LIGHT, 0.17), (CRITICAL, 3.3), (HIGH, 7.3), (HIGHEST, 8.8)];
    let plot = runs.plot("Response time without control", "seconds", &paper, |measured| measured.response_s);
    plot.finding(rows, shapes, Claim::Shape, notes)
}

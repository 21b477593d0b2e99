//! INTEL-T1: processor and queue without control.

use super::runs::{CRITICAL, CRITICAL_NOTE, HIGH, HIGHEST, LIGHT, NONE, Runs, TABLE_RATES, within};
use super::server::Spacing;
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-T1",
    title: "Processor and queue of a server without overload control",
    paper: "Table 1: 73.67, 99.95, 99.87 and 99.82 % of the processor and a mean queue of 0.043, 105, 249.5 and 252.7 \
            at 32.58, 43.97, 71.42 and 99.55 requests/s",
    run,
};

const PROCESSOR_PERCENT: [f64; 4] = [73.67, 99.95, 99.87, 99.82];
const QUEUE: [f64; 4] = [0.043, 105.02, 249.52, 252.68];
/// Of the 256 that may wait.
const NINE_TENTHS_FULL: f64 = 230.4;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, Spacing::Even, &TABLE_RATES)?;
    let near = |by| Rule::Near { mode: NONE.to_owned(), by };
    let mut rows = Vec::new();
    for (rate, paper) in TABLE_RATES.into_iter().zip(PROCESSOR_PERCENT) {
        let rule = if rate == CRITICAL { Rule::Reported } else { near(1.0) };
        rows.push(runs.row("processor, %,", rate, Some(paper), rule, |measured| measured.busy * 100.0));
    }
    let queue_rules = [near(0.02), Rule::Reported, within(0.02), within(0.02)];
    for ((rate, paper), rule) in TABLE_RATES.into_iter().zip(QUEUE).zip(queue_rules) {
        rows.push(runs.row("mean queue", rate, Some(paper), rule, |measured| measured.waiting));
    }
    let queue = |rate| runs.seeds(rate, |measured| measured.waiting);
    let busy = |rate| runs.seeds(rate, |measured| measured.busy);
    let both = [HIGH, HIGHEST];
    let at = |rate: f64| format!("at {rate}/s");
    let shapes = vec![
        Shape::new("at the light load hardly anybody waits", [queue(LIGHT).below(0.1).named("mean queue")]),
        Shape::new(
            "at 160 % and 225 % the queue is nine tenths full",
            both.map(|rate| queue(rate).at_least(NINE_TENTHS_FULL).named(at(rate))),
        ),
        Shape::new(
            "there the processor is never idle",
            both.map(|rate| busy(rate).at_least(0.99).named(at(rate))),
        ),
        Shape::new(
            "at the critical load the queue is between",
            [queue(CRITICAL).between(1.0, NINE_TENTHS_FULL).named("mean queue")],
        ),
    ];
    let mut notes = runs.notes(laboratory);
    notes.push(CRITICAL_NOTE.to_owned());
    let paper: Vec<_> = TABLE_RATES.into_iter().zip(QUEUE).collect();
    let plot = runs.plot("Mean queue without control", "requests", &paper, |measured| measured.waiting);
    plot.finding(rows, shapes, Claim::Shape, notes)
}

//! INTEL-F6: how long responses take under a self-similar load.

use super::runs::{NONE, Runs, SELF_SIMILAR, SELF_SIMILAR_RATES, SHALLOW, within};
use super::server::{Measured, Spacing};
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-F6",
    title: "Response time by offered self-similar load, without overload control",
    paper: "Figure 6 and §5.1: close to 0.5 s at 38/s, where the processor is 88 % busy, and 6.2 s at 70/s",
    run,
};

const MODERATE: f64 = 38.0;
const HIGH: f64 = 70.0;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let rates = [MODERATE, HIGH];
    let runs = Runs::new(laboratory, SELF_SIMILAR, &SELF_SIMILAR_RATES)?;
    let (even, shallow) =
        (Runs::new(laboratory, Spacing::Even, &rates)?, Runs::new(laboratory, SHALLOW, &rates)?);
    let row = |what, rate, paper, rule, value: fn(&Measured) -> f64| {
        let row = runs.row(what, rate, Some(paper), rule, value);
        even.beside(shallow.beside(row, rate, value), rate, value)
    };
    let near = Rule::Near { mode: NONE.to_owned(), by: 3.0 };
    let rows = vec![
        row("response time, s,", MODERATE, 0.5, within(0.1), |it| it.response_s),
        row("response time, s,", HIGH, 6.2, within(0.1), |it| it.response_s),
        row("processor, %,", MODERATE, 88.0, near, |it| it.busy * 100.0),
    ];
    let response_s = |rate| runs.seeds(rate, |measured| measured.response_s);
    let over_even = |rate| response_s(rate).over(&even.seeds(rate, |measured| measured.response_s));
    let shapes = vec![
        Shape::new(
            "at 38/s a response takes at least twice as long as with even spacing",
            [over_even(MODERATE).at_least(2.0)],
        ),
        Shape::new(
            "at 70/s it takes more than thrice as long as at 38/s",
            [response_s(HIGH).over(&response_s(MODERATE)).above(3.0)],
        ),
        Shape::new(
            "at 70/s it is within a fifth of what it is with even spacing",
            [over_even(HIGH).between(0.8, 1.2)],
        ),
    ];
    let mut notes = runs.notes(laboratory);
    notes.push("Response times are those of the served; what a refusal takes is not in them.".to_owned());
    let paper = [(MODERATE, 0.5), (HIGH, 6.2)];
    let plot =
        runs.plot("Response time of a self-similar load", "seconds", &paper, |measured| measured.response_s);
    plot.finding(rows, shapes, Claim::Values, notes)
}

//! INTEL-F5: what is served of a self-similar load.

use super::runs::{Runs, SELF_SIMILAR, SELF_SIMILAR_RATES, SHALLOW, within};
use super::server::{Measured, Spacing};
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-F5",
    title: "Throughput by offered self-similar load, without overload control",
    paper: "Figure 5 and §5.1: about 45 OK/s without refusals, 38 OK/s at 70/s, 36 OK/s at 85/s: not much else than with \
            even spacing",
    run,
};

const PAPER: [(f64, f64); 3] = [(45.0, 45.0), (70.0, 38.0), (85.0, 36.0)];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let rates = PAPER.map(|(rate, _)| rate);
    let runs = Runs::new(laboratory, SELF_SIMILAR, &SELF_SIMILAR_RATES)?;
    let (even, shallow) =
        (Runs::new(laboratory, Spacing::Even, &rates)?, Runs::new(laboratory, SHALLOW, &rates)?);
    let beside =
        |row, rate, value: fn(&Measured) -> f64| even.beside(shallow.beside(row, rate, value), rate, value);
    let mut rows: Vec<Row> = PAPER
        .iter()
        .map(|&(rate, ok)| beside(runs.ok_row(rate, Some(ok), within(0.05)), rate, |it| it.ok_rps))
        .collect();
    rows.extend(rates.map(|rate| {
        let row = runs.row("refused/s", rate, None, Rule::Reported, |it| it.refused_rps);
        beside(row, rate, |it| it.refused_rps)
    }));
    let ok = |rate| runs.seeds(rate, |measured| measured.ok_rps);
    let over_even = |rate| ok(rate).over(&even.seeds(rate, |measured| measured.ok_rps));
    let alike = |rate: f64| over_even(rate).between(0.9, 1.1).named(format!("at {rate}/s"));
    let less = |rate: f64, lower| {
        ok(rate).minus(&ok(lower)).below(0.0).named(format!("{rate}/s less {lower}/s, OK/s"))
    };
    let refused = runs.seeds(45.0, |measured| measured.refused_rps / 45.0);
    let shapes = vec![
        Shape::new(
            "at 45/s at most one in a hundred is refused",
            [refused.at_most(0.01).named("part refused")],
        ),
        Shape::new(
            "less is served at 70/s than at 45/s, and still less at 85/s",
            [less(70.0, 45.0), less(85.0, 70.0)],
        ),
        Shape::new(
            "at 70/s and 85/s within a tenth of what it is with even spacing",
            [alike(70.0), alike(85.0)],
        ),
    ];
    let mut plot = runs.plot("Throughput of a self-similar load", "OK/s", &PAPER, |measured| measured.ok_rps);
    plot.lines.push(runs.closed_form());
    plot.finding(rows, shapes, Claim::Values, runs.notes(laboratory))
}

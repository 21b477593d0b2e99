//! CAT-F3: who is let in when more and more come.

use super::plant::{CLASSES, Mode, SERVERS, notes};
use super::runs::{BIN_S, Curve, Load, Measured, Runs};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use std::ops::Range;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-F3",
    title: "Who is let in when more and more come",
    paper: "Figure 3 and §5: three servers; bronze is refused from 130 s on; from 210 s on, while gold sends 200/s, only gold \
            is served; the 95th percentile of response times stays below 1 s",
    run,
};

/// Requests a second of gold, silver and bronze.
pub(super) const CURVES: [Curve; 3] = [
    &[(0, 20.0), (210, 200.0), (385, 20.0)],
    &[(0, 40.0), (195, 120.0), (400, 40.0)],
    &[(0, 60.0), (130, 130.0), (405, 60.0)],
];
pub(super) const LENGTH_S: u64 = 480;

const PUBLISHED: &str = "batch, as published";
const LATE: &str = "batch, q = 3";
const OURS: &str = "our defaults";
const MODES: [(&str, Mode); 3] =
    [(PUBLISHED, Mode::batch(1, true)), (LATE, Mode::batch(3, true)), (OURS, Mode::Ours)];

const QUIET: Range<usize> = 10..130;
const BRONZE_RISES: Range<usize> = 135..195;
const SILVER_RISES: Range<usize> = 200..210;
const GOLD_IS_HIGH: Range<usize> = 220..385;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let load = Load { mode: None, servers: SERVERS, curves: CURVES, length_s: LENGTH_S, seed: 0 };
    let seeds = laboratory.options().seeds;
    let runs = Runs::new(laboratory, &MODES, load, seeds)?;
    let shapes = MODES.iter().flat_map(|(name, _)| shapes(&runs, name)).collect();
    let mut lines = Vec::new();
    for name in [PUBLISHED, OURS] {
        for (class, class_name) in CLASSES.iter().enumerate() {
            let points = runs.over_time(name, |measured, bin| measured.admitted_rps(class, bin));
            lines.push((format!("{class_name}, {name}"), points));
        }
    }
    let plot =
        Plot { title: "Requests let in", x_label: "seconds", y_label: "requests/s", lines, onset: None };
    let mut notes = notes(laboratory.options(), seeds);
    notes.extend(NOTES.map(str::to_owned));
    plot.finding(rows(&runs), shapes, Claim::Shape, notes)
}

const NOTES: [&str; 2] = [
    "The rates are ours, as the paper gives its curves only as a figure: gold 20/s and 200/s from 210 to 385 s, silver 40/s \
     and 120/s from 195 to 400 s, bronze 60/s and 130/s from 130 to 405 s. From 130 to 195 s that is 98 % of what the servers \
     carry: a test that bounds the mean need not refuse anybody yet.",
    "The paper's test bounds a mean response time, and its figures show the 95th percentile: with q = 3 the same test \
     bounds that.",
];

fn rows(runs: &Runs) -> Vec<Row> {
    let refused = runs.row("refused of all before 130 s, %", Some(0.0), Rule::Reported, |measured| {
        let counts = measured.all(&QUIET);
        counts.shed_total() as f64 / counts.offered.max(1) as f64 * 100.0
    });
    let mut rows = vec![refused];
    for (what, seconds) in
        [("135 to 195 s", BRONZE_RISES), ("200 to 210 s", SILVER_RISES), ("220 to 385 s", GOLD_IS_HIGH)]
    {
        rows.extend((0..CLASSES.len()).map(|class| {
            let what = format!("{} let in/s, {what}", CLASSES[class]);
            runs.row(what, None, Rule::Reported, |measured| measured.admitted_rps(class, &seconds))
        }));
    }
    let near = |by| Rule::Near { mode: PUBLISHED.to_owned(), by };
    rows.push(runs.row("silver and bronze let in/s while gold is high", Some(0.0), near(20.0), others));
    rows.push(
        runs.row("95th percentile over the run, s", Some(1.0), Rule::Reported, |it| it.quantile_s(0.95)),
    );
    rows.push(runs.row("goodput/s while gold is high", None, Rule::Reported, |measured| {
        measured.all(&GOLD_IS_HIGH).goodput as f64 / GOLD_IS_HIGH.len() as f64
    }));
    rows
}

fn shapes(runs: &Runs, name: &str) -> Vec<Shape> {
    let refused = |class: usize, seconds: &Range<usize>| {
        runs.seeds(name, |measured| measured.refused(class, seconds) * 100.0)
    };
    let of_class = |class: usize| format!("{} refused, %", CLASSES[class]);
    let gold = runs.seeds(name, |measured| measured.admitted_rps(0, &GOLD_IS_HIGH));
    let all = gold.plus(&runs.seeds(name, others));
    let violations = runs.seeds(name, |measured| measured.violations(10..LENGTH_S as usize).count() as f64);
    vec![
        Shape::new(
            format!("{name}: before 130 s, at 62 % of what the servers carry, nobody is refused"),
            (0..CLASSES.len()).map(|class| refused(class, &QUIET).at_most(0.0).named(of_class(class))),
        ),
        Shape::new(
            format!("{name}: from 130 s bronze is refused, gold and silver (to one in a hundred) are not"),
            [
                refused(0, &BRONZE_RISES).at_most(1.0).named(of_class(0)),
                refused(1, &BRONZE_RISES).at_most(1.0).named(of_class(1)),
                refused(2, &BRONZE_RISES).above(1.0).named(of_class(2)),
            ],
        ),
        Shape::new(
            format!("{name}: from 195 s silver goes before bronze"),
            [refused(1, &SILVER_RISES)
                .over(&refused(2, &SILVER_RISES))
                .below(0.5)
                .named("part of silver that is refused, over that of bronze")],
        ),
        Shape::new(
            format!("{name}: while gold is high, nine in ten let in are gold"),
            [gold.over(&all).at_least(0.9)],
        ),
        Shape::new(
            format!("{name}: the 95th percentile stays below 1 s in all bins of {BIN_S} s but two at most"),
            [violations.at_most(2.0).named("bins")],
        ),
    ]
}

/// Silver and bronze let in a second while gold is high.
fn others(measured: &Measured) -> f64 {
    measured.admitted_rps(1, &GOLD_IS_HIGH) + measured.admitted_rps(2, &GOLD_IS_HIGH)
}

//! RADAR-F4.4: what one server carries.

use super::plant::{Even, notes};
use super::runs::{Runs, SEEDS_LEAST};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::replicas::ReplicasOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "RADAR-F4.4",
    title: "Response times of one server by offered load",
    paper: "Figure 4.4 and §4.2.1: no problem up to 300/s, saturated from about 350/s, failing at about 450/s; the 90th percentile peaks at \
            about 100 ms",
    run,
};

const RATES: [u32; 7] = [100, 200, 250, 300, 350, 400, 450];
const NAMES: [&str; RATES.len()] = ["100/s", "200/s", "250/s", "300/s", "350/s", "400/s", "450/s"];
const LENGTH_S: u64 = 60;
const OURS: &str = "open loop";

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds = options.seeds.max(SEEDS_LEAST);
    let of = |&rps: &u32| {
        (0..u64::from(seeds)).map(move |place| Even {
            servers: 1,
            fronts: 0,
            rps,
            length_s: LENGTH_S,
            seed: options.seed + place,
        })
    };
    let loads: Vec<Even> = RATES.iter().flat_map(of).collect();
    let outcomes = laboratory.run(&loads)?;
    let chunks = outcomes.chunks(seeds as usize).map(<[_]>::to_vec);
    let runs = Runs::of(options.seed, NAMES.into_iter().zip(chunks).collect());
    let late_ms =
        |outcome: &ReplicasOutcome| outcome.latency_us.quantile(0.9).map(|micros| micros as f64 / 1e3);
    let failed = |outcome: &ReplicasOutcome| Some(outcome.failed as f64 / outcome.offered.max(1) as f64);
    let late = |rate| runs.seeds(rate, late_ms);
    let row = |name: &&str, what: &str, paper, value: &dyn Fn(&ReplicasOutcome) -> Option<f64>| Row {
        what: format!("{what} at {name}"),
        paper,
        ours: runs.seeds(name, value).spread().map(|it| (OURS.to_owned(), it)).into_iter().collect(),
        rule: Rule::Reported,
    };
    let peak = |name: &str| (name == "450/s").then_some(100.0);
    let mut rows: Vec<Row> =
        NAMES.iter().map(|name| row(name, "90th percentile, ms", peak(name), &late_ms)).collect();
    rows.extend(NAMES.iter().map(|name| row(name, "part that fails", None, &failed)));
    let shapes = vec![
        Shape::new(
            "at 300/s none in a thousand fails, and the 90th percentile is below half of the peak",
            [
                runs.seeds("300/s", failed).at_most(0.001).named("part that fails"),
                late("300/s").over(&late("450/s")).below(0.5).named("over the peak"),
            ],
        ),
        Shape::new(
            "at 350/s it is twice that at 300/s, and five times that at 100/s",
            [
                late("350/s").over(&late("300/s")).at_least(1.8).named("times 300/s (to a tenth)"),
                late("350/s").over(&late("100/s")).at_least(4.5).named("times 100/s (to a tenth)"),
            ],
        ),
        Shape::new(
            "at 450/s more than one in ten fails, at a peak of 100 ms (to a quarter)",
            [
                runs.seeds("450/s", failed).above(0.1).named("part that fails"),
                late("450/s").between(75.0, 125.0).named("ms"),
            ],
        ),
    ];
    let points = RATES
        .iter()
        .zip(NAMES)
        .map(|(&rate, name)| (f64::from(rate), late(name).spread().map(|spread| spread.mean)));
    let plot = Plot {
        title: "Response times of one server",
        x_label: "offered/s",
        y_label: "90th percentile, ms",
        lines: vec![(OURS.to_owned(), points.collect())],
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes(options, seeds))
}

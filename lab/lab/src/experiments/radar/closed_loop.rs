//! RADAR-F3.11: a benchmark that waits for each answer.

use super::plant::{SERVER, notes};
use super::runs::SEEDS_LEAST;
use crate::experiments::finding::Claim;
use crate::experiments::laboratory::Simulation;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::replicas::{ClosedLoop, StationModel, closed_loop};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "RADAR-F3.11",
    title: "One server, workers that wait for each answer (method 1)",
    paper: "Figure 3.11 and §3.2: the server shows no limit, it only responds slower and slower",
    run,
};

const WORKERS: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];
const LENGTH_S: u64 = 30;
const METHOD: &str = "method 1";

#[derive(Clone, Copy, Debug)]
struct Load {
    workers: u32,
    seed: u64,
}

impl Simulation for Load {
    type Outcome = ClosedLoop;

    fn run(&self) -> Result<ClosedLoop, ExperimentError> {
        // The bound is on what comes from outside: with as many places as workers none is ever refused.
        let server = StationModel { requests_max: 1_000, ..SERVER };
        Ok(closed_loop(server, self.workers, Duration::from_secs(LENGTH_S), self.seed)?)
    }
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds: Vec<u64> =
        (0..u64::from(options.seeds.max(SEEDS_LEAST))).map(|it| options.seed + it).collect();
    let loads: Vec<Load> =
        WORKERS.iter().flat_map(|&workers| seeds.iter().map(move |&seed| Load { workers, seed })).collect();
    let outcomes = laboratory.run(&loads)?;
    let by_workers: Vec<&[Arc<ClosedLoop>]> = outcomes.chunks(seeds.len()).collect();
    let values = |place: usize, value: fn(&ClosedLoop) -> f64| {
        SeedValues::of(
            seeds.iter().copied().zip(by_workers[place].iter().map(|outcome| Some(value(outcome)))),
        )
    };
    let rate: fn(&ClosedLoop) -> f64 = |outcome| outcome.completed_rps;
    let late_ms: fn(&ClosedLoop) -> f64 =
        |outcome| outcome.latency_us.quantile(0.5).unwrap_or(0) as f64 / 1e3;
    let failed: fn(&ClosedLoop) -> f64 = |outcome| outcome.failed as f64;
    let row = |(place, workers): (usize, &u32), what: &str, value| Row {
        what: format!("{what} with {workers} workers"),
        paper: None,
        ours: values(place, value).spread().map(|it| (METHOD.to_owned(), it)).into_iter().collect(),
        rule: Rule::Reported,
    };
    let mut rows: Vec<Row> = WORKERS.iter().enumerate().map(|it| row(it, "responses/s", rate)).collect();
    rows.extend(WORKERS.iter().enumerate().map(|it| row(it, "median, ms", late_ms)));
    let last = WORKERS.len() - 1;
    let late: Vec<SeedValues> = (0..WORKERS.len()).map(|place| values(place, late_ms)).collect();
    let shapes = vec![
        Shape::new(
            "however many workers, none fails, and beyond ten of them the throughput stays within 5 %",
            [
                values(last, failed).at_most(0.0).named("failed"),
                values(last, rate).over(&values(3, rate)).between(0.95, 1.05),
            ],
        ),
        Shape::new(
            "responses only take longer: ten times as long (to a fifth) with 100 workers as with 10",
            [
                SeedValues::smallest_step(&late[1..]).above(0.0).named("smallest step, ms"),
                late[last].over(&late[3]).between(8.0, 12.0).named("times as long"),
            ],
        ),
    ];
    let mean = |place: usize| late[place].spread().map(|spread| spread.mean);
    let points = WORKERS.iter().enumerate().map(|(place, &workers)| (f64::from(workers), mean(place)));
    let plot = Plot {
        title: "Response times of one server in a closed loop",
        x_label: "workers",
        y_label: "median, ms",
        lines: vec![(METHOD.to_owned(), points.collect())],
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes(options, seeds.len() as u32))
}

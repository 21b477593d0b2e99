//! RADAR-F4.7: what more servers carry.

use super::plant::{Even, notes};
use crate::experiments::finding::Claim;
use crate::experiments::laboratory::Simulation;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "RADAR-F4.7",
    title: "The highest load with a 90th percentile below 100 ms, by servers",
    paper: "Figure 4.7 and §4.2.3: linear to four servers, about 200/s from the fifth, none from the sixth; 1,400 to 1,500/s for a redirector and a \
            distributor; with two of each linear to nine",
    run,
};

const ONE: [u16; 6] = [1, 2, 3, 4, 5, 6];
const TWO: [u16; 3] = [5, 7, 9];
/// Loads are tried in these steps.
const STEP_RPS: u32 = 20;
const LENGTH_S: u64 = 10;
const TARGET_US: u64 = 100_000;

/// Finds the highest load that a cluster carries.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    servers: u16,
    fronts: u16,
    seed: u64,
}

impl Simulation for Capacity {
    type Outcome = f64;

    fn run(&self) -> Result<f64, ExperimentError> {
        let Self { servers, fronts, seed } = *self;
        let (mut carried, mut failed) = (0, u32::from(servers) * 400 / STEP_RPS);
        while failed - carried > 1 {
            let tried = carried.midpoint(failed);
            let load = Even { servers, fronts, rps: tried * STEP_RPS, length_s: LENGTH_S, seed };
            let outcome = load.run()?;
            let is_fast = outcome.latency_us.quantile(0.9).is_some_and(|it| it < TARGET_US);
            let is_carried = is_fast && outcome.failed * 20 < outcome.offered;
            if is_carried { carried = tried } else { failed = tried }
        }
        Ok(f64::from(carried * STEP_RPS))
    }
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds: Vec<u64> = (0..u64::from(options.seeds)).map(|place| options.seed + place).collect();
    let clusters = ONE.map(|servers| (servers, 1)).into_iter().chain(TWO.map(|servers| (servers, 2)));
    let clusters: Vec<(u16, u16)> = clusters.collect();
    let searches: Vec<Capacity> = clusters
        .iter()
        .flat_map(|&(servers, fronts)| seeds.iter().map(move |&seed| Capacity { servers, fronts, seed }))
        .collect();
    let outcomes = laboratory.run(&searches)?;
    let found: Vec<SeedValues> = outcomes
        .chunks(seeds.len())
        .map(|runs: &[Arc<f64>]| SeedValues::of(seeds.iter().copied().zip(runs.iter().map(|it| Some(**it)))))
        .collect();
    let at = |cluster: (u16, u16)| {
        let place = clusters.iter().position(|it| *it == cluster);
        place.map(|place| found[place].clone()).unwrap_or_default()
    };
    let name = |fronts: u16| if fronts == 1 { "one redirector" } else { "two redirectors" };
    let rows = clusters.iter().map(|&(servers, fronts)| Row {
        what: format!("carried by {servers} servers and {}, requests/s", name(fronts)),
        paper: None,
        ours: at((servers, fronts)).spread().map(|it| (name(fronts).to_owned(), it)).into_iter().collect(),
        rule: Rule::Reported,
    });
    let each = |cluster: (u16, u16)| at(cluster).over(&at((1, 1))).map(|times| times / f64::from(cluster.0));
    let shapes = vec![
        Shape::new(
            "linear to four servers (to a twelfth)",
            [2, 3, 4].map(|servers| each((servers, 1)).at_least(0.92).named(format!("{servers} servers"))),
        ),
        Shape::new(
            "the fifth adds less than a server carries, the sixth at most 40/s",
            [
                at((5, 1)).minus(&at((4, 1))).over(&at((1, 1))).below(0.75).named("of a server"),
                at((6, 1)).minus(&at((5, 1))).at_most(40.0).named("requests/s"),
            ],
        ),
        Shape::new(
            "the fifth adds 200/s (to a quarter)",
            [at((5, 1)).minus(&at((4, 1))).stated(200.0).named("requests/s")],
        ),
        Shape::new(
            "a redirector and a distributor carry 1,400 to 1,500/s",
            [at((6, 1)).between(1_400.0, 1_500.0)],
        ),
        Shape::new(
            "with two of each nine servers carry eight and more times as much as one",
            [at((9, 2)).over(&at((1, 1))).at_least(8.0)],
        ),
    ];
    let line = |fronts: u16| {
        let points = clusters
            .iter()
            .filter(|it| it.1 == fronts)
            .map(|&cluster| (f64::from(cluster.0), at(cluster).spread().map(|spread| spread.mean)));
        (name(fronts).to_owned(), points.collect())
    };
    let plot = Plot {
        title: "The highest load with a 90th percentile below 100 ms",
        x_label: "servers",
        y_label: "requests/s",
        lines: vec![line(1), line(2)],
        onset: None,
    };
    let mut notes = notes(options, seeds.len() as u32);
    notes.push(
        "Every server has every document and two choices spread the requests, so that neither herd nor placement is in it. With two redirectors \
         the ring divides 507 documents, of which one gets 38 % of the requests, and gives one of them \
         two thirds of all requests: that one is full first. A document belongs to one redirector only, so more redirectors cannot help; the thesis's requests must \
         have been divided more evenly. Distributors take turns."
            .to_owned(),
    );
    plot.finding(rows.collect(), shapes, Claim::Shape, notes)
}

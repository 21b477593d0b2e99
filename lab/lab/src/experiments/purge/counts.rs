//! PURGE-F3 and PURGE-F4: how well flows are counted.

use super::counters::{Flows, LENGTH_S, PHASE_TWO_S, Second, rmse_percent};
use super::link::Policing;
use super::runs::seeds;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use std::ops::Range;
use std::sync::Arc;

pub(crate) const OVER_TIME: Experiment = Experiment {
    id: "PURGE-F3",
    title: "The count of 600 flows over time",
    paper: "Figure 3 and §4.1: while all flows send alike (to 20 s) both counts are close to 600; then BLACK's deviates \
            substantially and Purge's does not",
    run: over_time,
};

pub(crate) const BY_FLOWS: Experiment = Experiment {
    id: "PURGE-F4",
    title: "Error of the count by the number of flows",
    paper: "Figure 4 and §4.1: the root mean square error is negligible under Purge and hardly changes with the number of flows",
    run: by_flows,
};

const FLOWS: [u32; 7] = [100, 200, 400, 600, 1_000, 2_000, 4_000];
const FIGURE_3: u32 = 600;
/// A way of counting, and its column.
type Counter = (&'static str, fn(&Second) -> f64);

/// Each way of counting, under the name of the rule that counts so.
const COUNTERS: [Counter; 3] = [
    (Policing::BlackLike.name(), |second| second.black),
    (Policing::Published.name(), |second| second.published),
    (Policing::Repaired.name(), |second| second.repaired),
];
const BLACK: fn(&Second) -> f64 = COUNTERS[0].1;
const PUBLISHED: fn(&Second) -> f64 = COUNTERS[1].1;
const REPAIRED: fn(&Second) -> f64 = COUNTERS[2].1;
const PHASES: [Range<usize>; 2] = [0..PHASE_TWO_S, PHASE_TWO_S..LENGTH_S];
/// "Negligible", in percent.
const NEGLIGIBLE: f64 = 5.0;

struct Runs {
    first_seed: u64,
    by_flows: Vec<(u32, Vec<Arc<Vec<Second>>>)>,
}

impl Runs {
    fn new(laboratory: &Laboratory, flows: &[u32]) -> Result<Self, ExperimentError> {
        let of = |flows| seeds(laboratory).map(move |seed| Flows { flows, seed });
        let all: Vec<Flows> = flows.iter().copied().flat_map(of).collect();
        let outcomes = laboratory.run(&all)?;
        let chunks = outcomes.chunks(seeds(laboratory).count()).map(<[_]>::to_vec);
        let by_flows = flows.iter().copied().zip(chunks).collect();
        Ok(Self { first_seed: laboratory.options().seed, by_flows })
    }

    fn rmse(&self, flows: u32, phase: &Range<usize>, estimate: fn(&Second) -> f64) -> SeedValues {
        let runs = self.by_flows.iter().filter(|(count, _)| *count == flows).flat_map(|(_, runs)| runs);
        let values = runs.map(|seconds| Some(rmse_percent(&seconds[phase.clone()], estimate)));
        SeedValues::of((self.first_seed..).zip(values))
    }

    fn row(&self, what: String, flows: u32, phase: &Range<usize>) -> Row {
        let ours = COUNTERS.iter().filter_map(|(name, estimate)| {
            Some(((*name).to_owned(), self.rmse(flows, phase, *estimate).spread()?))
        });
        let rule = Rule::Near { mode: Policing::Published.name().to_owned(), by: NEGLIGIBLE };
        Row { what, paper: Some(0.0), ours: ours.collect(), rule }
    }
}

fn notes(laboratory: &Laboratory) -> Vec<String> {
    vec![
        "Counted each second from a new sketch, as in the paper; what is counted is the flows that sent in that second. In the first 20 s each \
         flow sends 3.125 packets of 1000 B a second (25 kb/s) at random moments; then flows are on and off for exponential times (1 s and 3 s on average), each \
         with a rate of its own (exponential, 25 kb/s on average over time). Shapes and times of the second phase are ours, as the paper gives \
         call volumes and protocols only."
            .to_owned(),
        "BLACK's count is samples over matches, sampled from the last 250 packets. Of 600 flows that send alike 1875 packets a second have three \
         matches, so the count of one second is off by more than half by chance alone. \"Negligible\" is taken as 5 %, and the paper's value as 0."
            .to_owned(),
        "The published estimator assumes that each of its 1024 buckets has three flows: it counts 2576 flows where there are none, and cannot have \
         made the paper's figure with 600."
            .to_owned(),
        format!("{} seeds, from {}.", seeds(laboratory).count(), laboratory.options().seed),
    ]
}

fn over_time(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &[FIGURE_3])?;
    let [one, two] = PHASES;
    let rows = vec![
        runs.row("RMSE while all send alike, %".to_owned(), FIGURE_3, &one),
        runs.row("RMSE while they differ, %".to_owned(), FIGURE_3, &two),
    ];
    let rmse = |phase: &Range<usize>, estimate| runs.rmse(FIGURE_3, phase, estimate);
    let shapes = vec![
        Shape::new(
            "while all send alike BLACK's count is within a fifth",
            [rmse(&one, BLACK).at_most(20.0).named("RMSE, %")],
        ),
        Shape::new(
            "while they differ BLACK's count is off by a quarter and more",
            [rmse(&two, BLACK).at_least(25.0).named("RMSE, %")],
        ),
        Shape::new(
            "Purge's count as published is within 5 % in both phases",
            [
                rmse(&one, PUBLISHED).at_most(NEGLIGIBLE).named("alike"),
                rmse(&two, PUBLISHED).at_most(NEGLIGIBLE).named("different"),
            ],
        ),
        Shape::new(
            "by maximum likelihood it is within 1 % in both phases",
            [
                rmse(&one, REPAIRED).at_most(1.0).named("alike"),
                rmse(&two, REPAIRED).at_most(1.0).named("different"),
            ],
        ),
    ];
    let first = runs.by_flows.first().and_then(|(_, runs)| runs.first().cloned()).unwrap_or_default();
    let flows: fn(&Second) -> f64 = |second| second.flows;
    let lines = [("flows that send", flows)].into_iter().chain(COUNTERS).map(|(name, value)| {
        let points = first.iter().enumerate().map(|(at, second)| (at as f64, Some(value(second))));
        (name.to_owned(), points.collect())
    });
    let plot = Plot {
        title: "Flows, and what they are counted as",
        x_label: "seconds",
        y_label: "flows",
        lines: lines.collect(),
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Values, notes(laboratory))
}

fn by_flows(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &FLOWS)?;
    let [_, two] = PHASES;
    let rows = FLOWS.map(|flows| runs.row(format!("{flows} flows: RMSE while they differ, %"), flows, &two));
    let at = |flows: u32| format!("{flows} flows, %");
    let published = || FLOWS.into_iter().map(|flows| runs.rmse(flows, &two, PUBLISHED));
    let most_published = published().reduce(|one, other| one.larger(&other)).unwrap_or_default();
    let least_published = published().reduce(|one, other| one.smaller(&other)).unwrap_or_default();
    let shapes = vec![
        Shape::new(
            "Purge's count as published is within 5 % with every number of flows",
            FLOWS.map(|flows| runs.rmse(flows, &two, PUBLISHED).at_most(NEGLIGIBLE).named(at(flows))),
        ),
        Shape::new(
            "its error as published hardly changes with the number of flows (5 points at most)",
            [most_published.minus(&least_published).at_most(NEGLIGIBLE).named("points")],
        ),
        Shape::new(
            "by maximum likelihood it is within 2 % with every number of flows",
            FLOWS.map(|flows| runs.rmse(flows, &two, REPAIRED).at_most(2.0).named(at(flows))),
        ),
        Shape::new(
            "BLACK's error is above that of maximum likelihood with every number of flows",
            FLOWS.map(|flows| {
                let more = runs.rmse(flows, &two, BLACK).minus(&runs.rmse(flows, &two, REPAIRED));
                more.above(0.0).named(at(flows))
            }),
        ),
    ];
    let lines = COUNTERS.map(|(name, estimate)| {
        let mean = |flows| runs.rmse(flows, &two, estimate).spread().map(|spread| spread.mean);
        (name.to_owned(), FLOWS.map(|flows| (f64::from(flows), mean(flows))).to_vec())
    });
    let plot = Plot {
        title: "Error of the count of flows",
        x_label: "flows",
        y_label: "RMSE, %",
        lines: lines.to_vec(),
        onset: None,
    };
    plot.finding(rows.to_vec(), shapes, Claim::Values, notes(laboratory))
}

//! RADAR-F4.6: what a level of redirection costs.

use super::plant::{Even, notes};
use super::runs::{Runs, SEEDS_LEAST};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::replicas::ReplicasOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "RADAR-F4.6",
    title: "Latency that each level of redirection adds",
    paper: "Figure 4.6 and §4.2.2: about 3 ms for each level, growing a bit with the load",
    run,
};

const RATES: [u32; 4] = [50, 100, 200, 300];
const DIRECT: [&str; RATES.len()] = ["50/s", "100/s", "200/s", "300/s"];
const REDIRECTED: [&str; RATES.len()] =
    ["50/s, redirected", "100/s, redirected", "200/s, redirected", "300/s, redirected"];
const LENGTH_S: u64 = 60;
const LEVELS: f64 = 2.0;
const OURS: &str = "each level";

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds = options.seeds.max(SEEDS_LEAST);
    let of = |fronts: u16, rps: u32| {
        (0..u64::from(seeds)).map(move |place| Even {
            // Two servers, so that their own queues do not hide what is looked for.
            servers: 2,
            fronts,
            rps,
            length_s: LENGTH_S,
            seed: options.seed + place,
        })
    };
    let both = [0, 1].map(|fronts| RATES.into_iter().flat_map(move |rps| of(fronts, rps)));
    let loads: Vec<Even> = both.into_iter().flatten().collect();
    let outcomes = laboratory.run(&loads)?;
    let names = DIRECT.into_iter().chain(REDIRECTED);
    let runs =
        Runs::of(options.seed, names.zip(outcomes.chunks(seeds as usize).map(<[_]>::to_vec)).collect());
    let mean_ms = ReplicasOutcome::mean_latency_ms;
    let added: Vec<_> = DIRECT
        .into_iter()
        .zip(REDIRECTED)
        .map(|(direct, redirected)| {
            let both = runs.seeds(redirected, mean_ms).minus(&runs.seeds(direct, mean_ms));
            both.map(|added_ms| added_ms / LEVELS)
        })
        .collect();
    let rows = DIRECT
        .iter()
        .zip(&added)
        .map(|(name, added)| Row {
            what: format!("added by each level at {name}, ms"),
            paper: Some(3.0),
            ours: added.spread().map(|it| (OURS.to_owned(), it)).into_iter().collect(),
            rule: Rule::Near { mode: OURS.to_owned(), by: 1.0 },
        })
        .collect();
    let shapes = vec![Shape::new(
        "2 to 4 ms at each load",
        added.iter().zip(DIRECT).map(|(added, name)| added.clone().between(2.0, 4.0).named(name)),
    )];
    let growth_ms = added[RATES.len() - 1].minus(&added[0]);
    let shapes = [
        shapes,
        vec![Shape::new(
            "the latency grows a bit with the load: from 50/s to 300/s by 1 ms at most",
            [growth_ms.clone().above(0.0).named("ms"), growth_ms.at_most(1.0).named("ms")],
        )],
    ]
    .concat();
    let points = RATES
        .iter()
        .zip(&added)
        .map(|(&rate, added)| (f64::from(rate), added.spread().map(|spread| spread.mean)));
    let plot = Plot {
        title: "Latency added by a distributor and by a redirector, each",
        x_label: "offered/s",
        y_label: "ms",
        lines: vec![(OURS.to_owned(), points.collect())],
        onset: None,
    };
    let mut notes = notes(options, seeds);
    notes.push(
        "A level takes 1.7 ms besides 1.3 ms of a processor, which was chosen by the very 3 ms; the capacity by figure 4.7. So this checks \
         the model."
            .to_owned(),
    );
    plot.finding(rows, shapes, Claim::Shape, notes)
}

//! The runs of an experiment, by rule and number of flows, and what is read from them.

use super::link::{LinkOutcome, Load, Policing};
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs at least: the number of the paper.
const SEEDS_LEAST: u32 = 25;
/// Of Student's distribution with 24 degrees of freedom: 95 % lie within.
const STUDENT_95: f64 = 2.064;

/// The seeds of an experiment.
pub(super) fn seeds(laboratory: &Laboratory) -> impl Iterator<Item = u64> + use<> {
    let options = laboratory.options();
    options.seed..options.seed + u64::from(options.seeds.max(SEEDS_LEAST))
}

/// Outcomes by number of flows and rule, each with all seeds.
pub(super) struct Runs {
    first_seed: u64,
    outcomes: BTreeMap<(u32, Policing), Vec<Arc<LinkOutcome>>>,
}

impl Runs {
    /// Runs each load with each rule and each seed.
    pub(super) fn new(
        laboratory: &Laboratory,
        policings: &[Policing],
        loads: &[Load],
    ) -> Result<Self, ExperimentError> {
        let of = |load: &Load, policing| {
            let load = load.clone();
            seeds(laboratory).map(move |seed| Load { policing, seed, ..load.clone() })
        };
        let each = loads.iter().flat_map(|load| policings.iter().map(move |&policing| (load, policing)));
        let all: Vec<Load> = each.clone().flat_map(|(load, policing)| of(load, policing)).collect();
        let measured = laboratory.run(&all)?;
        let chunks = measured.chunks(seeds(laboratory).count()).map(<[_]>::to_vec);
        let outcomes = each.map(|(load, policing)| (load.crowd.flows(), policing)).zip(chunks).collect();
        Ok(Self { first_seed: laboratory.options().seed, outcomes })
    }

    /// Takes the runs of others, made by the same laboratory.
    pub(super) fn extend(&mut self, others: Self) {
        self.outcomes.extend(others.outcomes);
    }

    /// The outcome of the first seed.
    pub(super) fn first(&self, flows: u32, policing: Policing) -> Option<&LinkOutcome> {
        self.outcomes.get(&(flows, policing))?.first().map(Arc::as_ref)
    }

    /// A value of each seed.
    pub(super) fn seeds(
        &self,
        flows: u32,
        policing: Policing,
        value: impl Fn(&LinkOutcome) -> f64,
    ) -> SeedValues {
        let outcomes = self.outcomes.get(&(flows, policing)).into_iter().flatten();
        SeedValues::of((self.first_seed..).zip(outcomes.map(|outcome| Some(value(outcome)))))
    }

    /// A value of each of these rules.
    pub(super) fn row(
        &self,
        what: String,
        flows: u32,
        policings: &[Policing],
        paper: Option<f64>,
        rule: Rule,
        value: impl Fn(&LinkOutcome) -> f64,
    ) -> Row {
        let ours = policings.iter().filter_map(|&policing| {
            Some((policing.name().to_owned(), self.seeds(flows, policing, &value).spread()?))
        });
        Row { what, paper, ours: ours.collect(), rule }
    }

    /// The mean over the seeds.
    pub(super) fn mean(&self, flows: u32, policing: Policing, value: impl Fn(&LinkOutcome) -> f64) -> f64 {
        self.seeds(flows, policing, value).spread().map_or(f64::NAN, |spread| spread.mean)
    }

    /// The half width of the mean's 95 % confidence interval.
    pub(super) fn half_width(
        &self,
        flows: u32,
        policing: Policing,
        value: impl Fn(&LinkOutcome) -> f64,
    ) -> f64 {
        let values: Vec<f64> = self
            .outcomes
            .get(&(flows, policing))
            .into_iter()
            .flatten()
            .map(|outcome| value(outcome))
            .collect();
        half_width(&values)
    }
}

/// The half width of the 95 % confidence interval of the mean of 25 values or more.
fn half_width(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    STUDENT_95 * (variance / count).sqrt()
}

/// Every seed lies within this part of the paper's value, in the rule that the paper ran.
pub(super) fn within(policing: Policing, part: f64) -> Rule {
    Rule::Within { mode: policing.name().to_owned(), part }
}

/// Notes that all simulations of the link share.
pub(super) fn notes(laboratory: &Laboratory) -> Vec<String> {
    let seeds = seeds(laboratory).count();
    vec![
        "The paper gives neither the bottleneck's rate nor the size of packets that fits its tables; its throughputs add up to \
         10 Mb/s and its classes to 85 % TCP, 12 % UDP and 3 % unresponsive TCP. Here packets have 1000 B (its own \"realistic\" size; with \
         its segments of 8 KB the link would send 156 a second), the buffer 1250 packets and the target 250. Round trips are \
         80 to 120 ms without queues."
            .to_owned(),
        "TCP is Vegas over prices, paced, with payments for which half of the packets are marked at the fair share; it sends from 0.01 \
         of a packet in each round trip on, which the tables' rates need. All sources can be marked, UDP and unresponsive TCP ignore it."
            .to_owned(),
        "Not in the paper: the period of the price. Here 0.5 s with a gain of 0.2 for all rules but the published, which has the paper's \
         gain of 0.001, 20 ms, periods of 1 s for its hit fractions, and a drop from the second period with X > c on. BLACK's own text \
         could not be had: BLACK-like drops with Ω·N − 1 above the target, over REM's marks."
            .to_owned(),
        format!(
            "{seeds} seeds, from {}; the paper made 25. The last 60 % of each run are measured.",
            laboratory.options().seed
        ),
    ]
}

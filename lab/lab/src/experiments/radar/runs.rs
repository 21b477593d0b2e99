//! The runs of an experiment, by mode, and what is read from them.

use super::plant::{Mode, Step};
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule};
use flashweir_load::report::Point;
use flashweir_sim::replicas::ReplicasOutcome;
use std::sync::Arc;

pub(super) const PUBLISHED: &str = "published";
pub(super) const REPAIRED: &str = "repaired";
/// Ten seeds are a second of work.
pub(super) const SEEDS_LEAST: u32 = 10;

/// Outcomes by mode and seed.
pub(super) struct Runs {
    first_seed: u64,
    by_name: Vec<(&'static str, Vec<Arc<ReplicasOutcome>>)>,
}

impl Runs {
    /// `step` with each mode in place of the one in it.
    pub(super) fn new(
        laboratory: &Laboratory,
        modes: &[(&'static str, Mode)],
        step: Step,
    ) -> Result<Self, ExperimentError> {
        let first_seed = laboratory.options().seed;
        let seeds = laboratory.options().seeds.max(SEEDS_LEAST);
        let of = |&(_, mode): &(_, Mode)| {
            (0..u64::from(seeds)).map(move |place| Step { mode, seed: first_seed + place, ..step })
        };
        let steps: Vec<Step> = modes.iter().flat_map(of).collect();
        let outcomes = laboratory.run(&steps)?;
        let names = modes.iter().map(|(name, _)| *name);
        let by_name = names.zip(outcomes.chunks(seeds as usize).map(<[_]>::to_vec)).collect();
        Ok(Self { first_seed, by_name })
    }

    /// Outcomes that were run elsewhere.
    pub(super) fn of(first_seed: u64, by_name: Vec<(&'static str, Vec<Arc<ReplicasOutcome>>)>) -> Self {
        Self { first_seed, by_name }
    }

    /// Number of seeds of each mode.
    pub(super) fn seed_count(&self) -> u32 {
        self.by_name.first().map_or(0, |(_, outcomes)| outcomes.len() as u32)
    }

    /// A value of each seed, where it has one.
    pub(super) fn seeds(&self, name: &str, value: impl Fn(&ReplicasOutcome) -> Option<f64>) -> SeedValues {
        let runs = self.by_name.iter().find(|(known, _)| *known == name);
        let outcomes = runs.into_iter().flat_map(|(_, outcomes)| outcomes);
        SeedValues::of((self.first_seed..).zip(outcomes.map(|outcome| value(outcome))))
    }

    /// A row with a column for each mode.
    pub(super) fn row(
        &self,
        what: impl Into<String>,
        paper: Option<f64>,
        rule: Rule,
        value: impl Fn(&ReplicasOutcome) -> Option<f64>,
    ) -> Row {
        let column = |(name, _): &(&'static str, _)| {
            self.seeds(name, &value).spread().map(|spread| ((*name).to_owned(), spread))
        };
        Row { what: what.into(), paper, ours: self.by_name.iter().filter_map(column).collect(), rule }
    }

    /// The load of each server with the first seed, over time in bins of `bin_s`; one run, as a mean over
    /// seeds would hide what each of them does.
    pub(super) fn lines(&self, name: &str, bin_s: f64, end_s: f64) -> Vec<(String, Vec<Point>)> {
        let runs = self.by_name.iter().find(|(known, _)| *known == name);
        let Some(outcome) = runs.and_then(|(_, outcomes)| outcomes.first()) else { return Vec::new() };
        let bins = (end_s / bin_s) as usize;
        let load = |server: usize, bin: usize| {
            let from_s = bin as f64 * bin_s;
            outcome.loads_rps(&(from_s..from_s + bin_s)).get(server).copied()
        };
        let line = |server| (0..bins).map(|bin| (bin as f64 * bin_s, load(server, bin))).collect();
        (0..outcome.arrivals.len())
            .map(|server| (format!("{name}, server {}", server + 1), line(server)))
            .collect()
    }
}

/// The loads of two modes over time, one run of each, in bins of `bin_s` up to `end_s`.
pub(super) fn loads_over_time(
    title: &'static str,
    runs: &Runs,
    modes: [&'static str; 2],
    bin_s: f64,
    end_s: f64,
    onset_s: f64,
) -> Plot {
    Plot {
        title,
        x_label: "seconds",
        y_label: "requests/s",
        lines: modes.into_iter().flat_map(|name| runs.lines(name, bin_s, end_s)).collect(),
        onset: Some(onset_s),
    }
}

/// Seconds from the crowd's coming to the first copies.
pub(super) fn found_after_s(outcome: &ReplicasOutcome, onset_s: f64) -> Option<f64> {
    outcome.first_copy_s(onset_s).map(|at_s| at_s - onset_s)
}

/// Seconds from the first copies until every second is within `part` of the mean, until `end_s`.
pub(super) fn balanced_after_s(
    outcome: &ReplicasOutcome,
    onset_s: f64,
    end_s: f64,
    part: f64,
) -> Option<f64> {
    let found_s = outcome.first_copy_s(onset_s)?;
    let from_s = (found_s * 2.0).ceil() / 2.0;
    outcome.balanced_after_s(from_s, end_s, 1.0, part).map(|after_s| after_s + from_s - found_s)
}

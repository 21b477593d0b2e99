//! The runs of an experiment, by mode, and what is read from them.

use super::plant::{Mode, scenario};
use crate::experiments::laboratory::Simulation;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule, Spread};
use flashweir_load::report::Point;
use flashweir_sim::news::{Bin, NewsOutcome, Scenario};
use flashweir_sim::router::Tick;
use std::ops::Range;
use std::sync::Arc;

/// Over all seeds; `O` is what one run shows.
pub(super) struct Runs<O = NewsOutcome> {
    by_mode: Vec<(Mode, Vec<Arc<O>>)>,
    first_seed: u64,
    onset_s: u64,
    end_s: u64,
}

/// Stretch of a run over which a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    Quiet,
    Crowd,
}

impl Runs {
    /// Runs every mode for every seed, each scenario changed by `change`.
    pub(super) fn new(
        laboratory: &Laboratory,
        modes: &[Mode],
        change: impl Fn(&mut Scenario),
    ) -> Result<Self, ExperimentError> {
        Self::with_seeds(laboratory, modes, laboratory.options().seeds, change)
    }

    pub(super) fn with_seeds(
        laboratory: &Laboratory,
        modes: &[Mode],
        seeds: u32,
        change: impl Fn(&mut Scenario),
    ) -> Result<Self, ExperimentError> {
        let options = laboratory.options();
        let described = |mode, seed| {
            let mut scenario = scenario(options, mode, seed);
            change(&mut scenario);
            scenario
        };
        let stretches = [options.quiet_s, options.crowd_s];
        Self::of(laboratory, modes, seeds, stretches, described)
    }

    pub(super) fn admitted(&self, stretch: Stretch) -> impl Fn(&NewsOutcome) -> Option<f64> {
        let within = self.within(stretch);
        move |outcome| Some(outcome.per_second(within.clone(), |bin| bin.gate.admitted))
    }

    /// Part of the people who came and were not let in, percent.
    pub(super) fn rejected_percent(&self) -> impl Fn(&NewsOutcome) -> Option<f64> {
        let within = self.within(Stretch::Crowd);
        move |outcome| {
            let total = outcome.total(within.clone());
            Some((1.0 - total.gate.admitted as f64 / total.unique_offered as f64) * 100.0)
        }
    }

    pub(super) fn loss_percent(&self, stretch: Stretch) -> impl Fn(&NewsOutcome) -> Option<f64> {
        let within = self.within(stretch);
        move |outcome| Some(outcome.response_loss(within.clone()) * 100.0)
    }

    /// Mean rate of the fastest tenth by the paper's reading, kb/s.
    pub(super) fn fastest_kbps(&self, stretch: Stretch) -> impl Fn(&NewsOutcome) -> Option<f64> {
        self.rate_kbps(stretch, |tick| tick.published.map(|rates| rates.fastest))
    }

    pub(super) fn rate_kbps(
        &self,
        stretch: Stretch,
        rate: impl Fn(&Tick) -> Option<f64>,
    ) -> impl Fn(&NewsOutcome) -> Option<f64> {
        let within = self.within(stretch);
        move |outcome| outcome.mean_rate(within.clone(), &rate).map(kbps)
    }

    /// Goes through the first seed of a mode minute by minute: seconds, and a count per second.
    pub(super) fn per_minute(&self, mode: Mode, count: impl Fn(&Bin) -> u64) -> Vec<Point> {
        let Some(outcome) = self.first(mode) else { return Vec::new() };
        let minutes = self.end_s / MINUTE_S;
        let minute = |n: u64| n * MINUTE_S..(n + 1) * MINUTE_S;
        (0..minutes).map(|n| ((n * MINUTE_S) as f64, Some(outcome.per_second(minute(n), &count)))).collect()
    }

    /// The first seed of a mode, interval by interval: seconds, and the fastest tenth's rate in kb/s.
    pub(super) fn fastest_over_time(&self, mode: Mode) -> Vec<Point> {
        self.over_ticks(mode, |tick| tick.published.map(|rates| kbps(rates.fastest)))
    }

    /// The first seed of a mode, interval by interval: seconds, and a value.
    pub(super) fn over_ticks(&self, mode: Mode, value: impl Fn(&Tick) -> Option<f64>) -> Vec<Point> {
        let ticks = self.first(mode).into_iter().flat_map(|outcome| &outcome.ticks);
        ticks.map(|tick| (tick.at.as_secs_f64(), value(tick))).collect()
    }
}

impl<O> Runs<O> {
    /// Runs what is `described` for every mode and seed: first a quiet stretch, then a crowd, seconds of
    /// each.
    pub(super) fn of<S: Simulation<Outcome = O>>(
        laboratory: &Laboratory,
        modes: &[Mode],
        seeds: u32,
        [quiet_s, crowd_s]: [u64; 2],
        described: impl Fn(Mode, u64) -> S,
    ) -> Result<Self, ExperimentError> {
        let first = laboratory.options().seed;
        let seeds = || (0..u64::from(seeds)).map(|n| first + n);
        let described = &described;
        let simulations: Vec<S> =
            modes.iter().flat_map(|&mode| seeds().map(move |seed| described(mode, seed))).collect();
        let outcomes = laboratory.run(&simulations)?;
        let by_mode =
            modes.iter().copied().zip(outcomes.chunks(seeds().count()).map(<[_]>::to_vec)).collect();
        Ok(Self { by_mode, first_seed: first, onset_s: quiet_s, end_s: quiet_s + crowd_s })
    }

    pub(super) fn onset_s(&self) -> u64 {
        self.onset_s
    }

    pub(super) fn within(&self, stretch: Stretch) -> Range<u64> {
        match stretch {
            // The first minute fills the network.
            Stretch::Quiet => 60..self.onset_s,
            Stretch::Crowd => self.onset_s..self.end_s,
        }
    }

    /// A value of each seed of a mode; no seeds of a mode that was not run.
    pub(super) fn seeds(&self, mode: Mode, value: impl Fn(&O) -> Option<f64>) -> SeedValues {
        let runs = self.by_mode.iter().find(|(other, _)| *other == mode);
        let outcomes = runs.into_iter().flat_map(|(_, outcomes)| outcomes);
        SeedValues::of((self.first_seed..).zip(outcomes.map(|outcome| value(outcome))))
    }

    /// A value over the seeds of a mode; none where no seed has one.
    pub(super) fn spread(&self, mode: Mode, value: impl Fn(&O) -> Option<f64>) -> Option<Spread> {
        self.seeds(mode, value).spread()
    }

    /// The mean over the seeds that have a value, for rows and charts; not a number where none has.
    pub(super) fn mean(&self, mode: Mode, value: impl Fn(&O) -> Option<f64>) -> f64 {
        self.spread(mode, value).map_or(f64::NAN, |spread| spread.mean)
    }

    pub(super) fn row(
        &self,
        what: impl Into<String>,
        paper: Option<f64>,
        rule: Rule,
        modes: &[Mode],
        value: impl Fn(&O) -> Option<f64>,
    ) -> Row {
        let ours = modes.iter().filter_map(|&mode| Some((mode.name(), self.spread(mode, &value)?)));
        Row { what: what.into(), paper, ours: ours.collect(), rule }
    }

    /// The outcome of the first seed of a mode.
    pub(super) fn first(&self, mode: Mode) -> Option<&O> {
        let (_, outcomes) = self.by_mode.iter().find(|(other, _)| *other == mode)?;
        outcomes.first().map(|outcome| &**outcome)
    }
}

pub(super) const MINUTE_S: u64 = 60;

pub(super) fn kbps(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1_000.0
}

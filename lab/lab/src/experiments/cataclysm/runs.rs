//! The runs of an experiment, by policy, and what is read from them.

use super::plant::{CLASSES, Mode, class, servers};
use crate::experiments::laboratory::Simulation;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Laboratory, Row, Rule, Spread};
use flashweir_core::measure::Histogram;
use flashweir_load::report::Point;
use flashweir_sim::request::{Counts, Policy, Scenario, run};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Seconds of a point in the charts, and of what is judged over time.
pub(super) const BIN_S: usize = 5;

/// Rates of one class: each from its second on, requests a second.
pub(super) type Curve = &'static [(u64, f64)];

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// None: every request is admitted.
    pub(super) mode: Option<Mode>,
    pub(super) servers: u32,
    /// Of gold, silver and bronze; no curve, no requests.
    pub(super) curves: [Curve; 3],
    pub(super) length_s: u64,
    pub(super) seed: u64,
}

/// Measurements of a run.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Each class's tries by the bin in which they began; those with curves.
    pub(super) classes: Vec<Vec<Counts>>,
    /// Latencies of all classes, microseconds.
    pub(super) latency_us: Histogram,
}

impl Simulation for Load {
    type Outcome = Measured;

    fn run(&self) -> Result<Measured, ExperimentError> {
        let present = || (0..CLASSES.len()).filter(|&place| !self.curves[place].is_empty());
        let streams = present().zip(0..).map(|(place, class)| Stream {
            arrivals: ArrivalProcess::Poisson(self.profile(self.curves[place])),
            classes: vec![Share { class, weight: 1.0 }],
        });
        // Holds because the experiments' curves are valid.
        let schedule = Schedule::new(streams.collect(), self.seed).expect("valid streams");
        let scenario = Scenario {
            classes: present().map(class).collect(),
            seed: self.seed,
            policy: self.mode.map_or(Policy::None, |mode| Policy::sentry(mode.policy())),
            bin: Duration::from_secs(BIN_S as u64),
            ..Scenario::new(schedule, class(0), servers(self.servers))
        };
        let outcome = run(&scenario)?;
        let mut latency_us = Histogram::new();
        outcome.classes.iter().for_each(|class| latency_us.add(&class.latency_us));
        Ok(Measured { classes: outcome.classes.into_iter().map(|class| class.bins).collect(), latency_us })
    }
}

impl Load {
    fn profile(&self, curve: Curve) -> RateProfile {
        let ends = curve.iter().skip(1).map(|&(from_s, _)| from_s).chain([self.length_s]);
        let parts = curve.iter().zip(ends).map(|(&(from_s, rate), end_s)| {
            // Holds because the experiments' curves have rates and rise in time.
            RateProfile::constant(rate, Duration::from_secs(end_s - from_s)).expect("a rate")
        });
        parts.reduce(RateProfile::then).expect("a curve has a rate")
    }
}

impl Measured {
    /// A class's tries that began within these seconds, whole bins.
    pub(super) fn counts(&self, class: usize, seconds: &Range<usize>) -> Counts {
        let mut counts = Counts::default();
        let bins = self.classes.get(class).into_iter().flatten();
        let bins = bins.take(seconds.end / BIN_S).skip(seconds.start / BIN_S);
        bins.for_each(|bin| counts.add(bin));
        counts
    }

    pub(super) fn all(&self, seconds: &Range<usize>) -> Counts {
        let mut counts = Counts::default();
        (0..self.classes.len()).for_each(|class| counts.add(&self.counts(class, seconds)));
        counts
    }

    /// Admitted per second.
    pub(super) fn admitted_rps(&self, class: usize, seconds: &Range<usize>) -> f64 {
        self.counts(class, seconds).admitted as f64 / seconds.len() as f64
    }

    /// The part of a class's requests that is refused.
    pub(super) fn refused(&self, class: usize, seconds: &Range<usize>) -> f64 {
        let counts = self.counts(class, seconds);
        counts.shed_total() as f64 / counts.offered.max(1) as f64
    }

    /// The part of all answers that take longer than the target: above 0.05, the 95th percentile is above the
    /// target.
    pub(super) fn late(&self, seconds: &Range<usize>) -> f64 {
        let counts = self.all(seconds);
        1.0 - counts.goodput as f64 / counts.completed.max(1) as f64
    }

    /// The starts of the bins within `seconds` in which more than one answer in twenty is late.
    pub(super) fn violations(&self, seconds: Range<usize>) -> impl Iterator<Item = usize> {
        let bins = seconds.step_by(BIN_S).map(|from_s| from_s..from_s + BIN_S);
        bins.filter(|bin| self.late(bin) > 0.05).map(|bin| bin.start)
    }

    pub(super) fn quantile_s(&self, share: f64) -> f64 {
        self.latency_us.quantile(share).map_or(f64::NAN, |micros| micros as f64 / 1e6)
    }
}

/// Runs of several policies under one load, each with all seeds.
#[derive(Debug)]
pub(super) struct Runs<O = Measured> {
    length_s: usize,
    first_seed: u64,
    by_name: Vec<(&'static str, Vec<Arc<O>>)>,
}

impl Runs {
    /// `load` with each policy in place of the one in it, from the laboratory's first seed on.
    pub(super) fn new(
        laboratory: &Laboratory,
        modes: &[(&'static str, Mode)],
        load: Load,
        seeds: u32,
    ) -> Result<Self, ExperimentError> {
        let simulations =
            modes.iter().map(|&(name, mode)| (name, move |seed| Load { mode: Some(mode), seed, ..load }));
        Self::of(laboratory, load.length_s as usize, seeds, simulations)
    }

    /// A value over time, the mean of all seeds in each bin.
    pub(super) fn over_time(
        &self,
        name: &str,
        value: impl Fn(&Measured, &Range<usize>) -> f64,
    ) -> Vec<Point> {
        let bins = (0..self.length_s).step_by(BIN_S).map(|from_s| from_s..from_s + BIN_S);
        bins.map(|bin| (bin.start as f64, Some(self.mean(name, |measured| value(measured, &bin))))).collect()
    }
}

impl<O: Send + Sync + 'static> Runs<O> {
    /// Each simulation, by name, from the laboratory's first seed on.
    pub(super) fn of<S: Simulation<Outcome = O>>(
        laboratory: &Laboratory,
        length_s: usize,
        seeds: u32,
        simulations: impl IntoIterator<Item = (&'static str, impl Fn(u64) -> S)>,
    ) -> Result<Self, ExperimentError> {
        let first_seed = laboratory.options().seed;
        let (names, each): (Vec<&'static str>, Vec<_>) = simulations.into_iter().unzip();
        let runs: Vec<S> = each
            .iter()
            .flat_map(|of| (0..u64::from(seeds)).map(move |place| of(first_seed + place)))
            .collect();
        let outcomes = laboratory.run(&runs)?;
        let by_name = outcomes.chunks(seeds as usize).map(<[_]>::to_vec);
        Ok(Self { length_s, first_seed, by_name: names.into_iter().zip(by_name).collect() })
    }

    /// The run of the first seed; none of a policy that was not run.
    pub(super) fn first(&self, name: &str) -> Option<&O> {
        let runs = self.by_name.iter().find(|(known, _)| *known == name);
        runs.and_then(|(_, outcomes)| outcomes.first()).map(AsRef::as_ref)
    }

    /// A value of each seed; no seeds of a policy that was not run.
    pub(super) fn seeds(&self, name: &str, value: impl Fn(&O) -> f64) -> SeedValues {
        let runs = self.by_name.iter().find(|(known, _)| *known == name);
        let measured = runs.into_iter().flat_map(|(_, measured)| measured);
        SeedValues::of((self.first_seed..).zip(measured.map(|measured| Some(value(measured)))))
    }

    /// A value over the seeds; none of a policy that was not run.
    pub(super) fn spread(&self, name: &str, value: impl Fn(&O) -> f64) -> Option<Spread> {
        self.seeds(name, value).spread()
    }

    /// The mean over the seeds, for charts; not a number of a policy that was not run.
    pub(super) fn mean(&self, name: &str, value: impl Fn(&O) -> f64) -> f64 {
        self.spread(name, value).map_or(f64::NAN, |spread| spread.mean)
    }

    /// A row that shows a value for every policy.
    pub(super) fn row(
        &self,
        what: impl Into<String>,
        paper: Option<f64>,
        rule: Rule,
        value: impl Fn(&O) -> f64,
    ) -> Row {
        let ours = self
            .by_name
            .iter()
            .filter_map(|(name, _)| self.spread(name, &value).map(|spread| ((*name).to_owned(), spread)));
        Row { what: what.into(), paper, ours: ours.collect::<BTreeMap<_, _>>(), rule }
    }
}

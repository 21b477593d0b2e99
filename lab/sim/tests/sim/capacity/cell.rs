//! One cell of the capacity matrix: an origin, a crowd and what changes; runs of the sentry in it, and of an
//! oracle that knows the origin and has the same queue.

use flashweir_admission::sentry::{self, Learning};
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{
    ClassModel, Fault, FaultKind, Overflow, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work,
    run,
};
use flashweir_workload::schedule::{Share, Stream};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Cores of the origin (c).
    pub(crate) cores: u32,
    /// Mean work of a request, milliseconds (E\[S\]).
    pub(crate) work_ms: u32,
    /// Distribution of work.
    pub(crate) spread: Spread,
    /// The response target, seconds (R).
    pub(crate) target_s: f64,
    /// Offered load over what the origin can do at first.
    pub(crate) load: f64,
    /// Change of the origin.
    pub(crate) change: Change,
}

/// Distribution of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    /// All the same.
    Constant,
    /// Exponential.
    Exponential,
    /// 90 % at 0.2, 10 % at 8.2 of the mean.
    Heavy,
    /// Nine in ten requests go to a page that takes half the mean, one to a page that takes 5.5 times as
    /// long.
    ByPage,
}

/// Change of the origin, and its difference from processors that are shared out fairly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Nothing.
    Steady,
    /// A third of the cores for the middle third of the crowd.
    FewerCores,
    /// A third of the speed for the middle third of the crowd.
    Slower,
    /// Three times the cores from the middle of the crowd on.
    MoreCores,
    /// There was no quiet time before the crowd.
    ColdStart,
    /// Requests in flight slow each other down: by so much each.
    Retrograde(f64),
    /// Twice as many workers as cores, and a queue of 64 at the origin.
    Pool,
    /// Four in ten requests go to the costly page from the middle of the crowd on.
    MixShift,
}

impl Cell {
    /// Returns true if the origin can answer nearly all requests (95 %) within the target when they come
    /// alone.
    pub(crate) fn is_feasible(&self) -> bool {
        let slowest = match self.spread {
            Spread::Constant => 1.0,
            Spread::Exponential => 3.0,
            Spread::Heavy => 8.2,
            Spread::ByPage => 5.5,
        };
        let contended = match self.change {
            Change::Retrograde(contention) => 1.0 + contention * f64::from(self.cores - 1),
            Change::Slower => 3.0,
            _ => 1.0,
        };
        self.work_s() * slowest * contended <= self.target_s
    }

    /// Returns true if the combination means anything.
    pub(crate) fn makes_sense(&self) -> bool {
        match self.change {
            Change::FewerCores => self.cores > 1,
            Change::Retrograde(_) => self.cores > 1,
            Change::MixShift => self.spread == Spread::ByPage,
            _ => true,
        }
    }

    fn work_s(&self) -> f64 {
        f64::from(self.work_ms) / 1e3
    }

    /// Requests per second that the origin can do at first.
    pub(crate) fn capacity_rps(&self) -> f64 {
        let contention = if let Change::Retrograde(contention) = self.change { contention } else { 0.0 };
        f64::from(self.cores) / self.work_s() / (1.0 + contention * f64::from(self.cores - 1))
    }

    /// Start of the crowd and its duration, seconds: long enough to see something of slow origins, short
    /// enough not to take all day for fast ones.
    pub(crate) fn crowd_s(&self) -> (f64, f64) {
        let offered_rps = self.capacity_rps() * self.load;
        let length_s = (1.5e6 / offered_rps).clamp(9.0, 30.0);
        let length_s = if self.capacity_rps() < 50.0 { 60.0 } else { length_s };
        let before_s = if self.change == Change::ColdStart { 0.0 } else { 10.0 };
        (before_s, length_s)
    }

    /// Moments at which the best limit may change, from the crowd's beginning on, seconds.
    pub(crate) fn changes_s(&self) -> Vec<f64> {
        let (begin_s, length_s) = self.crowd_s();
        match self.change {
            Change::FewerCores | Change::Slower => {
                vec![begin_s, begin_s + length_s / 3.0, begin_s + length_s * 2.0 / 3.0]
            }
            Change::MoreCores | Change::MixShift => vec![begin_s, begin_s + length_s / 2.0],
            _ => vec![begin_s],
        }
    }

    fn schedule(&self, seed: u64) -> Schedule {
        let (begin_s, length_s) = self.crowd_s();
        let crowd_rps = self.capacity_rps() * self.load;
        let profile = |parts: &[(f64, f64)]| {
            let mut all: Option<RateProfile> = None;
            for (rate, seconds) in parts.iter().filter(|(_, seconds)| *seconds > 0.0) {
                let part = RateProfile::constant(*rate, Duration::from_secs_f64(*seconds)).expect("a rate");
                all = Some(match all {
                    None => part,
                    Some(before) => before.then(part),
                });
            }
            ArrivalProcess::Poisson(all.expect("a crowd"))
        };
        let rates = |costly: [f64; 2]| {
            let quiet_rps = self.capacity_rps() * 0.5;
            let half_s = length_s / 2.0;
            profile(&[
                (quiet_rps * costly[0], begin_s),
                (crowd_rps * costly[0], half_s),
                (crowd_rps * costly[1], half_s),
            ])
        };
        if self.spread != Spread::ByPage {
            return Schedule::one(rates([1.0, 1.0]), seed);
        }
        let costly = if self.change == Change::MixShift { [0.1, 0.4] } else { [0.1, 0.1] };
        let stream = |class, share: [f64; 2]| Stream {
            arrivals: rates(share),
            classes: vec![Share { class, weight: 1.0 }],
        };
        Schedule::new(vec![stream(0, costly.map(|share| 1.0 - share)), stream(1, costly)], seed)
            .expect("streams")
    }

    fn classes(&self) -> Vec<ClassModel> {
        let work = |factor: f64| Duration::from_secs_f64(self.work_s() * factor);
        let target = Duration::from_secs_f64(self.target_s);
        let class = |host, work| ClassModel {
            host,
            timeout: 4 * target,
            good_within: target,
            ..ClassModel::new(format!("page {host}"), work)
        };
        match self.spread {
            Spread::Constant => vec![class(0, Work::Constant(work(1.0)))],
            Spread::Exponential => vec![class(0, Work::Exponential { mean: work(1.0) })],
            Spread::Heavy => {
                vec![class(0, Work::TwoPoint { short: work(0.2), long: work(8.2), long_share: 0.1 })]
            }
            Spread::ByPage => {
                vec![class(0, Work::Constant(work(0.5))), class(1, Work::Constant(work(5.5)))]
            }
        }
    }

    fn scenario(&self, known_limits: Vec<(Instant, u32)>, seed: u64, learning: Learning) -> Scenario {
        let mut server = ServerModel::processor_sharing(self.cores);
        match self.change {
            Change::Retrograde(contention) => server.contention = contention,
            Change::Pool => {
                server.workers = NonZeroU32::new(2 * self.cores);
                server.queue = Some(64);
                server.overflow = Overflow::Refuse { cost: Duration::from_secs_f64(self.work_s() / 10.0) };
            }
            _ => {}
        }
        let changes: Vec<Instant> = self.changes_s().into_iter().map(at).collect();
        let (begin_s, length_s) = self.crowd_s();
        let faults = match self.change {
            Change::FewerCores => {
                let third = NonZeroU32::new((self.cores / 3).max(1)).expect("at least one");
                vec![Fault { kind: FaultKind::Processors(third), during: changes[1]..changes[2] }]
            }
            Change::Slower => vec![Fault { kind: FaultKind::Slow(3.0), during: changes[1]..changes[2] }],
            Change::MoreCores => {
                let triple = NonZeroU32::new(3 * self.cores).expect("at least one");
                vec![Fault {
                    kind: FaultKind::Processors(triple),
                    during: changes[1]..at(begin_s + length_s + 60.0),
                }]
            }
            _ => Vec::new(),
        };
        let policy = sentry::Policy::single(Duration::from_secs_f64(self.target_s));
        let class = ClassModel::new("replaced", Work::Constant(Duration::ZERO));
        Scenario {
            classes: self.classes(),
            policy: Policy::sentry(SentryPolicy {
                known_limits,
                learning: Box::new(learning),
                ..SentryPolicy::new(policy)
            }),
            faults,
            seed,
            bin: Duration::from_millis(BIN_MS),
            ..Scenario::new(self.schedule(seed), class, server)
        }
    }

    /// The sentry alone.
    pub(crate) fn run(&self, seed: u64) -> RunOutcome {
        self.run_with(seed, Learning::SHIPPED)
    }

    /// The same with other numbers or fewer rules.
    pub(crate) fn run_with(&self, seed: u64, learning: Learning) -> RunOutcome {
        run(&self.scenario(Vec::new(), seed, learning)).expect("a run")
    }

    /// An oracle that knows the origin, one run for each seed: of several limits relative to the cores there
    /// are at each moment, the one that is best in all of them together. The best of each run would be the
    /// luckiest one: where work is uneven, limits that do the same differ by a tenth in a run.
    pub(crate) fn known(&self, seeds: &[u64]) -> Vec<RunOutcome> {
        let mut limits: Vec<Vec<(Instant, u32)>> = Vec::new();
        for factor in [1.0, 1.25, 1.6, 2.5] {
            let limit = |cores: u32| (f64::from(cores) * factor).ceil() as u32;
            let known = self.cores_at().into_iter().map(|(from, cores)| (from, limit(cores))).collect();
            if !limits.contains(&known) {
                limits.push(known);
            }
        }
        let with_limits = |limits: Vec<(Instant, u32)>| -> Vec<RunOutcome> {
            let scenarios = seeds.iter().map(|seed| self.scenario(limits.clone(), *seed, Learning::SHIPPED));
            scenarios.map(|scenario| run(&scenario).expect("a run")).collect()
        };
        let goodput = |runs: &Vec<RunOutcome>| {
            runs.iter().map(|outcome| outcome.began_within(self.crowd_bins()).goodput).sum::<u64>()
        };
        limits.into_iter().map(with_limits).max_by_key(goodput).expect("a limit")
    }

    fn cores_at(&self) -> Vec<(Instant, u32)> {
        let changes = self.changes_s();
        let mut cores = vec![(Instant::ZERO, self.cores)];
        match self.change {
            Change::FewerCores => {
                cores.push((at(changes[1]), (self.cores / 3).max(1)));
                cores.push((at(changes[2]), self.cores));
            }
            Change::MoreCores => cores.push((at(changes[1]), 3 * self.cores)),
            _ => {}
        }
        cores
    }

    pub(crate) fn crowd_bins(&self) -> Range<usize> {
        let (begin_s, length_s) = self.crowd_s();
        bin(begin_s)..bin(begin_s + length_s)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, work_ms, spread, target_s, load, change } = self;
        write!(f, "c={cores} s={work_ms} {spread:?} R={target_s} x{load} {change:?}")
    }
}

pub(crate) fn at(seconds: f64) -> Instant {
    Instant::from_duration(Duration::from_secs_f64(seconds))
}

pub(crate) fn bin(seconds: f64) -> usize {
    (seconds * 1e3 / BIN_MS as f64).round() as usize
}

pub(crate) const BIN_MS: u64 = 100;

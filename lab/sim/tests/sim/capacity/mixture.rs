//! One cell of the mixtures: an origin whose requests differ by far in the time they take, a load, and runs
//! in it behind the sentry or a fixed limit.
//!
//! Pages are exponential work. A slow request takes `ratio` times as long alone: a constant wait first, for
//! the part `waits` of it, and exponential work for the rest. Where there are polls, each waits 20 s and does
//! nothing.

use super::cell::{BIN_MS, at, bin};
use flashweir_admission::sentry::{self, Learning};
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{
    ClassModel, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work, run, run_checking_calm,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mixture {
    /// Mean time of a page alone, all of it work, milliseconds.
    pub(crate) fast_ms: u32,
    /// Mean time of a slow request alone over that of a page.
    pub(crate) ratio: u32,
    /// Part of a slow request's time that is wait.
    pub(crate) waits: f64,
    /// Part of the requests, polls left out, that are slow.
    pub(crate) slow: f64,
    /// The origin.
    pub(crate) origin: Origin,
    /// The load.
    pub(crate) load: Load,
    /// Names of requests.
    pub(crate) names: Names,
    /// True if there are long polls as a third class.
    pub(crate) polls: bool,
    /// The response target, seconds.
    pub(crate) target_s: f64,
}

/// Way in which the origin shares its [`CORES`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// Among all requests that do not wait.
    Shared,
    /// Among those of [`WORKERS`] workers that do not wait; one that waits keeps its worker, and the rest
    /// queue before them.
    Pool,
}

/// Requests per second over the origin's capacity, by time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// Half of it from a cold start on.
    Quiet,
    /// Half of it for ten seconds, then three times as much as it.
    WarmCrowd,
    /// Three times as much from a cold start on.
    ColdCrowd,
}

/// Names of the URLs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Names {
    /// Each class has its own.
    Known,
    /// All requests have the same one.
    OneUrl,
}

/// Processors of the origin.
pub(crate) const CORES: u32 = 4;
/// Workers of a pool.
pub(crate) const WORKERS: u32 = 32;
/// The pages' place among the classes.
pub(crate) const PAGES: usize = 0;
/// The slow requests' place.
pub(crate) const SLOW: usize = 1;

const POLL_S: f64 = 20.0;
const QUIET_S: f64 = 10.0;
const QUIET_LOAD: f64 = 0.5;
const CROWD_LOAD: f64 = 3.0;

impl Mixture {
    /// All cells whose combination means something.
    pub(crate) fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for fast_ms in [1, 15, 100] {
            for ratio in [10, 100, 2_000] {
                for waits in [0.0, 0.5, 0.95, 1.0] {
                    for slow in [0.01, 0.1, 0.5] {
                        for origin in [Origin::Shared, Origin::Pool] {
                            for load in [Load::Quiet, Load::WarmCrowd, Load::ColdCrowd] {
                                for names in [Names::Known, Names::OneUrl] {
                                    for (polls, target_s) in
                                        [(false, 1.0), (false, 3.0), (true, 1.0), (true, 3.0)]
                                    {
                                        cells.push(Self {
                                            fast_ms,
                                            ratio,
                                            waits,
                                            slow,
                                            origin,
                                            load,
                                            names,
                                            polls,
                                            target_s,
                                        });
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        cells.retain(Self::makes_sense);
        cells
    }

    /// No request works for more than five seconds (that is a batch job) or takes more than a minute, and a
    /// run has slow requests that end.
    pub(crate) fn makes_sense(&self) -> bool {
        let slow_rps = self.slow * QUIET_LOAD * self.capacity_rps();
        self.slow_work_s() <= 5.0 && self.slow_s() <= 60.0 && slow_rps * self.length_s() >= 4.0
    }

    /// Mean time of a page alone, seconds.
    pub(crate) fn fast_s(&self) -> f64 {
        f64::from(self.fast_ms) / 1e3
    }

    fn slow_s(&self) -> f64 {
        self.fast_s() * f64::from(self.ratio)
    }

    /// Mean work of a slow request, seconds.
    pub(crate) fn slow_work_s(&self) -> f64 {
        self.slow_s() * (1.0 - self.waits)
    }

    /// Mean time alone of pages and slow requests.
    fn alone_s(&self) -> f64 {
        (1.0 - self.slow) * self.fast_s() + self.slow * self.slow_s()
    }

    /// Polls per second: a pool has not the workers for many.
    fn polls_rps(&self) -> f64 {
        match (self.polls, self.origin) {
            (false, _) => 0.0,
            (true, Origin::Shared) => 2.0,
            (true, Origin::Pool) => 0.2,
        }
    }

    /// Pages and slow requests per second that the origin can do: the processors set it, or the workers.
    pub(crate) fn capacity_rps(&self) -> f64 {
        let work_s = (1.0 - self.slow) * self.fast_s() + self.slow * self.slow_work_s();
        let by_work = f64::from(CORES) / work_s;
        match self.origin {
            Origin::Shared => by_work,
            Origin::Pool => by_work.min((f64::from(WORKERS) - self.polls_rps() * POLL_S) / self.alone_s()),
        }
    }

    /// Requests in flight at capacity, by Little's law with times alone, and room for a line before the
    /// processors.
    fn in_flight(&self) -> f64 {
        let by_time = self.capacity_rps() * self.alone_s() + self.polls_rps() * POLL_S;
        by_time + 2.0 * f64::from(CORES)
    }

    /// Returns true if a slow request can be in time: nineteen in twenty of them are when nothing is in the
    /// way.
    pub(crate) fn slow_counts(&self) -> bool {
        self.slow_s() * (self.waits + 3.0 * (1.0 - self.waits)) <= self.target_s
    }

    /// The load's length after the quiet time, seconds.
    fn length_s(&self) -> f64 {
        let load = if self.load == Load::Quiet { QUIET_LOAD } else { CROWD_LOAD };
        (60_000.0 / (load * self.capacity_rps())).clamp(8.0, 40.0)
    }

    /// Start and duration of what is scored, seconds.
    pub(crate) fn scored_s(&self) -> (f64, f64) {
        (if self.load == Load::WarmCrowd { QUIET_S } else { 0.0 }, self.length_s())
    }

    /// The same in bins.
    pub(crate) fn scored_bins(&self) -> Range<usize> {
        let (begin_s, length_s) = self.scored_s();
        bin(begin_s)..bin(begin_s + length_s)
    }

    /// Bins in which the load is below the capacity.
    pub(crate) fn quiet_bins(&self) -> Range<usize> {
        match self.load {
            Load::Quiet => self.scored_bins(),
            Load::WarmCrowd => 0..bin(QUIET_S),
            Load::ColdCrowd => 0..0,
        }
    }

    fn schedule(&self, seed: u64) -> Schedule {
        let (begin_s, length_s) = self.scored_s();
        let load = if self.load == Load::Quiet { QUIET_LOAD } else { CROWD_LOAD };
        let capacity_rps = self.capacity_rps();
        let profile = |before: f64, then: f64| {
            let end = Duration::from_secs_f64(begin_s + length_s);
            let profile = match begin_s > 0.0 {
                true => RateProfile::step(before, then, Duration::from_secs_f64(begin_s), end),
                false => RateProfile::constant(then, end),
            };
            ArrivalProcess::Poisson(profile.expect("a rate"))
        };
        let requests = vec![
            Share { class: PAGES as u16, weight: 1.0 - self.slow },
            Share { class: SLOW as u16, weight: self.slow },
        ];
        let mut streams = vec![Stream {
            arrivals: profile(QUIET_LOAD * capacity_rps, load * capacity_rps),
            classes: requests,
        }];
        if self.polls {
            let rps = self.polls_rps();
            streams
                .push(Stream { arrivals: profile(rps, rps), classes: vec![Share { class: 2, weight: 1.0 }] });
        }
        Schedule::new(streams, seed).expect("streams")
    }

    fn classes(&self) -> Vec<ClassModel> {
        let target = Duration::from_secs_f64(self.target_s);
        let class = |number: u32, name: &str, wait_s: f64, work_s: f64| ClassModel {
            host: if self.names == Names::Known { number } else { 0 },
            wait: Work::Constant(Duration::from_secs_f64(wait_s)),
            timeout: (4 * target).max(Duration::from_secs_f64(4.0 * (wait_s + work_s))),
            good_within: target,
            ..ClassModel::new(name, Work::Exponential { mean: Duration::from_secs_f64(work_s) })
        };
        let wait_s = self.slow_s() * self.waits;
        let mut classes =
            vec![class(0, "pages", 0.0, self.fast_s()), class(1, "slow", wait_s, self.slow_s() - wait_s)];
        if self.polls {
            classes.push(class(2, "polls", POLL_S, 0.0));
        }
        classes
    }

    fn scenario(&self, policy: Policy, seed: u64) -> Scenario {
        let mut server = ServerModel::processor_sharing(CORES);
        if self.origin == Origin::Pool {
            server.workers = NonZeroU32::new(WORKERS);
        }
        let class = ClassModel::new("replaced", Work::Constant(Duration::ZERO));
        Scenario {
            classes: self.classes(),
            policy,
            seed,
            bin: Duration::from_millis(BIN_MS),
            ..Scenario::new(self.schedule(seed), class, server)
        }
    }

    /// The sentry, or a limit set by hand. With that goes a queue as long as is served in a quarter of the
    /// target: where slow requests miss the target, the rule sizes its queue by them, and a limit with such a
    /// queue leaves processors idle.
    fn sentry(&self, known_limits: Vec<(Instant, u32)>, learning: Learning) -> Policy {
        let mut policy = sentry::Policy::single(Duration::from_secs_f64(self.target_s));
        if !known_limits.is_empty() {
            let served = self.capacity_rps() * self.target_s / 4.0;
            policy.classes[0].queue = Some(served.ceil().max(f64::from(CORES)) as u32);
        }
        Policy::sentry(SentryPolicy {
            known_limits,
            learning: Box::new(learning),
            ..SentryPolicy::new(policy)
        })
    }

    /// The sentry with these numbers and rules, or with a limit set by hand, with windows of calm looked for.
    pub(crate) fn run_checked(&self, limit: Option<u32>, learning: Learning, seed: u64) -> RunOutcome {
        let known_limits = limit.map(|limit| (at(0.0), limit)).into_iter().collect();
        run_checking_calm(&self.scenario(self.sentry(known_limits, learning), seed)).expect("a run")
    }

    /// A fixed limit on all requests in flight, with the sentry's order of the queue; none: no gate.
    pub(crate) fn run_with_limit(&self, limit: Option<u32>, seed: u64) -> RunOutcome {
        let policy = match limit {
            Some(limit) => self.sentry(vec![(at(0.0), limit)], Learning::SHIPPED),
            None => Policy::None,
        };
        run(&self.scenario(policy, seed)).expect("a run")
    }

    /// Fixed limits to choose the best from: in a crowd ten from the cores to four times what is in flight at
    /// capacity, in equal ratios; and none.
    pub(crate) fn limits(&self) -> Vec<Option<u32>> {
        let (least, most) = (f64::from(CORES), 4.0 * self.in_flight());
        let rungs: Vec<f64> = match self.load {
            Load::Quiet => vec![self.in_flight() * 2.0],
            _ => (0..LADDER)
                .map(|rung| least * (most / least).powf(f64::from(rung) / f64::from(LADDER - 1)))
                .collect(),
        };
        rungs.into_iter().map(|limit| Some(limit.ceil() as u32)).chain([None]).collect()
    }
}

const LADDER: u32 = 10;

impl fmt::Display for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fast_ms, ratio, waits, slow, origin, load, names, polls, target_s } = self;
        let classes = if *polls { "classes=3" } else { "classes=2" };
        let slow = slow * 100.0;
        write!(
            f,
            "fast={fast_ms} ratio={ratio} waits={waits} slow={slow}% {origin:?} {load:?} {names:?} {classes} R={target_s}"
        )
    }
}

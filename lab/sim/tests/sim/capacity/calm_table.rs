//! Calm before an origin that only waits: it has room for thousands, so no request need be refused. The rows
//! of issue 38, measured there with the real gateway, and three of which it says that they are right.

use super::cell::{BIN_MS, at};
use super::mixture::Names;
use flashweir_admission::sentry;
use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, Fault, FaultKind, FlashCrowdPolicy, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel,
    WarmUp, Work, run_checking_calm,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

/// Requests that wait the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Time that the origin waits before it answers, seconds.
    pub(crate) wait_s: f64,
    /// Requests per second, and the second from which on that is the rate.
    pub(crate) rates: &'static [(f64, f64)],
    /// Second in which the origin starts, requests that it takes in before it is warm, and the seconds that
    /// each of them waits besides.
    pub(crate) warm_up: Option<(f64, u64, f64)>,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The word that chooses it.
    pub(crate) name: &'static str,
    /// Its requests; all but the first kind are reported as slow.
    pub(crate) kinds: &'static [Kind],
    /// Times in which work takes longer; the first kind then works for its time.
    pub(crate) stalls: Option<Stalls>,
    /// Processors that the work of the first kind shares; a thousand if there is no number.
    pub(crate) processors: Option<u32>,
}

/// Repeated times in which the origin is slow, or stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    from_s: f64,
    count: u32,
    every_s: f64,
    length_s: f64,
    /// Work takes so much longer meanwhile.
    factor: f64,
}

/// Simulated time, and the target.
pub(crate) const LENGTH_S: f64 = 50.0;
pub(crate) const TARGET: Duration = Duration::from_secs(1);

const PAGES: Kind = Kind { wait_s: 0.01, rates: &[(30.0, 0.0)], warm_up: None };

/// Half of what one processor can do.
const NODE_PAGES: Kind = Kind { wait_s: 0.007, rates: &[(67.0, 0.0)], warm_up: None };

const fn slow(wait_s: f64, rates: &'static [(f64, f64)]) -> Kind {
    Kind { wait_s, rates, warm_up: None }
}

const fn row(name: &'static str, kinds: &'static [Kind]) -> Row {
    Row { name, kinds, stalls: None, processors: None }
}

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    row("polls-20s", &[PAGES, slow(20.0, &[(2.0, 0.0)])]),
    row(
        "polls-20s-pages-to-150",
        &[Kind { rates: &[(30.0, 0.0), (150.0, 20.0)], ..PAGES }, slow(20.0, &[(2.0, 0.0)])],
    ),
    row("1/s-of-10s", &[PAGES, slow(10.0, &[(1.0, 0.0)])]),
    row("2/s-of-6s", &[PAGES, slow(6.0, &[(2.0, 0.0)])]),
    row(".5/s-of-5s", &[PAGES, slow(5.0, &[(0.5, 0.0)])]),
    row(".2/s-of-20s", &[PAGES, slow(20.0, &[(0.2, 0.0)])]),
    row("2/s-of-3s", &[PAGES, slow(3.0, &[(2.0, 0.0)])]),
    row("all-800ms-20-to-60", &[slow(0.8, &[(20.0, 0.0), (60.0, 20.0)])]),
    row("all-2s", &[slow(2.0, &[(10.0, 0.0)])]),
    row("all-5s", &[slow(5.0, &[(3.0, 0.0)])]),
    // Caches and pools of the origin are cold, too.
    row("warm-up", &[Kind { wait_s: 0.01, rates: &[(40.0, 0.0)], warm_up: Some((0.0, 40, 1.99)) }]),
    // A compiler that is cold, beside polls: one processor has more to do than it can for half a second. A
    // real Node refused 278 of 1,685 pages in one run of two.
    Row {
        processors: Some(1),
        stalls: Some(Stalls { from_s: 0.0, count: 1, every_s: 1.0, length_s: 0.5, factor: 10.0 }),
        ..row("compiler-beside-polls", &[NODE_PAGES, slow(20.0, &[(2.0, 0.0)])])
    },
    // A deployment: the gateway knows the service, and the origin is cold again. The real gateway refused 945
    // of 1,574 in 40 s.
    row("restart", &[Kind { wait_s: 0.01, rates: &[(40.0, 0.0)], warm_up: Some((15.0, 40, 1.99)) }]),
    row("dependency", &[Kind { wait_s: 0.05, rates: &[(40.0, 0.0)], warm_up: Some((15.0, 800, 2.95)) }]),
    // The same for one of two URLs. The real gateway refused 701 to 770 of 1,970 requests of the other one.
    row(
        "one-slow-url",
        &[
            slow(0.05, &[(40.0, 0.0)]),
            Kind { wait_s: 0.05, rates: &[(40.0, 0.0)], warm_up: Some((15.0, 800, 2.95)) },
        ],
    ),
    // As if none of them were an upgrade: the gateway does not count those.
    row("300-at-once-of-55s", &[PAGES, slow(55.0, &[(300.0, 0.0), (0.0, 1.0)])]),
    // The same once the times of pages are known. The real gateway refused 719 of 735 pages in 25 s.
    row("300-at-once-later", &[PAGES, slow(55.0, &[(0.0, 0.0), (300.0, 0.4), (0.0, 1.4)])]),
    row(
        "bursts-of-200",
        &[slow(
            0.01,
            &[
                (30.0, 0.0),
                (20_000.0, 5.0),
                (30.0, 5.01),
                (20_000.0, 15.0),
                (30.0, 15.01),
                (20_000.0, 25.0),
                (30.0, 25.01),
                (20_000.0, 35.0),
                (30.0, 35.01),
            ],
        )],
    ),
    Row {
        name: "stalls",
        kinds: &[PAGES],
        stalls: Some(Stalls { from_s: 1.0, count: 25, every_s: 2.0, length_s: 0.4, factor: STALLED }),
        processors: None,
    },
    // Another program on the origin's machine takes half of its time for some seconds.
    Row {
        name: "flapping-beside-polls",
        kinds: &[PAGES, slow(20.0, &[(2.0, 0.0)])],
        stalls: Some(Stalls { from_s: 22.0, count: 40, every_s: 0.18, length_s: 0.08, factor: STALLED }),
        processors: None,
    },
];

impl Row {
    /// A run behind the stages of the gateway, with windows of calm looked for: the sentry as it is, or with
    /// a limit set by hand.
    pub(crate) fn run(&self, names: Names, limit: Option<u32>, seed: u64) -> RunOutcome {
        let known_limits = limit.into_iter().map(|limit| (at(0.0), limit)).collect();
        let sentry = SentryPolicy { known_limits, ..SentryPolicy::new(sentry::Policy::single(TARGET)) };
        let time = |kind: &Kind| Duration::from_secs_f64(kind.wait_s);
        let works = |number: u32| self.stalls.is_some() && number == 0;
        let class = |(kind, number): (&Kind, u32)| ClassModel {
            host: if names == Names::Known { number } else { 0 },
            warm_up: kind.warm_up.map(|(from_s, requests, wait_s)| WarmUp {
                from: at(from_s),
                requests,
                wait: Duration::from_secs_f64(wait_s),
            }),
            wait: Work::Constant(if works(number) { Duration::ZERO } else { time(kind) }),
            timeout: Duration::from_secs(60),
            good_within: TARGET,
            ..ClassModel::new(
                format!("{} s", kind.wait_s),
                Work::Constant(if works(number) { time(kind) } else { Duration::ZERO }),
            )
        };
        let stream = |(kind, number): (&Kind, u16)| Stream {
            arrivals: ArrivalProcess::Poisson(kind.profile()),
            classes: vec![Share { class: number, weight: 1.0 }],
        };
        let schedule =
            Schedule::new(self.kinds.iter().zip(0..).map(stream).collect(), seed).expect("streams");
        let replaced = ClassModel::new("replaced", Work::Constant(Duration::ZERO));
        let scenario = Scenario {
            classes: self.kinds.iter().zip(0..).map(class).collect(),
            policy: Policy::default_composition(FlashCrowdPolicy::default(), sentry),
            seed,
            faults: self.stalls.map(Stalls::faults).unwrap_or_default(),
            bin: Duration::from_millis(BIN_MS),
            ..Scenario::new(
                schedule,
                replaced,
                ServerModel::processor_sharing(self.processors.unwrap_or(1_000)),
            )
        };
        run_checking_calm(&scenario).expect("a run")
    }
}

impl Stalls {
    fn faults(self) -> Vec<Fault> {
        let starts = (0..self.count).map(|stall| self.from_s + self.every_s * f64::from(stall));
        starts
            .map(|start_s| Fault {
                kind: FaultKind::Slow(self.factor),
                during: at(start_s)..at(start_s + self.length_s),
            })
            .collect()
    }
}

/// Work takes so much longer that none ends.
const STALLED: f64 = 10_000.0;

impl Kind {
    fn profile(&self) -> RateProfile {
        let ends_s = self.rates.iter().skip(1).map(|(_, from_s)| *from_s).chain([LENGTH_S]);
        let parts = self.rates.iter().zip(ends_s).map(|((rate, from_s), end_s)| {
            RateProfile::constant(*rate, Duration::from_secs_f64(end_s - from_s)).expect("a rate")
        });
        parts.reduce(RateProfile::then).expect("a rate")
    }
}

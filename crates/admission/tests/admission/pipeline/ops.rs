//! Operations on a world of pipelines, drawn at random.

use crate::pipeline::world::{CLASSES, SERVICES, WORKERS};
use flashweir_admission::pipeline::{FailureSource, OriginReport, RequestOutcome};
use flashweir_admission::sentry::{BatchTest, Decide};
use flashweir_core::Duration;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentryMode {
    Off,
    /// In shadow, with a limit of one and no queue.
    Shadow,
    Live,
}

/// The numbers of a plan of the sentry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiting {
    pub(crate) limit: u32,
    pub(crate) queue: u32,
    pub(crate) decide: Decide,
}

/// `which` is taken modulo the number of requests that fit.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Class [`CLASSES`] is exempt.
    Arrive {
        worker: usize,
        service: usize,
        class: usize,
        client: u64,
        is_closed: bool,
    },
    Next {
        worker: usize,
        service: usize,
    },
    Settle {
        worker: usize,
        service: usize,
    },
    Leave {
        which: usize,
    },
    LeaveAgain {
        which: usize,
    },
    TakeShare {
        which: usize,
    },
    EndAtOrigin {
        which: usize,
        outcome: RequestOutcome,
    },
    Pause {
        which: usize,
        is_resume: bool,
    },
    Finish {
        which: usize,
        outcome: RequestOutcome,
    },
    Ceiling {
        worker: usize,
        limit: u8,
        is_stale: bool,
    },
    SentryPlan {
        service: usize,
        limiting: Limiting,
        worker: Option<usize>,
        is_stale: bool,
    },
    Configure {
        worker: usize,
        in_gateway_max: usize,
        is_shadow: bool,
    },
    Capacity {
        worker: usize,
        service: usize,
        capacity: usize,
    },
    /// A new version of a service, which each worker takes over later.
    Reload {
        service: usize,
        mode: SentryMode,
    },
    TakeOver {
        worker: usize,
        service: usize,
    },
    Candidate {
        worker: usize,
        service: usize,
        is_set: bool,
    },
    /// A candidate of the flash-crowd stage gets this ceiling, and is new where there was none; without one
    /// it goes.
    CeilingCandidate {
        worker: usize,
        limit: Option<u8>,
        is_stale: bool,
    },
    /// Discards of a worker's ladder, and the rate that the service's upstream asks it for, requests in a
    /// thousand seconds.
    BetweenNodes {
        worker: usize,
        service: usize,
        discards_from: Option<u8>,
        discards_excess: bool,
        rate_milli: Option<u64>,
    },
    Clock {
        forward: Duration,
        back: Duration,
    },
    Drain {
        worker: usize,
        service: usize,
    },
}

pub(crate) fn ops(count_max: usize) -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 1..count_max)
}

fn op() -> impl Strategy<Value = Op> {
    let place = || (0..WORKERS, 0..SERVICES);
    let which = || 0..1_000usize;
    let rarely = || proptest::bool::weighted(0.1);
    let arrive = (place(), 0..=CLASSES, 0..12u64, proptest::bool::weighted(0.03)).prop_map(
        |((worker, service), class, client, is_closed)| Op::Arrive {
            worker,
            service,
            class,
            client,
            is_closed,
        },
    );
    let sentry_plan = (0..SERVICES, limiting(), proptest::option::of(0..WORKERS), rarely()).prop_map(
        |(service, limiting, worker, is_stale)| Op::SentryPlan { service, limiting, worker, is_stale },
    );
    let rate_milli = proptest::option::of(prop_oneof![Just(0), 0..100_000u64]);
    let between_nodes = (place(), proptest::option::of(0..3u8), any::<bool>(), rate_milli).prop_map(
        |((worker, service), discards_from, discards_excess, rate_milli)| Op::BetweenNodes {
            worker,
            service,
            discards_from,
            discards_excess,
            rate_milli,
        },
    );
    let in_gateway_max = prop_oneof![Just(usize::MAX), 0..20usize];
    let mode = prop_oneof![Just(SentryMode::Off), Just(SentryMode::Shadow), Just(SentryMode::Live)];
    prop_oneof![
        30 => arrive,
        3 => place().prop_map(|(worker, service)| Op::Next { worker, service }),
        6 => place().prop_map(|(worker, service)| Op::Settle { worker, service }),
        3 => which().prop_map(|which| Op::Leave { which }),
        1 => which().prop_map(|which| Op::LeaveAgain { which }),
        6 => which().prop_map(|which| Op::TakeShare { which }),
        5 => (which(), outcome()).prop_map(|(which, outcome)| Op::EndAtOrigin { which, outcome }),
        4 => (which(), any::<bool>()).prop_map(|(which, is_resume)| Op::Pause { which, is_resume }),
        10 => (which(), outcome()).prop_map(|(which, outcome)| Op::Finish { which, outcome }),
        2 => (0..WORKERS, 0..4u8, rarely())
            .prop_map(|(worker, limit, is_stale)| Op::Ceiling { worker, limit, is_stale }),
        3 => sentry_plan,
        1 => (0..WORKERS, in_gateway_max, any::<bool>()).prop_map(|(worker, in_gateway_max, is_shadow)| {
            Op::Configure { worker, in_gateway_max, is_shadow }
        }),
        1 => (place(), 0..15usize)
            .prop_map(|((worker, service), capacity)| Op::Capacity { worker, service, capacity }),
        2 => (0..SERVICES, mode).prop_map(|(service, mode)| Op::Reload { service, mode }),
        4 => place().prop_map(|(worker, service)| Op::TakeOver { worker, service }),
        2 => (place(), proptest::bool::weighted(0.8))
            .prop_map(|((worker, service), is_set)| Op::Candidate { worker, service, is_set }),
        2 => (0..WORKERS, proptest::option::weighted(0.9, 0..4u8), rarely())
            .prop_map(|(worker, limit, is_stale)| Op::CeilingCandidate { worker, limit, is_stale }),
        2 => between_nodes,
        8 => clock(),
        2 => place().prop_map(|(worker, service)| Op::Drain { worker, service }),
    ]
}

fn limiting() -> impl Strategy<Value = Limiting> {
    let test = |is_whole| Decide::Batch(BatchTest { servers_milli: 3_000, quantile_milli: 2_000, is_whole });
    let decide = prop_oneof![
        4 => Just(Decide::Reservation),
        1 => any::<bool>().prop_map(test),
        1 => Just(Decide::Threshold),
    ];
    (1..10u32, 0..8u32, decide).prop_map(|(limit, queue, decide)| Limiting { limit, queue, decide })
}

fn outcome() -> impl Strategy<Value = RequestOutcome> {
    let reported = OriginReport { measured_us: Some(4_000) };
    prop_oneof![
        4 => Just(RequestOutcome::Completed(OriginReport::default())),
        2 => Just(RequestOutcome::Completed(reported)),
        1 => Just(RequestOutcome::Failed(FailureSource::Origin)),
        1 => Just(RequestOutcome::Failed(FailureSource::Gateway)),
        1 => Just(RequestOutcome::Failed(FailureSource::Client)),
        1 => Just(RequestOutcome::Abandoned),
        1 => Just(RequestOutcome::Withdrawn),
    ]
}

/// Mostly a little later; sometimes hours later, and sometimes earlier.
fn clock() -> impl Strategy<Value = Op> {
    let forward = |millis| Op::Clock { forward: Duration::from_millis(millis), back: Duration::ZERO };
    let back = |millis| Op::Clock { forward: Duration::ZERO, back: Duration::from_millis(millis) };
    prop_oneof![
        10 => (0..60u64).prop_map(forward),
        3 => (100..2_000u64).prop_map(forward),
        1 => (1..50u64).prop_map(move |hours| forward(hours * 3_600_000)),
        1 => (1..5_000u64).prop_map(back),
    ]
}

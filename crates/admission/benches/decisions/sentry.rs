//! The sentry's decisions: eight classes, fairness on, four gates on one count.

use criterion::{Criterion, Throughput};
use flashweir_admission::sentry::{
    Arrived, BatchTest, CandidateGate, ClassPolicy, Common, Costs, Decide, Ending, Plan, Policy, Position,
    Released, SentryGate, SentryPlanner, SentryRequest,
};
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Instant, Rate, Rng};
use std::hint::black_box;
use std::sync::Arc;

const CLASSES: u64 = 8;
pub(super) const GATES: usize = 4;
/// Requests drawn beforehand, enough that branch prediction does not learn them.
const REQUESTS: usize = 65_536;

/// Classes with guarantees (spent at once), and the limit that they share.
pub(super) fn plan(classes: u64, decide: Decide, limit: u32, hold_len: u32) -> (Policy, Plan) {
    let class = |rank: u64| ClassPolicy {
        revenue: 100.0 - rank as f64,
        guaranteed_rate: Rate::from_per_second(1.0),
        ..ClassPolicy::default()
    };
    let classes = (0..classes).map(class).collect();
    let policy = Policy { classes, ..Policy::single(Duration::from_secs(1)) };
    let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
    for class in &mut plan.classes {
        (class.limit, class.hold_len, class.admit_share) = (limit, hold_len, 0);
        class.hold_for = Duration::from_secs(3_600);
        class.newest_first_after = Duration::from_secs(3_600);
    }
    let by_url_class_us = (0..URL_CLASSES as u32).map(|url| 200 + url * 37 % 90_000).collect();
    let costs = Costs { by_url_class_us, ..(*plan.costs).clone() };
    (policy, Plan { epoch: 1, decide, limit, knee_milli: 3_000, costs: Arc::new(costs), ..plan })
}

struct Bench {
    gates: Vec<SentryGate<u64>>,
    requests: Vec<SentryRequest>,
    now: Instant,
    next: usize,
}

impl Bench {
    fn new(decide: Decide, limit: u32, hold_len: u32) -> Self {
        let (policy, plan) = plan(CLASSES, decide, limit, hold_len);
        let common = Arc::new(Common::new(GATES));
        let mut rng = Rng::new(1);
        let ask = |_| SentryRequest {
            class: rng.below(CLASSES) as u8,
            url_class: rng.next_u64() as u32,
            client_key: rng.below(500),
            position: Position::Usual,
            is_uncounted: false,
        };
        Self {
            gates: (0..GATES).map(|gate| SentryGate::new(common.clone(), gate, &policy, &plan)).collect(),
            requests: (0..REQUESTS).map(ask).collect(),
            now: Instant::from_secs(1),
            next: 0,
        }
    }

    /// One more request, a little later; guarantees are a second's worth at most and soon spent.
    fn arrive(&mut self) -> Arrived<u64> {
        self.next = (self.next + 1) % REQUESTS;
        self.now += Duration::from_nanos(50);
        self.gates[0].arrive(self.now, self.requests[self.next], 7)
    }

    /// Fills the room in flight and the queue.
    fn filled(mut self, count: usize) -> Self {
        for _ in 0..count {
            black_box(self.arrive());
        }
        self
    }
}

/// From arrival to end, by what becomes of the request.
pub(super) fn decisions(c: &mut Criterion) {
    let ending = Ending { completed: true, ..Ending::default() };
    let mut bench = Bench::new(Decide::Reservation, 1_000_000, 1_000);
    c.bench_function("sentry, 8 classes: let in, and its end", |b| {
        b.iter(|| {
            let Arrived::Admit(_, permit) = bench.arrive() else { unreachable!("there is room") };
            bench.gates[0].end(bench.now, permit, ending);
        });
    });
    // The queue of each class is full, 1,000 clients wait in it; the client with most waiting gives way.
    let mut bench = Bench::new(Decide::Reservation, 1, 1_000).filled(20_000);
    c.bench_function("sentry, 8 classes: refused, or held instead of another", |b| {
        b.iter(|| black_box(bench.arrive()))
    });
    // One ends, one of those who wait goes, another comes to wait.
    let mut bench = Bench::new(Decide::Reservation, 64, 1_000).filled(20_000);
    let mut permits: Vec<_> = Vec::new();
    let Bench { gates, now, .. } = &mut bench;
    let (_, more) = plan(CLASSES, Decide::Reservation, 200, 1_000);
    gates[0].apply(&Plan { epoch: 2, ..more });
    while let Some(Released::Admit(_, permit)) = gates[0].next(*now) {
        permits.push(permit);
    }
    c.bench_function("sentry, 8 classes: an end, the next one's release, and another one held", |b| {
        b.iter(|| {
            let permit = permits.pop().expect("one is in flight");
            bench.gates[0].end(bench.now, permit, ending);
            if let Some(Released::Admit(_, permit)) = bench.gates[0].next(bench.now) {
                permits.push(permit);
            }
            black_box((bench.gates[0].who_waits(), bench.arrive()))
        });
    });
}

/// Every request refused: what a crowd costs (Cataclysm, figure 4: 4,000 a second in batches, 19,000 by
/// threshold).
pub(super) fn refusals(c: &mut Criterion) {
    let test = BatchTest { servers_milli: 1_000, quantile_milli: 1_000, is_whole: false };
    let mut group = c.benchmark_group("sentry, all refused");
    group.throughput(Throughput::Elements(1));
    let mut bench = Bench::new(Decide::Threshold, 1, 0).filled(100);
    group.bench_function("threshold", |b| b.iter(|| black_box(bench.arrive())));
    // Two servers' worth is there, and no other request would be answered in time.
    let mut bench = Bench::new(Decide::Batch(test), 1_000_000, 1_000);
    let (_, mut open) = plan(CLASSES, Decide::Batch(test), 1_000_000, 1_000);
    open.epoch = 3;
    for class in &mut open.classes {
        class.target = Duration::from_micros(1);
        class.delay = Duration::from_micros(10);
    }
    bench.gates[0].apply(&open);
    group.bench_function("batch", |b| {
        b.iter(|| {
            let arrived = bench.arrive();
            // A round is due after some number of requests.
            while let Some(released) = bench.gates[0].next(bench.now) {
                black_box(released);
            }
            arrived
        });
    });
    group.finish();
}

/// Cost of a candidate policy beside the live one: it evaluates a request, and records its admission and its
/// end.
pub(super) fn compared(c: &mut Criterion) {
    let (policy, open) = plan(CLASSES, Decide::Reservation, 1_000_000, 1_000);
    let mut gate = CandidateGate::new(Arc::new(Common::new(GATES)), 0, &policy, &open);
    let Bench { requests, mut now, mut next, .. } = Bench::new(Decide::Reservation, 1, 0);
    c.bench_function("candidate, 8 classes: let in by both, and its end", |b| {
        b.iter(|| {
            next = (next + 1) % REQUESTS;
            now += Duration::from_nanos(50);
            let key = gate.arrive(now, requests[next]).expect("few are compared");
            gate.live_let_in(now, key);
            gate.live_ended(now, key, true);
        });
    });
    // The queue of each class is full, and the live policy refuses.
    let (_, full) = plan(CLASSES, Decide::Reservation, 1, 1_000);
    gate.apply(&Plan { epoch: 2, ..full });
    c.bench_function("candidate, 8 classes: refused by both, or held", |b| {
        b.iter(|| {
            next = (next + 1) % REQUESTS;
            now += Duration::from_nanos(50);
            let key = gate.arrive(now, requests[next]).expect("few are compared");
            gate.live_refused(now, key);
        });
    });
}

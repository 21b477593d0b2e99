//! Cost of a decision: one bucket, the whole gate of NEWS, a planner tick over 100,000 responses, the
//! sentry's gate, and the whole pipeline.

#[path = "decisions/pipeline.rs"]
mod pipeline;
#[path = "decisions/sentry.rs"]
mod sentry;
#[path = "decisions/ticks.rs"]
mod ticks;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use flashweir_admission::flash_crowd::{
    Baseline, CeilingPriority, FlashCrowdPlanner, HotSpotLimit, Limit, Plan, Response, Sample, Settings,
};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_admission::{Flow, PlannerDriver};
use flashweir_core::{Duration, Instant, Rate, Rng};
use std::hint::black_box;
use std::sync::Arc;

fn token_bucket(c: &mut Criterion) {
    let mut bucket = TokenBucket::full(Instant::ZERO, Rate::from_per_second(1e6), 1_000);
    let mut now = Instant::ZERO;
    c.bench_function("token bucket", |b| {
        b.iter(|| {
            now += Duration::from_nanos(700);
            black_box(bucket.admit(now))
        });
    });
}

fn gate(c: &mut Criterion) {
    let limited = Plan {
        epoch: 1,
        limit: Limit::HotSpots(vec![HotSpotLimit { key: 5, rate: Rate::from_per_second(1_000.0) }]),
        ..Plan::open(1)
    };
    for (name, plan) in [("gate, open", Plan::open(1)), ("gate, refusing nine of ten", limited)] {
        let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
        gate.apply(Instant::ZERO, &plan);
        let mut rng = Rng::new(1);
        let mut now = Instant::ZERO;
        c.bench_function(name, |b| {
            b.iter(|| {
                now += Duration::from_micros(100);
                let person_key = rng.next_u64();
                black_box(gate.arrive(now, person_key % 8, person_key, CeilingPriority::LAST))
            });
        });
    }
}

fn planner_tick(c: &mut Criterion) {
    const RESPONSES: usize = 100_000;
    const GATES: usize = 8;
    let mut rng = Rng::new(1);
    let at = |tick: u64| Instant::from_millis(100 * tick);
    let samples: Vec<Sample> = (0..GATES)
        .map(|gate| {
            let mut drained = ConnectionPipeline::new(gate, Arc::new(RefusedAttempts::default()));
            for _ in 0..RESPONSES / GATES {
                drained.observe_response(Response {
                    started: Instant::ZERO,
                    bytes: 500 + rng.below(100_000),
                    latency_s: rng.exponential(0.005) as f32,
                    rate_bytes_per_s: (rng.below(2) == 0).then(|| rng.exponential(1e6) as f32),
                    url_class: rng.next_u64() as u32,
                });
            }
            let count = (RESPONSES / GATES) as u64;
            let flow = Flow { offered: count, admitted: count, ..Flow::default() };
            Sample { flow, unique_offered: count, completed: count, ..drained.drain(Instant::ZERO) }
        })
        .collect();
    c.bench_function("planner tick over 100,000 responses", |b| {
        b.iter_batched_ref(
            || {
                let mut planner = PlannerDriver::new(
                    FlashCrowdPlanner::new(
                        Settings { gates: GATES, ..Settings::default() },
                        &Baseline::default(),
                    ),
                    Instant::ZERO,
                );
                for tick in 1..3 {
                    samples.iter().for_each(|sample| planner.observe(at(tick), sample));
                    planner.plan(at(tick));
                }
                planner
            },
            |planner| {
                samples.iter().for_each(|sample| planner.observe(at(3), sample));
                black_box(planner.plan(at(3)))
            },
            BatchSize::LargeInput,
        );
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = token_bucket, gate, planner_tick, ticks::ticks, sentry::decisions, sentry::refusals, sentry::compared, pipeline::decisions
}
criterion_main!(benches);

//! The sentry's planner: eight classes in a crowd, two hundred pages, a tick each 20 ms.

use criterion::{Criterion, Throughput};
use flashweir_admission::sentry::{
    ClassCounts, ClassPolicy, LevelSum, Policy, Sample, SentryPlanner, UrlSum,
};
use flashweir_admission::{Binding, Planner as _};
use flashweir_core::measure::histogram::index;
use flashweir_core::{Duration, Instant, Rng};
use std::hint::black_box;
use std::sync::Arc;

const CLASSES: usize = 8;
const TICK_MS: u64 = 20;
/// A second: some of its ticks close a window, and the distribution over origins is computed again.
const TICKS: u64 = 50;
const PAGES: u64 = 200;
/// Of each tick: 500 a second, 8 in flight, so that each takes 16 ms.
const COMPLETED: u64 = 10;
const IN_FLIGHT: u64 = 8;

fn sample(tick: u64, rng: &mut Rng) -> Sample {
    let class =
        ClassCounts { offered: 5, unique_offered: 5, admitted: 1, shed: 4, held: 4, ..Default::default() };
    let mut sample = Sample {
        from: Instant::from_millis(TICK_MS * tick),
        to: Instant::from_millis(TICK_MS * (tick + 1)),
        offered: 5 * CLASSES as u64,
        admitted: COMPLETED,
        completed: COMPLETED,
        shed: 5 * CLASSES as u64 - COMPLETED,
        in_flight: IN_FLIGHT as u32,
        in_flight_nanos: IN_FLIGHT * TICK_MS * 1_000_000,
        waiting_nanos: TICK_MS * 1_000_000,
        classes: vec![class; CLASSES],
        ..Sample::default()
    };
    for _ in 0..COMPLETED {
        let latency_us = 1_000 + rng.below(30_000);
        sample.latency_us.record(latency_us);
        let (count, latency_us_squared) = (1, latency_us * latency_us);
        let url_class = rng.below(PAGES) as u16;
        sample.urls.push(UrlSum { url_class, count, latency_us, latency_us_squared, ..UrlSum::default() });
    }
    (0..IN_FLIGHT).for_each(|_| sample.age_us.record(rng.below(30_000)));
    sample.levels.push(LevelSum {
        level: index(IN_FLIGHT),
        nanos: TICK_MS * 1_000_000,
        in_flight_nanos: sample.in_flight_nanos,
        completed: COMPLETED,
    });
    sample
}

pub(super) fn ticks(c: &mut Criterion) {
    let classes =
        (0..CLASSES).map(|rank| ClassPolicy { revenue: 10.0 - rank as f64, ..ClassPolicy::default() });
    let policy = Policy { classes: classes.collect(), ..Policy::single(Duration::from_secs(1)) };
    let mut planner = SentryPlanner::new(Arc::new(policy));
    let (mut rng, mut tick) = (Rng::new(1), 0);
    let mut group = c.benchmark_group("sentry");
    group.throughput(Throughput::Elements(TICKS));
    group.bench_function("planner, a second of ticks, 8 classes", |b| {
        b.iter(|| {
            for _ in 0..TICKS {
                let sample = sample(tick, &mut rng);
                tick += 1;
                planner.observe(sample.to, &sample);
                black_box(planner.plan(sample.to, &Binding::default()));
            }
        });
    });
    group.finish();
}

//! Cost that the loop adds to a planner's tick: the same samples through the bare driver and through the
//! loop, which catches panics, watches, numbers and publishes.

use arc_swap::ArcSwap;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flashweir_admission::Flow;
use flashweir_admission::flash_crowd::{self, Baseline, FlashCrowdPlanner, PlannerMode, Settings};
use flashweir_admission::pipeline::ConnectionPipeline;
use flashweir_admission::sentry::{self, Policy, SentryPlanner};
use flashweir_admission::{LimitPlan, Planner, PlannerDriver};
use flashweir_core::{Duration, Instant};
use flashweir_runtime::planner_loop::{LoopEvent, Outlet, PlannerLoop, put_in_force};
use std::convert::Infallible;
use std::sync::Arc;

struct Surroundings<P: Planner> {
    now: Instant,
    interval: Duration,
    build: fn() -> P,
    slot: ArcSwap<P::Plan>,
}

impl<P: Planner<Plan: LimitPlan>> Outlet<P> for Surroundings<P> {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.now
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn planner(&mut self) -> Option<P> {
        Some((self.build)())
    }

    fn epoch_in_force(&self) -> u64 {
        self.slot.load().epoch()
    }

    fn publish(&mut self, _: Instant, plan: P::Plan, _: Option<&P>) -> Result<(), Infallible> {
        put_in_force(&self.slot, &plan);
        Ok(())
    }

    fn report(&mut self, _: Instant, event: &LoopEvent) {
        panic!("a well planner fails: {event:?}");
    }
}

fn compare<P: Planner<Plan: LimitPlan>>(
    c: &mut Criterion,
    name: &str,
    interval: Duration,
    build: fn() -> P,
    sample: impl Fn(Instant, Instant) -> P::Sample,
) {
    let mut group = c.benchmark_group("planner_tick");
    let mut now = Instant::from_secs(1);
    let mut driver = PlannerDriver::new(build(), now);
    let slot = ArcSwap::from_pointee(driver.plan(now));
    group.bench_function(BenchmarkId::new(name, "driver"), |b| {
        b.iter(|| {
            let from = now;
            now += interval;
            driver.observe(now, &sample(from, now));
            driver.observe(now, &sample(from, now));
            slot.store(Arc::new(driver.plan(now)));
        });
    });
    let first = PlannerDriver::new(build(), now).plan(now);
    let mut outlet = Surroundings { now, interval, build, slot: ArcSwap::from_pointee(first.clone()) };
    let mut planner_loop = PlannerLoop::new(&mut outlet, first);
    group.bench_function(BenchmarkId::new(name, "loop"), |b| {
        b.iter(|| {
            let from = outlet.now;
            outlet.now += interval;
            let now = outlet.now;
            planner_loop.observe(&mut outlet, now, &sample(from, now));
            planner_loop.observe(&mut outlet, now, &sample(from, now));
            planner_loop.evaluate(&mut outlet)
        });
    });
    group.finish();
}

fn news(c: &mut Criterion) {
    let build = || {
        let settings = Settings {
            mode: PlannerMode::Repaired,
            interval: Duration::from_millis(100),
            margin: 0.2,
            gates: 2,
            hot_spots: true,
            shadow: false,
        };
        FlashCrowdPlanner::new(settings, &Baseline::default())
    };
    compare(c, "news", Duration::from_millis(100), build, |from, to| {
        let response = flash_crowd::Response {
            started: from,
            latency_s: 0.005,
            url_class: 7,
            bytes: 10_000,
            rate_bytes_per_s: None,
        };
        let mut gate = ConnectionPipeline::new(0, Arc::default());
        (0..32).for_each(|_| gate.observe_response(response));
        flash_crowd::Sample {
            from,
            to,
            flow: Flow { offered: 32, admitted: 32, ..Flow::default() },
            unique_offered: 32,
            completed: 32,
            ..gate.drain(to)
        }
    });
}

fn sentries(c: &mut Criterion) {
    let build = || SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))));
    compare(c, "sentry", Duration::from_millis(20), build, |from, to| sentry::Sample {
        from,
        to,
        offered: 5,
        completed: 5,
        in_flight_nanos: 40_000_000,
        ..sentry::Sample::default()
    });
}

criterion_group!(benches, news, sentries);
criterion_main!(benches);

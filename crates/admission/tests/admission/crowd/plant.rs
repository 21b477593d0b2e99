//! A first-come-first-served service with a fixed pool of workers and an unbounded queue, driven by the real
//! gate and planner in virtual time. The full simulator comes with its own crate; this is what unit-level
//! tests of the flash-crowd loop need and no more.

use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{
    Baseline, CeilingPriority, FlashCrowdPlanner, Mode, Plan, Response, Settings,
};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_core::{Duration, Instant, Rng, Verdict};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Time for which one request keeps a worker busy.
#[derive(Clone, Copy)]
pub(crate) enum Service {
    Constant(f64),
    Exponential(f64),
}

/// One run's circumstances.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) service: Service,
    /// Arrivals per second at a time in seconds.
    pub(crate) offered_rps: fn(f64) -> f64,
    /// The service is this much slower at a time in seconds (1 = usual).
    pub(crate) slowdown: fn(f64) -> f64,
    /// Start of arrivals.
    pub(crate) begins_s: f64,
    pub(crate) duration_s: f64,
    pub(crate) settings: Settings,
    pub(crate) host_of: fn(f64, &mut Rng) -> u64,
}

/// Outcome of one request.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) arrived_s: f64,
    pub(crate) latency_s: Option<f64>,
    pub(crate) host: u64,
}

/// Everything a run shows.
pub(crate) struct Run {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) plans: Vec<(f64, Plan)>,
}

impl Run {
    /// Completed within `target_s` per second of arrival time.
    pub(crate) fn goodput_rps(&self, from_s: f64, to_s: f64, target_s: f64) -> f64 {
        let good = self.arrived(from_s, to_s).filter(|o| o.latency_s.is_some_and(|l| l <= target_s)).count();
        good as f64 / (to_s - from_s)
    }

    pub(crate) fn arrived(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(move |o| o.arrived_s >= from_s && o.arrived_s < to_s)
    }

    pub(crate) fn latency_quantile_s(&self, from_s: f64, to_s: f64, quantile: f64) -> f64 {
        let mut all: Vec<f64> = self.arrived(from_s, to_s).filter_map(|o| o.latency_s).collect();
        all.sort_by(f64::total_cmp);
        all.get((quantile * all.len() as f64) as usize).copied().unwrap_or(0.0)
    }

    /// The first time from `from_s` on at which the mode was as asked.
    pub(crate) fn first(&self, from_s: f64, is: impl Fn(&Plan) -> bool) -> Option<f64> {
        self.plans.iter().find(|(at, plan)| *at >= from_s && is(plan)).map(|(at, _)| *at)
    }

    pub(crate) fn was_ever_limited(&self) -> bool {
        self.plans.iter().any(|(_, plan)| plan.explanation.mode != Mode::Normal)
    }
}

pub(crate) fn run(scenario: &Scenario) -> Run {
    let mut rng = Rng::new(scenario.seed);
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(scenario.settings, &Baseline::default()), Instant::ZERO);
    let mut idle_from: BinaryHeap<Reverse<u64>> = (0..scenario.workers).map(|_| Reverse(0)).collect();
    let mut finishing: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut run = Run { outcomes: Vec::new(), plans: Vec::new() };
    let mut arrives_s = scenario.begins_s;
    loop {
        arrives_s += rng.exponential(1.0 / (scenario.offered_rps)(arrives_s).max(1e-3));
        let arrives = Instant::from_nanos((arrives_s * 1e9) as u64);
        while planner.next_plan_at() <= arrives {
            let now = planner.next_plan_at();
            finish(&mut finishing, &run.outcomes, &mut gate, now);
            planner.observe(now, &gate.drain(now));
            let plan = planner.plan(now);
            gate.apply(now, &plan);
            run.plans.push((now.as_secs_f64(), plan));
        }
        if arrives_s > scenario.duration_s {
            return run;
        }
        let host = (scenario.host_of)(arrives_s, &mut rng);
        let person_key = rng.next_u64();
        let mut outcome = Outcome { arrived_s: arrives_s, latency_s: None, host };
        if gate.arrive(arrives, host, person_key, CeilingPriority::LAST) == Verdict::Admit {
            let service_s = match scenario.service {
                Service::Constant(mean) => mean,
                Service::Exponential(mean) => rng.exponential(mean),
            } * (scenario.slowdown)(arrives_s);
            let Reverse(idle) = idle_from.pop().expect("as many entries as workers");
            let done = idle.max(arrives.as_nanos()) + (service_s * 1e9) as u64;
            idle_from.push(Reverse(done));
            outcome.latency_s = Some(done as f64 / 1e9 - arrives_s);
            finishing.push(Reverse((done, run.outcomes.len())));
        }
        run.outcomes.push(outcome);
    }
}

fn finish(
    finishing: &mut BinaryHeap<Reverse<(u64, usize)>>,
    outcomes: &[Outcome],
    gate: &mut ConnectionPipeline,
    now: Instant,
) {
    while finishing.peek().is_some_and(|Reverse((done, _))| *done <= now.as_nanos()) {
        let Some(Reverse((_, index))) = finishing.pop() else { return };
        let outcome = outcomes[index];
        gate.completed();
        gate.observe_response(Response {
            started: Instant::from_nanos((outcome.arrived_s * 1e9) as u64),
            bytes: 1_000,
            latency_s: outcome.latency_s.unwrap_or(0.0) as f32,
            rate_bytes_per_s: None,
            url_class: 7,
        });
    }
}

/// A plain scenario: one worker, 5 ms each, nothing unusual.
pub(crate) fn quiet() -> Scenario {
    Scenario {
        seed: 1,
        workers: 1,
        service: Service::Constant(0.005),
        offered_rps: |_| 90.0,
        slowdown: |_| 1.0,
        begins_s: 0.0,
        duration_s: 60.0,
        settings: Settings { interval: Duration::from_millis(100), ..Settings::default() },
        host_of: |_, _| 1,
    }
}

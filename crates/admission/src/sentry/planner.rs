//! The planner: samples in, limit and queue out.

use super::calm::Calm;
use super::classes::{Classes, Service};
use super::deciding::Deciding;
use super::learning::Learning;
use super::long::LongRequests;
use super::look::Look;
use super::measured::Measured;
use super::model::{LevelWork, ModelRule};
use super::plan::{Decide, Explanation, Plan, Rule};
use super::policy::Policy;
use super::sample::{LevelSum, Sample};
use super::work::WorkMeter;
use crate::{Binding, Flow, Planner};
use alloc::sync::Arc;
use alloc::vec::Vec;
use flashweir_core::Instant;
use flashweir_core::measure::Histogram;
use flashweir_core::measure::histogram::bucket_middle;

/// Learns one service's limit.
#[derive(Debug)]
pub struct SentryPlanner {
    policy: Arc<Policy>,
    classes: Classes,
    deciding: Deciding,
    /// Samples of the gates since the last plan.
    gathered: Sample,
    work: WorkMeter,
    rule: ModelRule,
    calm: Calm,
    /// Measurements since the last plan.
    pending: Measured,
    /// Responses since the limit last moved, and the ages at the last sample.
    latency_us: Histogram,
    age_us: Histogram,
    /// Completions per second, smoothed.
    completed_rps: f64,
    /// Requests in flight, smoothed.
    in_flight: f64,
    /// The most that could be completed of late.
    lately_rps: f64,
    /// Ratio of the 95th percentile to the mean response time.
    quantile_over_mean: f64,
    usual: Usual,
    next_plan_at: Instant,
    plan: Plan,
}

/// The median of a recent stretch of responses, for how long waiting is worth it, and how many were in
/// flight.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    median_s: f64,
    in_flight: f64,
}

impl Usual {
    /// The median if as many are in flight as may be, and all of them stand in line.
    fn in_line_s(&self, limit: u32) -> f64 {
        self.median_s * (f64::from(limit) / self.in_flight.max(1.0)).max(1.0)
    }
}

impl SentryPlanner {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self::with_learning(policy, &Learning::SHIPPED)
    }

    /// The same with other numbers or fewer rules: to find out what depends on them.
    #[must_use]
    pub fn with_learning(policy: Arc<Policy>, learning: &Learning) -> Self {
        let rule = ModelRule::new(learning.constants);
        let mut classes = Classes::new(policy.clone(), learning.rules);
        let plan = Plan {
            epoch: 0,
            limit: rule.learned().limit,
            classes: Vec::new(),
            decide: Decide::Reservation,
            knee_milli: 0,
            long: LongRequests::default(),
            costs: classes.costs(Instant::ZERO),
            price: 0.0,
            explanation: Explanation {
                rule: Rule::None,
                in_flight: 0.0,
                completed_rps: 0.0,
                knee: None,
                stretch: None,
                response_p95_s: None,
                target_infeasible: false,
                target: policy.target,
                capacity_rps: 0.0,
                quantile_over_mean: QUANTILE_OVER_MEAN,
                guarantees_infeasible: false,
            },
        };
        let mut planner = Self {
            deciding: Deciding::new(&policy),
            policy,
            classes,
            gathered: Sample::default(),
            work: WorkMeter::new(),
            rule,
            calm: Calm::new(learning.numbers, learning.rules),
            pending: Measured::default(),
            latency_us: Histogram::new(),
            age_us: Histogram::new(),
            completed_rps: 0.0,
            in_flight: 0.0,
            lately_rps: 0.0,
            quantile_over_mean: QUANTILE_OVER_MEAN,
            usual: Usual::default(),
            next_plan_at: Instant::ZERO,
            plan,
        };
        planner.divide(Instant::ZERO);
        planner
    }

    /// Goes on from the limit and the knee that another planner of the same origin found, and learns the rest
    /// again: the planner of a gateway that takes over from another one. Call it before the first plan, or
    /// before each where the limit is known from outside.
    pub fn resume(&mut self, now: Instant, limit: u32, knee: Option<f64>) {
        self.rule.resume(limit, knee);
        self.plan.explanation.knee = knee;
        self.divide(now);
    }

    /// The plan in force.
    #[must_use]
    pub fn current(&self) -> &Plan {
        &self.plan
    }

    /// Requests that hold no place, as found, under any policy.
    pub(super) fn long(&self) -> &LongRequests {
        self.calm.long()
    }

    /// The 95th percentile of responses, ages counted.
    fn p95_s(&mut self) -> Option<f64> {
        let mut all = self.latency_us.clone();
        all.add(&self.age_us);
        let count = all.count();
        if count < QUANTILE_LEAST {
            return None;
        }
        let p95_s = all.quantile(0.95).map(|us| us as f64 / 1e6);
        let sum_s: f64 = all.buckets().map(|bucket| bucket.middle() as f64 / 1e6 * bucket.count as f64).sum();
        let over_mean = p95_s.unwrap_or(0.0) * count as f64 / sum_s.max(1e-9);
        if count >= OVER_MEAN_LEAST {
            self.quantile_over_mean = over_mean.clamp(1.0, QUANTILE_OVER_MEAN_MOST);
        }
        p95_s
    }

    fn learn(&mut self, sample: &Sample) {
        let work = self.work.observe(sample);
        let span_s = sample.to.saturating_since(sample.from).as_secs_f64();
        let by_test: u64 = sample.classes.iter().map(|class| class.shed_by_test).sum();
        self.pending.add(&Measured {
            span_s,
            in_flight_s: sample.in_flight_nanos as f64 / 1e9,
            work,
            latency_s: sample.urls.iter().map(|class| class.latency_us as f64 / 1e6).sum(),
            completed: short_completed(sample) as f64,
            waiting_s: sample.waiting_nanos as f64 / 1e9,
            // Requests refused by a threshold or in a batch are no sign that the limit is met.
            shed: sample.shed.saturating_sub(by_test) as f64,
            failed: sample.failed as f64,
            left_late: sample.left_late as f64,
        });
        self.latency_us.add(&sample.latency_us);
        self.age_us = sample.age_us.clone();
        let part = 1.0 - libm::exp(-span_s / RATE_MEMORY_S);
        if span_s > 0.0 {
            self.completed_rps += (short_completed(sample) as f64 / span_s - self.completed_rps) * part;
            self.lately_rps *= libm::exp(-span_s / LATELY_S);
            self.in_flight += (sample.in_flight_nanos as f64 / 1e9 / span_s - self.in_flight) * part;
        }
        self.classes.observe(sample);
        self.deciding.observe(sample);
    }

    /// Gives each class its part of what the rule found.
    fn divide(&mut self, now: Instant) {
        self.lately_rps = self.lately_rps.max(self.capacity_rps(self.rule.learned().limit));
        let service = self.service();
        let mut classes = self.classes.plans(&service);
        let (decide, limit) = self.deciding.plan(now, &service, &self.classes, &mut classes);
        let explanation = Explanation {
            target: self.classes.target(),
            capacity_rps: service.capacity_rps,
            quantile_over_mean: service.quantile_over_mean,
            guarantees_infeasible: self.classes.guarantees_infeasible(now, &service),
            ..self.plan.explanation
        };
        self.plan = Plan {
            epoch: self.plan.epoch,
            limit,
            classes,
            decide,
            knee_milli: service.knee_milli(),
            long: self.deciding.long(self.calm.long()),
            costs: self.deciding.costs().unwrap_or_else(|| self.classes.costs(now)),
            price: self.classes.price(&service),
            explanation,
        };
    }

    /// Learned state of the service, for plans of any policy.
    pub(super) fn service(&self) -> Service {
        let learned = self.rule.learned();
        Service {
            limit: learned.limit,
            knee: learned.knee,
            servers: learned.servers,
            in_flight: self.in_flight,
            capacity_rps: self.capacity_rps(learned.limit),
            lately_rps: self.lately_rps,
            usual_s: self.usual.median_s,
            in_line_s: match learned.knee {
                Some(_) => self.usual.median_s,
                None => self.usual.in_line_s(learned.limit),
            },
            p95_s: self.plan.explanation.response_p95_s,
            quantile_over_mean: self.quantile_over_mean,
            // Where answers are late by themselves and nothing is short, to wait is better than to be
            // refused.
            headroom: if self.calm.is_calm() && self.is_slow_by_itself() {
                f64::INFINITY
            } else {
                learned.headroom
            },
        }
    }

    /// Half of the answers take longer than the origin's part of the target.
    fn is_slow_by_itself(&self) -> bool {
        self.usual.median_s > TARGET_SHARE * self.classes.target().as_secs_f64()
    }

    /// Below the knee, twice as many in flight complete twice as many; above it, what is completed is the
    /// capacity.
    fn capacity_rps(&self, limit: u32) -> f64 {
        let room = f64::from(limit) / MARGIN;
        self.completed_rps * (room / self.in_flight.max(1e-9)).max(1.0)
    }
}

impl Planner for SentryPlanner {
    type Sample = Sample;
    type Plan = Plan;

    fn observe(&mut self, _now: Instant, sample: &Sample) {
        self.gathered.merge(sample);
    }

    fn plan(&mut self, now: Instant, _binding: &Binding) -> Plan {
        if now < self.next_plan_at {
            return self.plan.clone();
        }
        self.next_plan_at = now + self.policy.interval;
        let sample = core::mem::take(&mut self.gathered);
        self.deciding.observe_load(now, f64::from(sample.deciding_milli) / 1e3);
        if sample.to > sample.from {
            self.learn(&sample);
        }
        let p95_s = self.p95_s();
        let tick = core::mem::take(&mut self.pending);
        let target_s = self.classes.target().as_secs_f64();
        let look = Look {
            now,
            tick,
            variation: self.work.variation(),
            target_s,
            age_s: mean_s(&self.age_us),
            limit_least: self.calm.limit_least(&sample, &tick, target_s),
        };
        let mut window = self.rule.learned().window;
        window.add(&tick);
        let rule = self.rule.look(&look, &level_work(&sample, &tick), &sample.latency_us, &self.age_us);
        let learned = self.rule.learned();
        self.calm.follow(learned.limit);
        let count = self.latency_us.count();
        if count >= USUAL_LEAST || count > 0 && self.usual.median_s == 0.0 {
            let median_s = self.latency_us.quantile(0.5).map_or(0.0, |us| us as f64 / 1e6);
            self.usual = Usual { median_s, in_flight: self.in_flight };
        }
        if learned.is_settling || self.latency_us.count() > QUANTILE_MOST {
            self.latency_us.clear();
        }
        self.plan.explanation = Explanation {
            rule,
            in_flight: window.in_flight(),
            completed_rps: window.completed / window.span_s.max(1e-9),
            knee: learned.knee,
            stretch: learned.alone_s.map(|alone_s| window.unit_s(look.variation) / alone_s),
            response_p95_s: p95_s,
            target_infeasible: learned.target_infeasible,
            ..self.plan.explanation
        };
        self.plan.epoch += 1;
        self.divide(now);
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }

    fn limit_used(&self, _flow: &Flow, _span_s: f64) -> f64 {
        self.in_flight / f64::from(self.plan.limit)
    }
}

/// Traffic by number in flight; work is divided among levels by completions.
fn level_work(sample: &Sample, tick: &Measured) -> Vec<LevelWork> {
    let each = tick.work / tick.completed.max(1.0);
    let of_level = |level: &LevelSum| LevelWork {
        in_flight: bucket_middle(level.level) as f64,
        in_flight_s: level.in_flight_nanos as f64 / 1e9,
        work: level.completed as f64 * each,
        completed: level.completed as f64,
    };
    sample.levels.iter().map(of_level).collect()
}

/// Completions of requests that held a place.
fn short_completed(sample: &Sample) -> u64 {
    sample.completed.saturating_sub(sample.long.completed)
}

fn mean_s(micros: &Histogram) -> f64 {
    let sum_us: f64 = micros.buckets().map(|bucket| bucket.middle() as f64 * bucket.count as f64).sum();
    sum_us / 1e6 / (micros.count() as f64).max(1.0)
}

/// Responses (and ages) for a 95th percentile.
const QUANTILE_LEAST: u64 = 5;
/// The same for its ratio to the mean.
const OVER_MEAN_LEAST: u64 = 20;
/// Responses after which the window of the percentile restarts.
const QUANTILE_MOST: u64 = 2_000;
const USUAL_LEAST: u64 = 10;
const RATE_MEMORY_S: f64 = 1.0;
/// The limit is this many times what the origin works on at once, as a rule.
const MARGIN: f64 = 1.2;
/// Memory of the highest capacity of late, seconds: less important classes queue by it, so that a dip of a
/// few seconds does not refuse them.
const LATELY_S: f64 = 10.0;
/// Of exponential response times, which those of an origin that shares itself are like: ln 20. And the most
/// that is believed.
const QUANTILE_OVER_MEAN: f64 = 3.0;
const QUANTILE_OVER_MEAN_MOST: f64 = 6.0;
/// Part of the target that the origin may take: the rest is for waiting.
const TARGET_SHARE: f64 = 0.75;

//! The planner: samples in, limit and queue out.

use super::inherent::Inherent;
use super::judgement::Look;
use super::limit::LimitRule;
use super::measured::Measured;
use super::plan::{ClassPlan, Costs, Explanation, Plan, Rule};
use super::policy::{ClassPolicy, Policy};
use super::sample::Sample;
use crate::Planner;
use alloc::sync::Arc;
use alloc::vec;
use flashweir_core::limits::{REQUESTS_HELD, URL_CLASSES};
use flashweir_core::{Duration, Instant};
use flashweir_measure::Histogram;

/// Learns one service's limit.
#[derive(Debug)]
pub struct SentryPlanner {
    policy: Arc<Policy>,
    inherent: Inherent,
    rule: LimitRule,
    /// What was observed since the last plan.
    pending: Measured,
    /// Responses since the limit last moved, and the ages at the last sample.
    latency_us: Histogram,
    age_us: Histogram,
    /// Completions and offers per second, smoothed.
    completed_rps: f64,
    offered_rps: f64,
    held: u32,
    /// The median of a recent stretch of responses, for how long waiting is worth it.
    usual_s: Option<f64>,
    next_plan_at: Instant,
    plan: Plan,
}

impl SentryPlanner {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        let rule = LimitRule::new();
        let class = |class: &ClassPolicy| ClassPlan {
            limit: rule.limit(),
            hold_len: HELD_AT_START,
            hold_for: policy.target * HELD_AT_START_TARGETS,
            newest_first_after: policy.target / 2,
            guaranteed_rate: class.guaranteed_rate,
            retry_after: Duration::from_secs(1),
        };
        let plan = Plan {
            epoch: 0,
            limit: rule.limit(),
            classes: policy.classes.iter().map(class).collect(),
            costs: Arc::new(Costs { by_url_class_us: vec![0; URL_CLASSES], usual_us: 0 }),
            price: 0.0,
            explanation: Explanation {
                rule: Rule::None,
                in_flight: 0.0,
                completed_rps: 0.0,
                knee: None,
                stretch: None,
                response_p95_s: None,
                target_infeasible: false,
            },
        };
        Self {
            policy,
            inherent: Inherent::new(),
            rule,
            pending: Measured::default(),
            latency_us: Histogram::new(),
            age_us: Histogram::new(),
            completed_rps: 0.0,
            offered_rps: 0.0,
            held: 0,
            usual_s: None,
            next_plan_at: Instant::ZERO,
            plan,
        }
    }

    /// The plan in force.
    #[must_use]
    pub fn current(&self) -> &Plan {
        &self.plan
    }

    fn p95_s(&self) -> Option<f64> {
        let mut all = self.latency_us.clone();
        all.add(&self.age_us);
        if all.count() < QUANTILE_LEAST {
            return None;
        }
        all.quantile(0.95).map(|us| us as f64 / 1e6)
    }

    /// How many may wait, and how long: whoever waits longer would not be answered within the target, and whoever
    /// would wait longer than half of what is left besides the response itself is better told at once.
    fn hold(&self, p95_s: Option<f64>) -> (u32, Duration) {
        let target_s = self.policy.target.as_secs_f64();
        let usual_s = self.usual_s.unwrap_or(0.0);
        let hold_s = (target_s - usual_s).max(HOLD_LEAST_SHARE * target_s);
        let late_s = p95_s.unwrap_or(usual_s);
        let wait_s = ((target_s - late_s) / 2.0).clamp(WAIT_LEAST_SHARE * target_s, 0.5 * hold_s);
        let len = if self.completed_rps > 0.0 { libm::ceil(self.completed_rps * wait_s) } else { 0.0 };
        let least = if self.rule.alone_s().is_some() { 1 } else { HELD_AT_START };
        ((len as u32).clamp(least, REQUESTS_HELD as u32), Duration::from_secs_f64(hold_s))
    }

    /// The time until what waits is served, times how many come for each one that is served.
    fn retry_after(&self) -> Duration {
        let completed_rps = self.completed_rps.max(0.1);
        let excess = (self.offered_rps / completed_rps).max(1.0);
        let drain_s = f64::from(self.held) / completed_rps;
        Duration::from_secs_f64((drain_s.max(1.0) * excess).min(RETRY_AFTER_MOST_S))
    }
}

impl Planner for SentryPlanner {
    type Sample = Sample;
    type Plan = Plan;

    fn observe(&mut self, _now: Instant, sample: &Sample) {
        let work = self.inherent.observe(sample);
        let span_s = sample.to.saturating_since(sample.from).as_secs_f64();
        self.pending.add(&Measured {
            span_s,
            in_flight_s: sample.in_flight_nanos as f64 / 1e9,
            work,
            latency_s: sample.urls.iter().map(|class| class.latency_us as f64 / 1e6).sum(),
            completed: sample.completed as f64,
            waiting_s: sample.waiting_nanos as f64 / 1e9,
            shed: sample.shed as f64,
        });
        self.latency_us.add(&sample.latency_us);
        self.age_us = sample.age_us.clone();
        self.held = sample.held;
        let part = 1.0 - libm::exp(-span_s / RATE_MEMORY_S);
        if span_s > 0.0 {
            self.completed_rps += (sample.completed as f64 / span_s - self.completed_rps) * part;
            self.offered_rps += (sample.offered as f64 / span_s - self.offered_rps) * part;
        }
    }

    fn plan(&mut self, now: Instant) -> Plan {
        if now < self.next_plan_at {
            return self.plan.clone();
        }
        self.next_plan_at = now + self.policy.interval;
        let p95_s = self.p95_s();
        let tick = core::mem::take(&mut self.pending);
        let look = Look {
            now,
            tick,
            variation: self.inherent.variation(),
            low_level_s: self.inherent.alone_s(),
            p95_s,
            target_s: self.policy.target.as_secs_f64(),
        };
        let window = {
            let mut window = *self.rule.window();
            window.add(&tick);
            window
        };
        let before = self.rule.limit();
        let rule = self.rule.look(&look);
        let moved = self.rule.limit() != before;
        if self.latency_us.count() >= USUAL_LEAST {
            self.usual_s = self.latency_us.quantile(0.5).map(|us| us as f64 / 1e6);
        }
        let (hold_len, worth_it) = self.hold(p95_s);
        let is_known = self.rule.alone_s().is_some();
        let hold_for =
            if is_known { worth_it } else { worth_it.max(self.policy.target * HELD_AT_START_TARGETS) };
        if moved || self.latency_us.count() > QUANTILE_MOST {
            self.latency_us.clear();
        }
        self.plan = Plan {
            epoch: self.plan.epoch + 1,
            limit: self.rule.limit(),
            classes: self
                .plan
                .classes
                .iter()
                .map(|before| ClassPlan {
                    limit: self.rule.limit(),
                    hold_len,
                    hold_for,
                    newest_first_after: worth_it / 2,
                    retry_after: self.retry_after(),
                    ..*before
                })
                .collect(),
            costs: self.plan.costs.clone(),
            price: 0.0,
            explanation: Explanation {
                rule,
                in_flight: window.in_flight(),
                completed_rps: window.completed / window.span_s.max(1e-9),
                knee: self.rule.knee(),
                stretch: self.rule.alone_s().map(|alone_s| window.unit_s(look.variation) / alone_s),
                response_p95_s: p95_s,
                target_infeasible: self.rule.target_infeasible(),
            },
        };
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }
}

/// Waiting places before anything is known: nobody is refused for lack of samples.
const HELD_AT_START: u32 = REQUESTS_HELD as u32;
/// And they may wait so many targets: rather late than refused because nobody knows how many the origin takes.
const HELD_AT_START_TARGETS: u32 = 4;
/// Responses (and ages) for a 95th percentile.
const QUANTILE_LEAST: u64 = 20;
/// Responses after which the window of the percentile begins anew.
const QUANTILE_MOST: u64 = 2_000;
const USUAL_LEAST: u64 = 10;
/// However slow the service, a request may wait a tenth of the target, and so many may as come in half of that.
const HOLD_LEAST_SHARE: f64 = 0.1;
const WAIT_LEAST_SHARE: f64 = 0.05;
const RATE_MEMORY_S: f64 = 1.0;
const RETRY_AFTER_MOST_S: f64 = 30.0;

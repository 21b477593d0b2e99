//! The sentry in the simulator: gate, planner and the ticks between them.

use super::{Refusal, ShedReason};
use crate::request::slab::Id;
use flashweir_admission::Planner as _;
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::sentry::{Common, Plan, Policy, SentryGate, SentryPlanner};
use flashweir_core::{Instant, Rng, Shed};
use std::sync::Arc;

/// The sentry with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SentryPolicy {
    /// Classes and targets.
    pub policy: Arc<Policy>,
    /// Limits set by hand, each from its moment on (in order), instead of learned ones: what somebody who knows the
    /// server would do, with the same queue.
    pub known_limits: Vec<(Instant, u32)>,
}

/// A plan of the sentry that changed something.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitTaken {
    /// When it was made.
    pub at: Instant,
    /// What the gate was told, and why.
    pub plan: Plan,
}

impl SentryPolicy {
    /// The sentry as it is: it learns the limit.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(policy), known_limits: Vec::new() }
    }
}

/// The gate and the planner of one service.
#[derive(Debug)]
pub(super) struct SentryStage {
    policy: SentryPolicy,
    planner: SentryPlanner,
    pub(super) gate: SentryGate<Id>,
    next_tick_at: Instant,
    /// Spreads what clients are told.
    jitter: Rng,
    /// Decides which samples get lost.
    losses: Rng,
}

impl SentryStage {
    pub(super) fn new(policy: &SentryPolicy, keys: &Rng) -> Self {
        let planner = SentryPlanner::new(policy.policy.clone());
        let mut plan = planner.current().clone();
        replace_limit(&mut plan, &policy.known_limits, Instant::ZERO);
        Self {
            gate: SentryGate::new(Arc::new(Common::new(1)), 0, &policy.policy, &plan),
            planner,
            policy: policy.clone(),
            next_tick_at: Instant::ZERO + policy.policy.interval,
            jitter: keys.fork(1),
            losses: keys.fork(2),
        }
    }

    /// A refusal as the client is told of it.
    pub(super) fn refusal(&mut self, shed: Shed) -> Refusal {
        // At most 60 s.
        let told_s = RetryAfter::new(shed.retry_after, self.jitter.next_u64(), 0).jittered_s as u16;
        Refusal { reason: ShedReason::Gateway(shed.reason), retry_after_s: Some(told_s) }
    }

    pub(super) fn next_tick_at(&self) -> Instant {
        self.next_tick_at
    }

    pub(super) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Plan {
        let sample = self.gate.drain(now);
        let is_lost = lost_feedback > 0.0 && self.losses.unit_f64() < lost_feedback;
        if !is_lost {
            self.planner.observe(now, &sample);
        }
        let mut plan = self.planner.plan(now);
        replace_limit(&mut plan, &self.policy.known_limits, now);
        self.gate.apply(&plan);
        self.next_tick_at = self.planner.next_plan_at();
        plan
    }
}

fn replace_limit(plan: &mut Plan, known: &[(Instant, u32)], now: Instant) {
    if let Some((_, limit)) = known.iter().rev().find(|(from, _)| *from <= now) {
        plan.limit = *limit;
        plan.classes.iter_mut().for_each(|class| class.limit = *limit);
    }
}

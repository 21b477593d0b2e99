//! NEWS in the simulator: gates, planner and the ticks between them.

use flashweir_admission::flash_crowd::{
    Baseline, Explanation, FlashCrowdGate, FlashCrowdPlanner, GateRequest, RefusedAttempts, Response,
    Settings,
};
use flashweir_admission::pace::{MEASURED_PER_SWEEP, SAMPLE_INTERVAL_MAX, SWEEP_INTERVAL, TICK_INTERVAL_MIN};
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::{Gate as _, PlannerDriver};
use flashweir_core::{Duration, Instant, Rng, Shed, Verdict};
use std::sync::Arc;

/// NEWS with its settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlashCrowdPolicy {
    /// Mode, interval, margin; one gate for each of `gates`, each person at one of them.
    pub settings: Settings,
    /// What an earlier run learned; empty, it learns.
    pub baseline: Baseline,
    /// When the first tick is: which part of an interval a crowd meets makes a difference.
    pub first_tick: Duration,
}

/// The gates and the planner of one service.
#[derive(Debug)]
pub(super) struct FlashCrowdStage {
    planner: PlannerDriver<FlashCrowdPlanner>,
    gates: Vec<FlashCrowdGate>,
    /// Requests that a bound refused before a gate saw them, for each gate. They were offered all the same.
    unseen: Vec<Unseen>,
    /// Responses measured in the sweep under way, for each gate.
    measured: Vec<Sweep>,
    attempts: Arc<RefusedAttempts>,
    is_shadow: bool,
    next_tick_at: Instant,
    jitter_seed: u64,
    /// Decides which samples get lost.
    losses: Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    number: u64,
    taken: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Unseen {
    offered: u64,
    unique_offered: u64,
}

impl FlashCrowdStage {
    pub(super) fn new(policy: &FlashCrowdPolicy, keys: &Rng) -> Self {
        let attempts = Arc::new(RefusedAttempts::default());
        let mut seeds = keys.fork(1);
        let gates = policy.settings.gates.max(1);
        Self {
            planner: PlannerDriver::new(
                FlashCrowdPlanner::new(policy.settings, &policy.baseline),
                Instant::ZERO,
            ),
            gates: (0..gates).map(|gate| FlashCrowdGate::new(gate, attempts.clone())).collect(),
            unseen: vec![Unseen::default(); gates],
            measured: vec![Sweep::default(); gates],
            attempts,
            is_shadow: policy.settings.shadow,
            next_tick_at: Instant::from_duration(policy.first_tick),
            jitter_seed: seeds.next_u64(),
            losses: keys.fork(2),
        }
    }

    pub(super) fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    pub(super) fn admit(&mut self, now: Instant, request: &GateRequest) -> Verdict {
        self.gate_for(request).admit(now, request)
    }

    /// The gate that this person's connections go to.
    pub(super) fn gate_for(&mut self, request: &GateRequest) -> &mut FlashCrowdGate {
        let gate = self.place(request);
        &mut self.gates[gate]
    }

    /// A whole answer was acknowledged. As in the gateway, only the first few of each sweep are measured.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        request: &GateRequest,
        response: impl FnOnce() -> Response,
    ) {
        let gate = self.place(request);
        let sweep = &mut self.measured[gate];
        let number = now.as_nanos() / SWEEP_INTERVAL.as_nanos() as u64;
        if sweep.number != number {
            *sweep = Sweep { number, taken: 0 };
        }
        if sweep.taken < MEASURED_PER_SWEEP {
            sweep.taken += 1;
            self.gates[gate].observe_response(response());
        }
    }

    /// Counts a request that a bound refused, by the gate's own rule for retries.
    pub(super) fn count_unseen(&mut self, now: Instant, request: &GateRequest) {
        let gate = self.place(request);
        let unseen = &mut self.unseen[gate];
        unseen.offered += 1;
        unseen.unique_offered += u64::from(!self.attempts.is_retry(now, request.person_key));
        self.attempts.remember(now, request.person_key);
    }

    /// The `Retry-After` that this person is told.
    pub(super) fn told_s(&self, shed: Shed, person_key: u64) -> u16 {
        // At most 60, so it fits.
        RetryAfter::new(shed.retry_after, person_key, self.jitter_seed).jittered_s as u16
    }

    pub(super) fn next_tick_at(&self) -> Instant {
        self.next_tick_at
    }

    pub(super) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Explanation {
        for (gate, unseen) in self.gates.iter_mut().zip(&mut self.unseen) {
            let mut sample = gate.drain(now);
            let unseen = std::mem::take(unseen);
            sample.offered += unseen.offered;
            sample.refused_earlier += unseen.offered;
            sample.unique_offered += unseen.unique_offered;
            let is_lost = lost_feedback > 0.0 && self.losses.unit_f64() < lost_feedback;
            if !is_lost {
                self.planner.observe(now, &sample);
            }
        }
        let plan = self.planner.plan(now);
        for gate in &mut self.gates {
            gate.apply(now, &plan);
        }
        // As in the gateway: samples at least this often, and never two ticks at once.
        let due = self.planner.next_plan_at().min(now + SAMPLE_INTERVAL_MAX);
        self.next_tick_at = due.max(now + TICK_INTERVAL_MIN);
        plan.explanation
    }

    fn place(&self, request: &GateRequest) -> usize {
        ((u128::from(request.person_key) * self.gates.len() as u128) >> 64) as usize
    }
}

//! NEWS in the simulator: its planner, and what of the responses it gets to see.

use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{
    Baseline, Explanation, FlashCrowdPlanner, Plan, PlannerMode, Sample, Settings,
};
use flashweir_admission::pace::{MEASURED_PER_SWEEP, SAMPLE_INTERVAL_MAX, SWEEP_INTERVAL, TICK_INTERVAL_MIN};
use flashweir_admission::pipeline::FlashCrowdOptions;
use flashweir_core::{Duration, Instant, Rng};

/// NEWS with its settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlashCrowdPolicy {
    /// Mode, interval, margin; one gate for each of `gates`, each person at one of them.
    pub settings: Settings,
    /// Baseline learned by an earlier run; empty, it is learned in this one.
    pub baseline: Baseline,
    /// Time of the first tick: the part of an interval that a crowd meets makes a difference.
    pub first_tick: Duration,
}

/// The planner of the flash-crowd stage.
#[derive(Debug)]
pub(super) struct FlashCrowdPlanning {
    driver: PlannerDriver<FlashCrowdPlanner>,
    options: FlashCrowdOptions,
    /// Responses measured in the sweep under way, by worker.
    measured: Vec<Sweep>,
    next_tick_at: Instant,
    /// Decides which samples get lost.
    losses: Rng,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    number: u64,
    taken: usize,
}

impl FlashCrowdPlanning {
    pub(super) fn new(policy: &FlashCrowdPolicy, workers: usize, losses: Rng) -> Self {
        let settings = Settings { gates: workers, ..policy.settings };
        Self {
            driver: PlannerDriver::new(FlashCrowdPlanner::new(settings, &policy.baseline), Instant::ZERO),
            options: FlashCrowdOptions {
                is_shadow: settings.shadow,
                judges_whole: settings.mode != PlannerMode::Repaired,
            },
            measured: vec![Sweep::default(); workers],
            next_tick_at: Instant::from_duration(policy.first_tick),
            losses,
        }
    }

    pub(super) fn options(&self) -> FlashCrowdOptions {
        self.options
    }

    /// Returns true if one more answer is measured at this worker: as in the gateway, only the first few of
    /// each sweep are.
    pub(super) fn measures(&mut self, now: Instant, worker: usize) -> bool {
        let sweep = &mut self.measured[worker];
        let number = now.as_nanos() / SWEEP_INTERVAL.as_nanos() as u64;
        if sweep.number != number {
            *sweep = Sweep { number, taken: 0 };
        }
        sweep.taken += 1;
        sweep.taken <= MEASURED_PER_SWEEP
    }

    pub(super) fn next_tick_at(&self) -> Instant {
        self.next_tick_at
    }

    /// A worker's sample, unless it gets lost.
    pub(super) fn observe(&mut self, now: Instant, sample: &Sample, lost_feedback: f64) {
        let is_lost = lost_feedback > 0.0 && self.losses.unit_f64() < lost_feedback;
        if !is_lost {
            self.driver.observe(now, sample);
        }
    }

    pub(super) fn plan(&mut self, now: Instant) -> (Plan, Explanation) {
        let plan = self.driver.plan(now);
        // As in the gateway: samples at least this often, and never two ticks at once.
        let due = self.driver.next_plan_at().min(now + SAMPLE_INTERVAL_MAX);
        self.next_tick_at = due.max(now + TICK_INTERVAL_MIN);
        let explanation = plan.explanation;
        (plan, explanation)
    }
}

//! The slow half: the candidate's planner in its own loop, evaluated in the rounds of the planner of NEWS.

use super::{CandidateSample, FlashCrowdCandidate};
use crate::recording::{self, MadeFrom};
use crate::shared::Shared;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Plan};
use flashweir_core::{Duration, Instant};
use flashweir_runtime::planner_loop::{LoopEvent, Outlet, PlannerLoop, put_in_force};
use flashweir_runtime::{BaselineKeeper, planner};
use flashweir_wire::Recorder;
use flashweir_wire::recording::{FLASH_CROWD_CANDIDATE, Planned};
use std::convert::Infallible;
use std::sync::Arc;

/// A candidate and its planner, on the control thread. Its faults are treated as those of the live planner,
/// and reported.
pub(crate) struct PlannedCandidate {
    planner_loop: PlannerLoop<FlashCrowdPlanner>,
    outlet: CandidateOutlet,
}

struct CandidateOutlet {
    shared: Arc<Shared>,
    workers: usize,
    candidate: Arc<FlashCrowdCandidate>,
    /// For a planner that is built again. The state file keeps the live planner's baseline only.
    keeper: BaselineKeeper,
    made_from: MadeFrom,
}

impl PlannedCandidate {
    /// A planner that starts from what the live one has `learned` of the same traffic: a candidate that comes
    /// in the middle of a crowd must not take the crowd for the usual.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        workers: usize,
        candidate: Arc<FlashCrowdCandidate>,
        learned: Baseline,
        recorder: Option<&Arc<Recorder>>,
    ) -> Self {
        let keeper = BaselineKeeper::new(learned, shared.clock.now());
        let in_force = Plan::clone(&candidate.plan.load());
        let made_from = MadeFrom::default();
        let mut outlet = CandidateOutlet { shared: shared.clone(), workers, candidate, keeper, made_from };
        let mut planner_loop = PlannerLoop::new(&mut outlet, in_force);
        recording::record(&mut planner_loop, recorder, FLASH_CROWD_CANDIDATE, &outlet.made_from);
        Self { planner_loop, outlet }
    }

    /// Returns whether it is this one, or there is none to be.
    pub(crate) fn is(known: Option<&Self>, wanted: Option<&Arc<FlashCrowdCandidate>>) -> bool {
        match (known, wanted) {
            (None, None) => true,
            (Some(known), Some(wanted)) => Arc::ptr_eq(&known.outlet.candidate, wanted),
            _ => false,
        }
    }

    /// Time of its planner's next evaluation.
    pub(crate) fn next_plan_at(&self) -> Option<Instant> {
        self.planner_loop.next_plan_at()
    }

    /// Takes what one worker's gate measured; a sample of another candidate, which a reload has replaced, is
    /// ignored.
    pub(crate) fn observe(&mut self, now: Instant, sample: &CandidateSample) {
        let candidate = &self.outlet.candidate;
        if !Arc::ptr_eq(candidate, &sample.candidate) {
            return;
        }
        candidate.add_agreement(&sample.agreement);
        self.outlet.shared.telemetry.control().count_flash_crowd_candidate(&sample.agreement);
        self.planner_loop.observe(&mut self.outlet, now, &sample.sample);
    }

    /// One round.
    pub(crate) fn evaluate(&mut self) {
        let Ok(()) = self.planner_loop.evaluate(&mut self.outlet);
    }
}

impl Outlet<FlashCrowdPlanner> for CandidateOutlet {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    fn interval(&self) -> Duration {
        self.candidate.configured.interval
    }

    fn planner(&mut self) -> Option<FlashCrowdPlanner> {
        let (configured, learned) = (&self.candidate.configured, self.keeper.latest());
        let settings = configured.settings(self.workers);
        self.made_from.set(settings.map(|settings| Planned::FlashCrowd(settings, learned.clone())));
        planner(configured, self.workers, learned)
    }

    fn epoch_in_force(&self) -> u64 {
        self.candidate.plan.load().epoch
    }

    fn publish(&mut self, _: Instant, plan: Plan, _: Option<&FlashCrowdPlanner>) -> Result<(), Infallible> {
        put_in_force(&self.candidate.plan, &plan);
        self.shared.telemetry.control().publish_flash_crowd_candidate(Some(&plan));
        Ok(())
    }

    fn keep_baseline(&mut self, now: Instant, planner: &FlashCrowdPlanner) {
        self.keeper.refresh(now, || planner.baseline());
    }

    fn report(&mut self, now: Instant, event: &LoopEvent) {
        event.tell(&self.shared.warnings, now, "the planner of the candidate of NEWS");
    }
}

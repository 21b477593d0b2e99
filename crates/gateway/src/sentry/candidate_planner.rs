//! The slow half of a candidate: for each plan of the live policy it makes one of the candidate, and it keeps
//! the comparison in between.

use super::candidate::{Candidate, CandidateSample};
use flashweir_admission::sentry::{CandidatePlanner, ClassCounts, Sample, SentryPlanner};
use flashweir_core::Instant;
use flashweir_runtime::planner_loop::{caught, put_in_force};
use flashweir_telemetry::{CandidateNews, CandidateSlot, ControlMetrics, Happening, Warnings};
use std::sync::Arc;

/// One service's candidate, on the control thread.
pub(super) struct PlannedCandidate {
    pub(super) candidate: Arc<Candidate>,
    planner: CandidatePlanner,
    /// Slots of the counters of its classes.
    slots: Vec<CandidateSlot>,
}

impl PlannedCandidate {
    /// Nothing has been offered yet.
    pub(super) fn new(candidate: Arc<Candidate>, metrics: &ControlMetrics) -> Self {
        let names = &candidate.sentry.names;
        Self {
            slots: names.classes.iter().map(|class| metrics.candidate_slot(&names.service, class)).collect(),
            planner: CandidatePlanner::new(candidate.sentry.policy.clone()),
            candidate,
        }
    }

    /// Takes the measurements of one worker's gates, the live one and the candidate's; those of a former
    /// candidate are dropped.
    pub(super) fn take(&mut self, live: &Sample, sample: &CandidateSample, metrics: &ControlMetrics) {
        if !Arc::ptr_eq(&self.candidate, &sample.candidate) {
            return;
        }
        self.planner.observe_live(live);
        self.planner.observe(&sample.sample);
        let policy = &self.candidate.sentry.policy;
        let mut totals = self.candidate.class_counts();
        let counted = sample.sample.classes.iter().zip(&sample.compared);
        let classes = policy.classes.iter().zip(&self.slots).zip(totals.iter_mut());
        for ((counts, compared), ((class, &slot), total)) in counted.zip(classes) {
            total.compared.add(compared);
            // Levels are those of a moment, so they cannot be added up.
            total.counts.add(&ClassCounts { held: 0, in_flight: 0, ..*counts });
            metrics.count_candidate(&CandidateNews { slot, counts, compared, revenue: class.revenue });
        }
    }

    /// A plan beside the live policy's latest. A planner that panics is replaced by one that knows nothing
    /// yet: it concerns no request.
    pub(super) fn plan(&mut self, now: Instant, live: &SentryPlanner, warnings: &Warnings) {
        let Self { candidate, planner, .. } = self;
        let sentry = &candidate.sentry;
        let plan = caught(|| planner.plan(now, live));
        match plan {
            Ok(plan) => put_in_force(&sentry.plan, &plan),
            Err(message) => {
                *planner = CandidatePlanner::new(sentry.policy.clone());
                let service = &sentry.names.service;
                let message = format_args!(
                    "the planner of the candidate of {service} panicked ({message}): it starts again"
                );
                warnings.warn(now, Happening::PlannerRestarted, message);
            }
        }
    }
}

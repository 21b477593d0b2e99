//! Counts of a candidate of the flash-crowd stage, and its plan.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_admission::flash_crowd::{Agreement, Cause, Explanation, Plan};

use super::ControlMetrics;
use crate::group::{LabelNames, MetricGroup, Scrape};

/// The candidate's figures: a lock taken ten times a second by the one thread that writes.
#[derive(Debug, Default)]
pub(crate) struct FlashCrowdCandidateMetrics(Mutex<Figures>);

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Of all candidates there have been; none before the first.
    agreement: Option<Agreement>,
    /// Of the plan of the present one.
    plan: Option<Explanation>,
}

impl ControlMetrics {
    /// Adds the comparisons of the flash-crowd stage's candidate since the last time.
    pub fn count_flash_crowd_candidate(&self, agreement: &Agreement) {
        self.flash_crowd_candidate.lock().agreement.get_or_insert_default().add(agreement);
    }

    /// The plan that the candidate would have in force; `None` when there is no candidate any more.
    pub fn publish_flash_crowd_candidate(&self, plan: Option<&Plan>) {
        self.flash_crowd_candidate.lock().plan = plan.map(|plan| plan.explanation);
    }
}

impl FlashCrowdCandidateMetrics {
    fn lock(&self) -> MutexGuard<'_, Figures> {
        // Plain numbers: a writer that panicked leaves some that are older.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PAIRS: LabelNames = &["live", "candidate"];

impl MetricGroup for FlashCrowdCandidateMetrics {
    fn title(&self) -> &'static str {
        "Candidate of the flash-crowd stage"
    }

    fn export(&self, scrape: &mut Scrape) {
        let Figures { agreement, plan } = *self.lock();
        let pairs = agreement.into_iter().flat_map(|agreement| {
            [
                (["pass", "pass"], agreement.both),
                (["pass", "refuse"], agreement.only_live),
                (["refuse", "pass"], agreement.only_candidate),
                (["refuse", "refuse"], agreement.neither),
            ]
        });
        scrape.counter_series(
            "flash_crowd_candidate_compared",
            "Checks of requests by the ceiling in force and by the candidate's, which binds none: `pass` or `refuse`.",
            PAIRS,
            pairs.map(|(labels, count)| (labels.map(str::to_owned).to_vec(), count as f64)),
        );
        scrape.gauge(
            "flash_crowd_candidate_ceiling_requests_per_second",
            "Ceiling that the candidate would set; absent when open, and without a candidate.",
            plan.and_then(|why| why.ceiling_rps),
        );
        scrape.gauge(
            "flash_crowd_candidate_quality_ratio",
            "Response quality over the candidate's baseline: 1 as usual, less is worse.",
            plan.and_then(|why| why.quality),
        );
        let causes =
            Cause::ALL.iter().map(|&cause| (cause.as_str(), plan.is_some_and(|why| why.cause == cause)));
        scrape.states(
            "flash_crowd_candidate_cause",
            "The candidate's verdict: 1 for the present one, 0 for all without a candidate.",
            "cause",
            causes,
        );
    }
}

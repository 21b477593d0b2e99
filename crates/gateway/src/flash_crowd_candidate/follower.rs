//! State that a worker keeps of the candidate: the plan that it last saw.

use super::{CandidateSample, FlashCrowdCandidate};
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::flash_crowd::Plan;
use flashweir_admission::pipeline::Pipeline;
use flashweir_core::Instant;
use std::sync::Arc;

/// Keeps the candidate in a worker's pipeline up to date.
pub(crate) struct CandidateFollower {
    candidate: Arc<FlashCrowdCandidate>,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    epoch: u64,
}

impl CandidateFollower {
    /// Takes over the candidate of a configuration, unless it is the present one. Another one begins with
    /// nothing measured.
    pub(crate) fn change<T>(
        present: &mut Option<Self>,
        now: Instant,
        candidate: Option<&Arc<FlashCrowdCandidate>>,
        pipeline: &mut Pipeline<T>,
    ) {
        let is_same = match (present.as_ref(), candidate) {
            (Some(known), Some(candidate)) => Arc::ptr_eq(&known.candidate, candidate),
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return;
        }
        let plan = candidate.map(|candidate| candidate.plan.load_full());
        pipeline.set_flash_crowd_candidate(now, plan.as_deref());
        *present = candidate.zip(plan).map(|(candidate, plan)| Self {
            candidate: candidate.clone(),
            latest: Cache::new(candidate.plan.clone()),
            epoch: plan.epoch,
        });
    }

    /// Follows its plan: one relaxed load and a comparison unless it changed.
    pub(crate) fn follow<T>(&mut self, now: Instant, pipeline: &mut Pipeline<T>) {
        let latest = self.latest.load();
        if latest.epoch != self.epoch {
            self.epoch = latest.epoch;
            pipeline.apply_flash_crowd_candidate(now, latest);
        }
    }

    /// Measurements of its gate since the last call.
    pub(crate) fn drain<T>(&self, now: Instant, pipeline: &mut Pipeline<T>) -> Option<Box<CandidateSample>> {
        let (sample, agreement) = pipeline.drain_flash_crowd_candidate(now)?;
        Some(Box::new(CandidateSample { candidate: self.candidate.clone(), sample, agreement }))
    }
}

//! A candidate policy in the gateway: asked about every request that comes to the sentry; its answers are
//! recorded, not obeyed.
//!
//! The rules are `flashweir_admission::sentry::CandidateGate`, which each worker's pipeline asks. One
//! [`Candidate`] for each service that has one is shared by all threads. There is no bell and no timer: what
//! is due is looked at with the next request, and fifty times a second when the live stage's sample is asked
//! for.

use super::service::{Names, Sentry};
use flashweir_admission::sentry::{ClassCounts, Compared, Policy, Sample};
use flashweir_config::Candidate as Configured;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of one service's candidate that all threads share.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Names, policy, virtual counts and plan, as the live policy has them.
    pub(crate) sentry: Arc<Sentry>,
    /// The configured candidate: a reload that leaves it unchanged keeps the results so far.
    pub(crate) configured: Configured,
    /// Of each class, since the candidate was put beside the live policy. The control thread alone uses it.
    class_counts: Mutex<Box<[CandidateCounts]>>,
}

/// Counts of one class of the candidate: its virtual traffic, and the comparison with the live policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CandidateCounts {
    pub(crate) counts: ClassCounts,
    pub(crate) compared: Compared,
}

/// Measurements of one worker's gate of a candidate.
#[derive(Debug)]
pub(crate) struct CandidateSample {
    pub(crate) candidate: Arc<Candidate>,
    pub(crate) sample: Sample,
    pub(crate) compared: Vec<Compared>,
}

impl Candidate {
    /// Nothing has been compared yet; a gate for each worker.
    pub(crate) fn new(names: Names, policy: Policy, configured: Configured, workers: usize) -> Arc<Self> {
        let class_counts = Mutex::new(vec![CandidateCounts::default(); names.classes.len()].into());
        Arc::new(Self { sentry: Sentry::new(names, policy, true, workers), configured, class_counts })
    }

    /// The counts of each class.
    pub(crate) fn class_counts(&self) -> MutexGuard<'_, Box<[CandidateCounts]>> {
        // Counts are added one by one: a writer that panicked leaves some that are older.
        self.class_counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

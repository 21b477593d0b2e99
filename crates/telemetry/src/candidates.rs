//! What is counted of candidate policies, for each of their classes.
//!
//! Names come from the configuration, and there are at most [`CLASS_SLOTS`](flashweir_core::limits::CLASS_SLOTS) pairs of
//! service and class, as for the policies in force.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_admission::sentry::{ClassCounts, Compared};

use crate::classes::place_of;

/// Names one class of one service's candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateSlot(u8);

/// What became of one class since the last time.
#[derive(Clone, Copy, Debug)]
pub struct CandidateNews<'a> {
    /// Which one.
    pub slot: CandidateSlot,
    /// What the candidate's gate counted.
    pub counts: &'a ClassCounts,
    /// What both policies made of the same requests.
    pub compared: &'a Compared,
    /// What one request answered in time is worth to the candidate.
    pub revenue: f64,
}

/// All classes of all candidates there have been.
#[derive(Debug, Default)]
pub(crate) struct Candidates(Mutex<Vec<KnownCandidate>>);

/// One class.
#[derive(Clone, Debug)]
pub(crate) struct KnownCandidate {
    pub(crate) service: String,
    pub(crate) class: String,
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) left: u64,
    pub(crate) good: u64,
    pub(crate) revenue: f64,
    pub(crate) live_revenue: f64,
    pub(crate) compared: Compared,
}

impl Candidates {
    pub(crate) fn slot(&self, service: &str, class: &str) -> CandidateSlot {
        let new = |service: &str, class: &str| KnownCandidate {
            service: service.to_owned(),
            class: class.to_owned(),
            offered: 0,
            admitted: 0,
            left: 0,
            good: 0,
            revenue: 0.0,
            live_revenue: 0.0,
            compared: Compared::default(),
        };
        let is_known = |known: &KnownCandidate| known.service == service && known.class == class;
        CandidateSlot(place_of(&mut self.lock(), (service, class), is_known, new))
    }

    pub(crate) fn count(&self, news: &CandidateNews<'_>) {
        if let Some(known) = self.lock().get_mut(usize::from(news.slot.0)) {
            known.offered += news.counts.offered;
            known.admitted += news.counts.admitted;
            known.left += news.counts.left;
            known.good += news.counts.good;
            known.revenue += news.counts.good as f64 * news.revenue;
            known.live_revenue += news.compared.live_good as f64 * news.revenue;
            known.compared.add(news.compared);
        }
    }

    pub(crate) fn known(&self) -> Vec<KnownCandidate> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KnownCandidate>> {
        // Counts are added one by one: a writer that panicked leaves some that are older.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

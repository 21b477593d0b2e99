//! The leader of a flight, which fetches for all, and the candidates, of which the first admitted leads.

use super::flight::{Flight, Landed};
use super::shared::CacheShared;
use crate::shared::Shared;
use flashweir_cache::{Lead, Stored};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One of those that wait for their turn at the origin: the first to be admitted fetches for all. The last
/// one that goes without having been admitted ends a flight without a leader.
#[derive(Debug)]
pub(crate) struct Candidate {
    shared: Arc<Shared>,
    flight: Arc<Flight>,
}

/// The one who fetches. Lands the flight at the latest when dropped.
#[derive(Debug)]
pub(crate) struct Leader {
    shared: Arc<Shared>,
    lead: Lead,
    flight: Arc<Flight>,
    is_landed: bool,
}

impl Candidate {
    /// The one that began the flight.
    pub(crate) fn first(shared: Arc<Shared>, lead: Lead, flight: Arc<Flight>) -> Self {
        *flight.open_lead() = Some(lead);
        Self::join(shared, flight)
    }

    /// Another one. Its interest must have begun before.
    pub(crate) fn join(shared: Arc<Shared>, flight: Arc<Flight>) -> Self {
        flight.candidates.fetch_add(1, Ordering::Relaxed);
        Self { shared, flight }
    }

    /// It has been admitted: it fetches, unless another one does.
    pub(crate) fn lead(&self) -> Option<Leader> {
        let lead = self.flight.open_lead().take()?;
        Some(Leader::new(self.shared.clone(), lead, self.flight.clone()))
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        // AcqRel: the last one sees the lead that the first one left.
        if self.flight.candidates.fetch_sub(1, Ordering::AcqRel) == 1 {
            // It lands as not sent.
            drop(self.lead());
        }
    }
}

impl Leader {
    pub(crate) fn new(shared: Arc<Shared>, lead: Lead, flight: Arc<Flight>) -> Self {
        Self { shared, lead, flight, is_landed: false }
    }

    /// Ends the flight. `stored` is made known to all workers; false if its document was purged meanwhile.
    pub(crate) fn land(mut self, stored: Option<&Arc<Stored>>, landed: Landed) -> bool {
        self.is_landed = true;
        self.end(stored, landed)
    }

    fn end(&self, stored: Option<&Arc<Stored>>, landed: Landed) -> bool {
        let CacheShared { directory, .. } = &self.shared.cache;
        // Out of the directory first: who comes now finds the response, or leads its own flight.
        let is_kept = directory.land(self.lead, stored);
        self.flight.landed.send_replace(Some(landed));
        is_kept
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_landed {
            self.end(None, Landed::NotSent);
        }
    }
}

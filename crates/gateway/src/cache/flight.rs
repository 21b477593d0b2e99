//! One fetch for all who ask for the same document: who leads it, who waits for it, and how it ends.

use super::shared::CacheShared;
use crate::shared::Shared;
use flashweir_cache::{Lead, Mark, Stored};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// State shared by the leader and the waiters of a flight, over all workers.
#[derive(Debug)]
pub(crate) struct Flight {
    landed: watch::Sender<Option<Landed>>,
    /// Requests that want its response.
    interested: AtomicUsize,
    /// Cancelled when none does any more.
    abandoned: CancellationToken,
    /// The lead, until the first candidate that is admitted takes it. None where the flight began with its
    /// leader.
    open_lead: Mutex<Option<Lead>>,
    /// Requests that wait for their turn at the origin, and would lead then.
    candidates: AtomicUsize,
    /// Its request is on its way to the origin.
    is_fetching: AtomicBool,
}

/// End of a flight.
#[derive(Clone, Debug)]
pub(crate) enum Landed {
    /// With a response for all whose requests select it.
    Stored(Arc<Stored>),
    /// With one that is its leader's alone; what is to be remembered of the document.
    Alone(Option<Mark>),
    /// The origin failed.
    Failed,
    /// The request was not sent: it was refused, or all its waiters left.
    NotSent,
}

/// One request's interest in a flight; withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct Interest(Arc<Flight>);

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

impl Flight {
    pub(crate) fn new() -> Self {
        let (landed, _) = watch::channel(None);
        Self {
            landed,
            interested: AtomicUsize::new(0),
            abandoned: CancellationToken::new(),
            open_lead: Mutex::default(),
            candidates: AtomicUsize::new(0),
            is_fetching: AtomicBool::new(false),
        }
    }

    /// Its request has been admitted.
    pub(crate) fn begin(&self) {
        // Relaxed: it spares others a fetch, and guards no other memory.
        self.is_fetching.store(true, Ordering::Relaxed);
    }

    /// Returns whether its request has been admitted.
    pub(crate) fn is_fetching(&self) -> bool {
        self.is_fetching.load(Ordering::Relaxed)
    }

    /// Returns whether its response is wanted by more than one request.
    pub(crate) fn is_shared(&self) -> bool {
        self.interested.load(Ordering::Relaxed) > 1
    }

    fn open_lead(&self) -> MutexGuard<'_, Option<Lead>> {
        // One assignment cannot be left half done.
        self.open_lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when no request waits for it any more.
    pub(crate) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }
}

impl Interest {
    pub(crate) fn new(flight: Arc<Flight>) -> Self {
        flight.interested.fetch_add(1, Ordering::Relaxed);
        Self(flight)
    }

    /// Waits for the flight's end.
    pub(crate) async fn landing(&self) -> Landed {
        let mut landed = self.0.landed.subscribe();
        let end = landed.wait_for(Option::is_some).await.map(|end| end.clone());
        end.ok().flatten().unwrap_or(Landed::NotSent)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        // AcqRel: who is the last sees what the others did.
        if self.0.interested.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.abandoned.cancel();
        }
    }
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

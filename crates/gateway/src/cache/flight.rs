//! One fetch for all who ask for the same document: who leads it, who waits for it, and how it ends.

use super::shared::CacheShared;
use crate::shared::Shared;
use flashweir_cache::{Lead, Mark, Stored};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What leader and waiters share, over all workers.
#[derive(Debug)]
pub(crate) struct Flight {
    landed: watch::Sender<Option<Landed>>,
    /// Requests that want its response.
    interested: AtomicUsize,
    /// Cancelled when none does any more.
    abandoned: CancellationToken,
}

/// How a flight ended.
#[derive(Clone, Debug)]
pub(crate) enum Landed {
    /// With a response for all whose requests select it.
    Stored(Arc<Stored>),
    /// With one that is its leader's alone; what is to be remembered of the document.
    Alone(Option<Mark>),
    /// The origin failed.
    Failed,
    /// Without having been sent: refused, or everybody left.
    NotSent,
}

/// One request's interest in a flight; withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct Interest(Arc<Flight>);

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
        Self { landed, interested: AtomicUsize::new(0), abandoned: CancellationToken::new() }
    }

    /// Resolves when nobody is interested any more.
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
        // Out of the directory first: who comes now finds the response, or leads a flight of its own.
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

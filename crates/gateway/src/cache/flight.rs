//! One fetch for all who ask for the same document: its state, who waits for it, and how it ends.

use flashweir_cache::{Lead, Mark, Stored};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// State shared by the leader and the waiters of a flight, over all workers.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(super) landed: watch::Sender<Option<Landed>>,
    /// Requests that want its response.
    interested: AtomicUsize,
    /// Cancelled when none does any more.
    abandoned: CancellationToken,
    /// The lead, until the first candidate that is admitted takes it. None where the flight began with its
    /// leader.
    open_lead: Mutex<Option<Lead>>,
    /// Requests that wait for their turn at the origin, and would lead then.
    pub(super) candidates: AtomicUsize,
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

    pub(super) fn open_lead(&self) -> MutexGuard<'_, Option<Lead>> {
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

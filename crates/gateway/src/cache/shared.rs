//! State that all workers' caches share.

use super::flight::Flight;
use arc_swap::ArcSwap;
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_cache::{Directory, OpenHost};
use flashweir_config::Cache;
use flashweir_core::{Instant, Rate, limits};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Purges that may come at once, and how many a second after that. One looks at each stored response.
const PURGES_AT_ONCE: u64 = 100;
const PURGES_PER_S: f64 = 20.0;

/// The shared state.
pub(crate) struct CacheShared {
    /// Stored responses and flights.
    pub(crate) directory: Directory<Flight>,
    /// Hot-spot keys of the hosts for which a crowd opened the cache.
    pub(crate) open: Arc<ArcSwap<Vec<u64>>>,
    /// The same with the numbers behind them.
    pub(crate) open_hosts: ArcSwap<Vec<OpenHost>>,
    /// Allows purges; the admin listener alone uses it.
    pub(crate) purges: Mutex<TokenBucket>,
    /// Each worker's store gets an equal part of the memory.
    pub(crate) workers: usize,
    waiters: AtomicUsize,
}

/// A request's place among those that wait for a flight; given back when dropped.
#[derive(Debug)]
pub(crate) struct WaiterPlace<'a>(&'a AtomicUsize);

impl CacheShared {
    /// An empty cache for this number of workers; no host is open.
    pub(crate) fn new(config: &Cache, workers: usize) -> Self {
        Self {
            directory: Directory::new(config.memory_bytes),
            open: Arc::default(),
            open_hosts: ArcSwap::default(),
            purges: Mutex::new(TokenBucket::full(
                Instant::ZERO,
                Rate::from_per_second(PURGES_PER_S),
                PURGES_AT_ONCE,
            )),
            workers: workers.max(1),
            waiters: AtomicUsize::new(0),
        }
    }

    /// A place to wait, unless all are taken.
    pub(crate) fn wait(&self) -> Option<WaiterPlace<'_>> {
        let most = limits::CACHE_WAITERS;
        // Relaxed: it is a count, and guards no other memory.
        let taken = self
            .waiters
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        taken.is_ok().then_some(WaiterPlace(&self.waiters))
    }

    /// Requests that wait for a flight.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.load(Ordering::Relaxed)
    }
}

impl Drop for WaiterPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for CacheShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheShared").field("open", &self.open).finish_non_exhaustive()
    }
}

//! State that all workers' caches share, and its `/status` document.

use super::flight::Flight;
use crate::shared::Shared;
use arc_swap::ArcSwap;
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_cache::{Directory, OpenHost};
use flashweir_config::Cache;
use flashweir_core::{Instant, Rate, limits};
use flashweir_telemetry::{CacheAnswer, Label as _};
use serde_json::{Map, Value, json};
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

/// Document of the cache for `/status`. Hosts have numbers and no names: names are chosen by clients.
pub(crate) fn status(shared: &Shared) -> Value {
    let live = shared.live.load();
    let (config, cache) = (&live.config.cache, &shared.cache);
    let now = shared.clock.now();
    let open = cache.open_hosts.load();
    let hosts = open.iter().map(|host| {
        json!({
            "open_s": now.saturating_since(host.since).as_secs_f64(),
            "demand_rps": host.demand_rps,
            "usual_rps": host.usual_rps,
            "peak_rps": host.peak_rps,
        })
    });
    let answers: Map<String, Value> = CacheAnswer::ALL
        .iter()
        .map(|&how| {
            (how.as_str().to_owned(), shared.telemetry.sum(|worker| worker.cache.answers.value(how)).into())
        })
        .collect();
    json!({
        "mode": config.mode.as_str(),
        "memory_bytes": config.memory_bytes,
        "used_bytes": cache.directory.gauge().bytes(),
        "responses": cache.directory.responses(),
        "flights": cache.directory.flights(),
        "waiting": cache.waiters.load(Ordering::Relaxed),
        "open_hosts": hosts.collect::<Vec<_>>(),
        "answers": answers,
        "fetches": shared.telemetry.sum(|worker| worker.cache.fetches.value()),
        "fetch_retries": shared.telemetry.sum(|worker| worker.cache.fetch_retries.value()),
        "refreshes": shared.telemetry.sum(|worker| worker.cache.refreshes.value()),
    })
}

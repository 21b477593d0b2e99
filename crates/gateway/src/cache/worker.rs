//! One worker's part of the cache: its store, what it knows not to wait for, and whether a host is in use.

use crate::shared::Shared;
use arc_swap::{ArcSwap, Cache as Latest};
use flashweir_admission::flash_crowd::HostCount;
use flashweir_cache::{Inserted, Key, Mark, Marks, Reservation, Store, Stored};
use flashweir_config::{CacheMode, Config};
use flashweir_core::limits::{CACHE_REFRESHES, HOT_SPOT_ENTRIES};
use flashweir_core::measure::SpaceSaving;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_http1::head::FieldsView;
use flashweir_telemetry::WorkerMetrics;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// Never leaves its worker's thread.
pub(crate) struct WorkerCache {
    shared: Arc<Shared>,
    metrics: Arc<WorkerMetrics>,
    mode: Cell<CacheMode>,
    /// True if it matters to which hosts a crowd came.
    follows_crowds: Cell<bool>,
    store: RefCell<Store>,
    marks: RefCell<Marks>,
    open: RefCell<OpenHosts>,
    /// Requests that the cache answered, by host: the detector does not see them.
    answered: RefCell<SpaceSaving<HOT_SPOT_ENTRIES>>,
    /// Requests that a copy spared a refusal or a wait.
    spared: Cell<u64>,
    /// Documents fetched again lately, and until when they are not to be fetched once more.
    refreshed: RefCell<Vec<(u64, Instant)>>,
}

/// The hosts for which the cache is open, as this worker last saw them.
struct OpenHosts {
    latest: Latest<Arc<ArcSwap<Vec<u64>>>, Arc<Vec<u64>>>,
    in_force: Arc<Vec<u64>>,
}

impl WorkerCache {
    pub(crate) fn new(shared: Arc<Shared>, metrics: Arc<WorkerMetrics>) -> Self {
        let open = OpenHosts {
            latest: Latest::new(shared.cache.open.clone()),
            in_force: shared.cache.open.load_full(),
        };
        let cache = Self {
            metrics,
            mode: Cell::new(CacheMode::Off),
            follows_crowds: Cell::new(false),
            store: RefCell::new(Store::new(0)),
            marks: RefCell::default(),
            open: RefCell::new(open),
            answered: RefCell::default(),
            spared: Cell::new(0),
            refreshed: RefCell::default(),
            shared,
        };
        cache.configure(&cache.shared.live.load().config);
        cache
    }

    /// Takes over a configuration. What a store holds that was filled under another mode is let go.
    pub(crate) fn configure(&self, config: &Config) {
        self.follows_crowds.set(follows_crowds(config));
        let config = &config.cache;
        if self.mode.replace(config.mode) != config.mode {
            self.store.borrow_mut().clear();
            self.marks.borrow_mut().clear();
        }
        let part =
            if config.mode == CacheMode::Off { 0 } else { config.memory_bytes / self.shared.cache.workers };
        self.store.borrow_mut().set_bytes_max(part);
    }

    /// Returns whether the cache is in use at all; if so it may be for some hosts only.
    pub(crate) fn is_on(&self) -> bool {
        self.mode.get() != CacheMode::Off
    }

    /// Returns whether it is in use for this host. In crowds: one relaxed load and a comparison, unless the
    /// hosts have changed.
    pub(crate) fn is_in_use(&self, host_key: u64) -> bool {
        match self.mode.get() {
            CacheMode::Off => false,
            CacheMode::Always => true,
            CacheMode::Crowd => self.is_crowded(host_key),
        }
    }

    /// Returns whether a crowd came to this host; said only where it matters ([`follows_crowds`]). Cost as of
    /// [`is_in_use`](Self::is_in_use).
    pub(crate) fn is_crowded(&self, host_key: u64) -> bool {
        let open = &mut *self.open.borrow_mut();
        let latest = open.latest.load();
        if !Arc::ptr_eq(latest, &open.in_force) {
            open.in_force = latest.clone();
            if self.mode.get() == CacheMode::Crowd {
                self.close_others(&open.in_force);
            }
        }
        open.in_force.contains(&host_key)
    }

    /// Returns whether requests for one document that find no room at the origin may be one fetch, wherever
    /// the cache is closed.
    pub(crate) fn opens_in_crowds(&self) -> bool {
        self.mode.get() == CacheMode::Crowd
    }

    /// Expires idle cache openings without a request.
    pub(crate) fn follow(&self) {
        if self.mode.get() == CacheMode::Crowd {
            self.is_in_use(0);
        }
    }

    fn close_others(&self, open: &[u64]) {
        self.store.borrow_mut().retain_hosts(|host| open.contains(&host));
        self.marks.borrow_mut().clear();
    }

    /// The stored response to a request.
    pub(crate) fn find<'a>(
        &self,
        hash: u64,
        key: &Key<'_>,
        service: u64,
        request: impl Into<FieldsView<'a>>,
    ) -> Option<Arc<Stored>> {
        self.store.borrow_mut().find(hash, key, service, request).cloned()
    }

    /// Room for a response that is about to be stored: this worker lets go what it used least recently.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let store = &mut *self.store.borrow_mut();
        if !store.can_hold(bytes) {
            return None;
        }
        store.make_room(bytes);
        loop {
            let reserved = self.shared.cache.directory.gauge().reserve(bytes);
            if reserved.is_some() || !store.evict_one() {
                self.metrics.cache.evicted.add(store.take_evicted());
                return reserved;
            }
        }
    }

    /// Puts a response in; false if it is larger than the store.
    pub(crate) fn insert(&self, hash: u64, stored: Arc<Stored>) -> bool {
        let store = &mut *self.store.borrow_mut();
        let inserted = store.insert(hash, stored);
        self.metrics.cache.evicted.add(store.take_evicted());
        inserted == Inserted::Stored
    }

    /// Hashes keys alike on all workers.
    pub(crate) fn hasher(&self) -> &Hasher64 {
        &self.shared.hasher
    }

    /// Ends what is stored under these keys, each with its hash, on all workers.
    pub(crate) fn invalidate<'a>(&self, keys: impl Iterator<Item = (u64, Key<'a>)>) {
        let directory = &self.shared.cache.directory;
        let responses: usize = keys.map(|(hash, key)| directory.invalidate(hash, &key)).sum();
        self.metrics.cache.invalidated.add(responses as u64);
    }

    /// The mark of a document, if it has one.
    pub(crate) fn mark(&self, now: Instant, hash: u64) -> Option<Mark> {
        self.marks.borrow().find(now, hash)
    }

    /// Remembers it.
    pub(crate) fn put_mark(&self, now: Instant, hash: u64, mark: Mark) {
        self.marks.borrow_mut().put(now, hash, mark);
    }

    /// The cache answered a request for this host.
    pub(crate) fn count_answer(&self, host_key: u64) {
        if self.follows_crowds.get() {
            self.answered.borrow_mut().hit(host_key, 1);
        }
    }

    /// Requests that it answered since the last time, by host.
    pub(crate) fn take_answered(&self) -> Vec<HostCount> {
        let answered = &mut *self.answered.borrow_mut();
        let hosts = answered.iter().map(|(key, hits)| HostCount { key, hits }).collect();
        answered.clear();
        hosts
    }

    /// A copy answers a request that would have been refused or have had to wait.
    pub(crate) fn count_spared(&self) {
        self.spared.set(self.spared.get() + 1);
    }

    /// Number of spared requests since the last call.
    pub(crate) fn take_spared(&self) -> u64 {
        self.spared.take()
    }

    /// Returns whether a stale document is to be fetched again now; then not once more within this time.
    pub(crate) fn is_refresh_due(&self, now: Instant, hash: u64, not_within: Duration) -> bool {
        let refreshed = &mut *self.refreshed.borrow_mut();
        refreshed.retain(|(_, until)| now < *until);
        if refreshed.len() >= CACHE_REFRESHES || refreshed.iter().any(|(known, _)| *known == hash) {
            return false;
        }
        refreshed.push((hash, now + not_within));
        true
    }
}

/// Returns whether it matters to which hosts a crowd came: where the cache is in use for those alone, or
/// where copies may be given a grace.
pub(crate) fn follows_crowds(config: &Config) -> bool {
    match config.cache.mode {
        CacheMode::Off => false,
        CacheMode::Crowd => true,
        CacheMode::Always => {
            let mut classes = config.services.iter().flat_map(|service| &service.classes);
            classes.any(|class| !class.grace.is_zero())
        }
    }
}

impl fmt::Debug for WorkerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerCache").field("mode", &self.mode).finish_non_exhaustive()
    }
}

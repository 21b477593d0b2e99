//! State that the workers' stores share: which responses there are, and which are being fetched. Asked on a
//! miss, never on a hit.
//!
//! Responses are known by weak references: the stores own them. Each shard has a lock that is held for a
//! look-up; a purge holds one shard's at a time. `F` is what a shell keeps of a response that is being
//! fetched: the requests that wait for it.

use crate::gauge::Gauge;
use crate::identity_hash::BuildIdentity;
use crate::{Key, State, Stored};
use flashweir_core::Instant;
use flashweir_core::limits::CACHE_FLIGHTS;
use flashweir_http1::head::FieldsView;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Few enough to walk, enough that workers rarely meet.
const SHARDS: usize = 16;

/// Responses and flights of all workers.
#[derive(Debug)]
pub struct Directory<F> {
    shards: [Mutex<Shard<F>>; SHARDS],
    gauge: Arc<Gauge>,
}

#[derive(Debug)]
struct Shard<F> {
    stored: HashMap<u64, Vec<Weak<Stored>>, BuildIdentity>,
    flights: HashMap<u64, Vec<Flight<F>>, BuildIdentity>,
    /// Numbers the flights.
    serial: u64,
    /// Counts invalidations, so that a response that was asked for before one is not stored after it.
    invalidations: u64,
}

#[derive(Debug)]
struct Flight<F> {
    key: Box<[u8]>,
    group: FlightGroup,
    serial: u64,
    shared: Arc<F>,
}

/// Requests for a document that may wait for one flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightGroup {
    /// Requests of different classes do not wait for each other.
    pub class: u8,
    /// Nor do those whose origin may choose its response by a field that they do not share:
    /// [`unknown_fields`](crate::unknown_fields). Requests with such fields may wait for a flight without
    /// any: they see whether its response is theirs.
    pub fields: u64,
}

/// Right to fetch a document for all requests that wait for it; returned by [`Directory::land`] in every
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a flight that never lands keeps others waiting"]
pub struct Lead {
    hash: u64,
    serial: u64,
}

/// Result for a request that its worker's store has no answer for.
#[derive(Debug)]
pub enum Joined<F> {
    /// Another worker has it, fresh or about to be fetched again.
    Stored(Arc<Stored>),
    /// Another request is fetching it.
    Waits(Arc<F>),
    /// This request is to fetch it. A stored response is stale: it may be revalidated, or served where
    /// fetching fails.
    Leads(Lead, Arc<F>, Option<Arc<Stored>>),
    /// No request fetches it, and this one may not.
    Absent(Option<Arc<Stored>>),
    /// The document has [`CACHE_FLIGHTS`] flights of requests with unknown fields: this one goes by itself.
    Full,
}

impl<F> Default for Shard<F> {
    fn default() -> Self {
        Self { stored: HashMap::default(), flights: HashMap::default(), serial: 0, invalidations: 0 }
    }
}

impl<F> Directory<F> {
    /// An empty directory; responses may take `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { shards: core::array::from_fn(|_| Mutex::default()), gauge: Arc::new(Gauge::new(bytes_max)) }
    }

    /// Memory of the responses, those included that have left the stores and are still being sent.
    #[must_use]
    pub fn gauge(&self) -> &Arc<Gauge> {
        &self.gauge
    }

    /// Finds the response that another worker has, or joins those who wait for it, or begins to fetch it.
    /// `group` separates requests that do not wait for each other: a document has at most [`CACHE_FLIGHTS`]
    /// flights of requests with unknown fields, so that the search is bounded. `begin` makes what the waiters
    /// share.
    pub fn join(
        &self,
        now: Instant,
        (hash, key, service, request): (u64, &Key<'_>, u64, FieldsView<'_>),
        group: FlightGroup,
        may_lead: bool,
        begin: impl FnOnce() -> F,
    ) -> Joined<F> {
        let shard = &mut *self.shard(hash);
        let mut known = shard.stored.get(&hash).into_iter().flatten().rev().filter_map(Weak::upgrade);
        let stale = known.find(|stored| stored.answers(key, service, request));
        if let Some(stored) = &stale
            && stored.state(now) != State::Stale
            && !(may_lead && stored.state(now) == State::WhileRevalidate)
        {
            return Joined::Stored(stored.clone());
        }
        let flights = shard.flights.get(&hash).map_or(&[][..], Vec::as_slice);
        let of = |group| flights.iter().find(|flight| flight.group == group && key.is(&flight.key));
        if let Some(flight) = of(group).or_else(|| of(FlightGroup { fields: 0, ..group })) {
            return Joined::Waits(flight.shared.clone());
        }
        if !may_lead {
            return Joined::Absent(stale);
        }
        let has_unknown_fields = |flight: &&Flight<F>| flight.group.fields != 0;
        if group.fields != 0 && flights.iter().filter(has_unknown_fields).count() >= CACHE_FLIGHTS {
            return Joined::Full;
        }
        shard.serial += 1;
        let (serial, shared) = (shard.serial, Arc::new(begin()));
        let flight = Flight { key: key.to_bytes(), group, serial, shared: shared.clone() };
        shard.flights.entry(hash).or_default().push(flight);
        Joined::Leads(Lead { hash, serial }, shared, stale)
    }

    /// The flight is over, with a response that others may use, if it brought one. False if its document was
    /// invalidated meanwhile: then the response is for those who waited and no others.
    pub fn land(&self, lead: Lead, stored: Option<&Arc<Stored>>) -> bool {
        let shard = &mut *self.shard(lead.hash);
        let Some(flights) = shard.flights.get_mut(&lead.hash) else { return false };
        let before = flights.len();
        flights.retain(|flight| flight.serial != lead.serial);
        let is_known = flights.len() < before;
        if flights.is_empty() {
            shard.flights.remove(&lead.hash);
        }
        match stored {
            Some(stored) if is_known => shard.put(lead.hash, stored),
            Some(stored) => stored.invalidate(),
            None => {}
        }
        is_known
    }

    /// Marks the beginning of a fetch that is no flight.
    #[must_use]
    pub fn mark(&self, hash: u64) -> u64 {
        self.shard(hash).invalidations
    }

    /// Makes a response known that was fetched without a flight since this mark. False, and the response is
    /// invalid, if something was invalidated meanwhile.
    pub fn publish(&self, hash: u64, mark: u64, stored: &Arc<Stored>) -> bool {
        let shard = &mut *self.shard(hash);
        let is_current = shard.invalidations == mark;
        match is_current {
            true => shard.put(hash, stored),
            false => stored.invalidate(),
        }
        is_current
    }

    /// Invalidates all responses for a key, and those being fetched. How many there were.
    pub fn invalidate(&self, hash: u64, key: &Key<'_>) -> usize {
        self.shard(hash).invalidate(
            |place| place == hash,
            |stored| stored.is_for(key),
            |flight| key.is(&flight.key),
        )
    }

    /// Invalidates responses, and everything that is being fetched, for what those will be is not known. How
    /// many there were. O(responses).
    pub fn purge(&self, is_purged: impl Fn(&Stored) -> bool) -> usize {
        let shards = self.shards.iter().map(lock);
        shards.map(|mut shard| shard.invalidate(|_| true, &is_purged, |_| true)).sum()
    }

    /// Forgets responses that no store holds any more. O(responses); to be called now and then.
    pub fn sweep(&self) {
        for mut shard in self.shards.iter().map(lock) {
            shard.stored.retain(|_, variants| {
                variants.retain(|stored| stored.strong_count() > 0);
                !variants.is_empty()
            });
        }
    }

    /// Responses that some store holds.
    #[must_use]
    pub fn responses(&self) -> usize {
        let held =
            |variants: &Vec<Weak<Stored>>| variants.iter().filter(|stored| stored.strong_count() > 0).count();
        self.shards.iter().map(|shard| lock(shard).stored.values().map(held).sum::<usize>()).sum()
    }

    /// Responses being fetched.
    #[must_use]
    pub fn flights(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).flights.values().map(Vec::len).sum::<usize>()).sum()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<F>> {
        // The maps use the lower bits, the shards the upper ones.
        lock(&self.shards[(hash >> 60) as usize % SHARDS])
    }
}

impl<F> Shard<F> {
    fn put(&mut self, hash: u64, stored: &Arc<Stored>) {
        let variants = self.stored.entry(hash).or_default();
        variants.retain(|other| match other.upgrade() {
            Some(other) if stored.replaces(&other) => {
                // The other workers' stores let it go when they see it.
                other.invalidate();
                false
            }
            other => other.is_some(),
        });
        variants.push(Arc::downgrade(stored));
    }

    fn invalidate(
        &mut self,
        is_place: impl Fn(u64) -> bool,
        is_purged: impl Fn(&Stored) -> bool,
        is_detached: impl Fn(&Flight<F>) -> bool,
    ) -> usize {
        self.invalidations += 1;
        let mut count = 0;
        self.stored.retain(|&place, variants| {
            if is_place(place) {
                variants.retain(|stored| match stored.upgrade() {
                    Some(stored) if is_purged(&stored) => {
                        stored.invalidate();
                        count += 1;
                        false
                    }
                    stored => stored.is_some(),
                });
            }
            !variants.is_empty()
        });
        self.flights.retain(|&place, flights| {
            if is_place(place) {
                flights.retain(|flight| !is_detached(flight));
            }
            !flights.is_empty()
        });
        count
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held left whole entries: each change is one call.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;

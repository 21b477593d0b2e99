//! Outcome of every request, and faults that must not happen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Faults that are reported one by one; more are counted only.
const FAULTS_TOLD: usize = 20;

/// The number of one request: which client's, and which of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) client: usize,
    pub(crate) number: u64,
}

/// Shared by all threads of the scene.
#[derive(Debug, Default)]
pub(crate) struct Account {
    totals: Mutex<BTreeMap<&'static str, u64>>,
    faults: Mutex<(u64, Vec<String>)>,
    /// By client: one bit for each of its requests that a server has read, and one for each that was read
    /// twice.
    arrived: Mutex<BTreeMap<usize, Vec<[u64; 2]>>>,
    /// Even while the gateway runs; raised before it is ended and after it is back.
    generation: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Account {
    pub(crate) fn count(&self, what: &'static str) {
        *lock(&self.totals).entry(what).or_default() += 1;
    }

    pub(crate) fn total(&self, what: &str) -> u64 {
        lock(&self.totals).get(what).copied().unwrap_or(0)
    }

    /// Something that must not happen.
    pub(crate) fn fault(&self, what: String) {
        let mut faults = lock(&self.faults);
        faults.0 += 1;
        if faults.1.len() < FAULTS_TOLD {
            faults.1.push(what);
        }
    }

    /// A server has read this request whole. An idempotent one may be sent once more (RFC 9110 §9.2.2), no
    /// other and none a third time.
    pub(crate) fn arrive(&self, id: Id, is_idempotent: bool) {
        let (word, bit) = ((id.number / 64) as usize, 1 << (id.number % 64));
        let mut arrived = lock(&self.arrived);
        let words = arrived.entry(id.client).or_default();
        if words.len() <= word {
            words.resize(word + 1, [0, 0]);
        }
        let [once, twice] = &mut words[word];
        let (was_read, was_repeated) = (*once & bit != 0, *twice & bit != 0);
        *once |= bit;
        if was_read {
            *twice |= bit;
        }
        drop(arrived);
        match (was_read, was_repeated) {
            (false, _) => {}
            (true, false) if is_idempotent => self.count("repeated"),
            (true, false) => self.fault(format!("{id:?} was sent to servers twice")),
            (true, true) => self.fault(format!("{id:?} was sent to servers three times")),
        }
    }

    /// Even while the gateway runs: equal even numbers of two calls mean that it has run all the time in
    /// between.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// The gateway is about to end, or is back.
    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn report(&self) -> String {
        let totals = lock(&self.totals);
        totals.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }

    /// # Panics
    /// When anything happened that must not.
    pub(crate) fn check(&self) {
        let faults = lock(&self.faults);
        assert!(faults.0 == 0, "{} faults: {:#?}; {}", faults.0, faults.1, self.report());
    }
}

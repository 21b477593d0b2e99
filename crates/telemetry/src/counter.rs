//! Counters that cost one relaxed addition.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::label::Label;

/// A number that only grows. Counting is one uncontended relaxed addition.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// That many more.
    pub fn add(&self, count: u64) {
        // Relaxed: a scrape only needs each number to be one that was true a moment ago.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A counter for each variant of an enum.
#[derive(Debug)]
pub struct CounterSet<L> {
    counters: Box<[Counter]>,
    label: PhantomData<fn(L)>,
}

impl<L: Label> Default for CounterSet<L> {
    fn default() -> Self {
        Self { counters: L::ALL.iter().map(|_| Counter::default()).collect(), label: PhantomData }
    }
}

impl<L: Label> CounterSet<L> {
    /// One more of this kind.
    pub fn increment(&self, label: L) {
        self.counters[label.index()].increment();
    }

    /// That many more of this kind.
    pub fn add(&self, label: L, count: u64) {
        self.counters[label.index()].add(count);
    }

    /// The count of this kind so far.
    #[must_use]
    pub fn value(&self, label: L) -> u64 {
        self.counters[label.index()].value()
    }

    /// The count of all kinds so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counters.iter().map(Counter::value).sum()
    }
}

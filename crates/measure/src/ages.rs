//! How long those who are still there have been there, without a record of each.

use crate::Histogram;
use alloc::boxed::Box;
use flashweir_core::{Duration, Instant};

/// Slots of time in which starts are counted.
const SLOTS: u64 = 512;

/// Counts of present items by start time: a quantile of finished times alone does not see the
/// slow ones that have not finished, so these ages are to be counted with them.
///
/// Cost: a division and a counter for each start and end, no allocation; 2 kB. Error: an age is off by at most one slot
/// (the reach over 512); an item older than the reach counts as that old.
///
/// ```
/// use flashweir_core::{Duration, Instant};
/// use flashweir_measure::{Ages, Histogram};
/// let mut ages = Ages::new(Duration::from_millis(5_120));
/// ages.begin(Instant::from_millis(100));
/// ages.begin(Instant::from_millis(300));
/// ages.end(Instant::from_millis(900), Instant::from_millis(100));
/// let mut ages_us = Histogram::new();
/// ages.record_into(Instant::from_millis(900), &mut ages_us);
/// assert_eq!(ages_us.count(), 1);
/// assert!(ages_us.quantile(0.5).is_some_and(|age| age.abs_diff(600_000) < 25_000));
/// ```
#[derive(Clone, Debug)]
pub struct Ages {
    slot_nanos: u64,
    counts: Box<[u32; SLOTS as usize]>,
    /// The slot of now: starts in each of the last [`SLOTS`] slots up to it are counted separately.
    newest: u64,
    older: u64,
}

impl Ages {
    /// An empty count; ages are distinguished up to `reach`.
    #[must_use]
    pub fn new(reach: Duration) -> Self {
        let reach_nanos = u64::try_from(reach.as_nanos()).unwrap_or(u64::MAX);
        let slot_nanos = (reach_nanos / SLOTS).max(1);
        Self { slot_nanos, counts: Box::new([0; SLOTS as usize]), newest: 0, older: 0 }
    }

    /// Counts the start of an item.
    pub fn begin(&mut self, now: Instant) {
        self.advance(now);
        let count = self.slot(self.newest);
        *count = count.saturating_add(1);
    }

    /// Removes an item that began at `started`. Unknown starts are ignored.
    pub fn end(&mut self, now: Instant, started: Instant) {
        self.advance(now);
        let slot = started.as_nanos() / self.slot_nanos;
        if slot + SLOTS <= self.newest {
            self.older = self.older.saturating_sub(1);
        } else {
            let count = self.slot(slot);
            *count = count.saturating_sub(1);
        }
    }

    /// Adds the ages of all present items, microseconds. O(512).
    pub fn record_into(&mut self, now: Instant, ages_us: &mut Histogram) {
        self.advance(now);
        for back in 0..SLOTS.min(self.newest + 1) {
            let slot = self.newest - back;
            let count = *self.slot(slot);
            if count > 0 {
                let age_nanos = now.as_nanos().saturating_sub(slot * self.slot_nanos);
                ages_us.record_many(age_nanos / 1_000, count.into());
            }
        }
        ages_us.record_many((self.slot_nanos * SLOTS) / 1_000, self.older);
    }

    /// Moves on; slots that are used again hand over whom they still count. O(slots passed), at most 512.
    fn advance(&mut self, now: Instant) {
        let slot = now.as_nanos() / self.slot_nanos;
        for passed in 0..slot.saturating_sub(self.newest).min(SLOTS) {
            let reused = self.slot(slot - passed);
            let count = core::mem::take(reused);
            self.older += u64::from(count);
        }
        self.newest = self.newest.max(slot);
    }

    fn slot(&mut self, slot: u64) -> &mut u32 {
        &mut self.counts[(slot % SLOTS) as usize]
    }
}

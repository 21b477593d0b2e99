//! A histogram that is recorded into on a request's path and handed over again and again.

use super::bucket::{BUCKETS, index};
use super::{Counts, Histogram};
use crate::BitSet;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Records values between two drains. Its counters stay: only a drain allocates, 16 bytes for each bucket in
/// use, in place of 3.7 kB of zeros for a [`Histogram`] each time.
///
/// ```
/// use flashweir_core::measure::Histogram;
/// use flashweir_core::measure::histogram::Recorder;
/// let (mut recorder, mut expected) = (Recorder::default(), Histogram::new());
/// for value in [1_500, 40, 1_501] {
///     recorder.record(value);
///     expected.record(value);
/// }
/// assert_eq!(recorder.drain(), expected);
/// assert_eq!(recorder.drain(), Histogram::new());
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    counts: Box<[u64; BUCKETS]>,
    used: BitSet<{ BUCKETS.div_ceil(u64::BITS as usize) }>,
    count: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), used: BitSet::default(), count: 0 }
    }
}

impl Recorder {
    /// Takes one value.
    pub fn record(&mut self, value: u64) {
        let index = usize::from(index(value));
        self.counts[index] = self.counts[index].saturating_add(1);
        self.used.insert(index);
        self.count = self.count.saturating_add(1);
    }

    /// Hands over what was recorded since the last drain. O(buckets in use).
    pub fn drain(&mut self) -> Histogram {
        let used = core::mem::take(&mut self.used);
        let mut pairs = Vec::with_capacity(used.len());
        // BUCKETS is 465: the cast loses nothing.
        pairs.extend(used.iter().map(|index| (index as u16, core::mem::take(&mut self.counts[index]))));
        let counts = Counts::Used(pairs.into_boxed_slice());
        Histogram { counts, count: core::mem::take(&mut self.count) }
    }
}

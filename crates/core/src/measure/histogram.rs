//! A histogram of whole numbers (microseconds in use) that merges exactly and never grows.
//!
//! Rule: values below 16 have a counter each; above, every octave is cut into 16 equal steps, up to 2³². One
//! array of counters for all uses means that adding histograms is adding counters: exact, in any order, over
//! threads, seconds, classes and machines. An HDR histogram with more digits would distinguish values that no
//! two runs repeat, for thousands of buckets instead of 465.
//!
//! Cost: [`Histogram::record`] is a count of leading zeros, a shift and two additions, a few nanoseconds; a
//! histogram is 3.7 kB, one that a [`Recorder`] hands over 16 bytes for each bucket in use, a [`Sparse`]
//! one
//! 8. Error: a quantile is the middle of the bucket of the value sought, off by at most 3.125 %; exact below
//! 32. Values above 2³² count as 2³². Counters stop at their highest value instead of wrapping.

mod bucket;
mod recorder;
mod sparse;

pub use bucket::{BUCKETS, Bucket, VALUE_MAX, bucket_middle, index};
pub use recorder::Recorder;
pub use sparse::{COUNT_MAX, PairsError, Sparse};

use alloc::boxed::Box;

/// Counters of values, ready to record.
///
/// ```
/// use flashweir_core::measure::Histogram;
/// let mut latency_us = Histogram::new();
/// (1..=1_000).for_each(|value| latency_us.record(value));
/// let median = latency_us.quantile(0.5).expect("there are values");
/// assert!(median.abs_diff(500) * 32 <= 500);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Counts,
    count: u64,
}

/// Counters of a histogram.
#[derive(Clone, Debug)]
enum Counts {
    /// Of the buckets in use, lowest first: until something is added.
    Used(Box<[(u16, u64)]>),
    All(Box<[u64; BUCKETS]>),
}

impl Default for Counts {
    fn default() -> Self {
        Self::Used(Box::default())
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// An empty histogram; the first value allocates its counters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one value.
    pub fn record(&mut self, value: u64) {
        self.add_count(index(value), 1);
    }

    /// Takes the same value `count` times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        self.add_count(index(value), count);
    }

    /// Adds everything `other` holds: as if its values had been recorded here. O([`BUCKETS`]).
    pub fn add(&mut self, other: &Self) {
        match (&mut self.counts, &other.counts) {
            (mine @ Counts::Used(_), theirs) if self.count == 0 => *mine = theirs.clone(),
            (mine, Counts::Used(theirs)) => {
                let mine = mine.all();
                theirs.iter().for_each(|&(index, count)| add(&mut mine[usize::from(index)], count));
            }
            (mine, Counts::All(theirs)) => {
                mine.all().iter_mut().zip(&**theirs).for_each(|(mine, &theirs)| add(mine, theirs));
            }
        }
        self.count = self.count.saturating_add(other.count);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        match &mut self.counts {
            used @ Counts::Used(_) => *used = Counts::default(),
            Counts::All(all) => all.fill(0),
        }
        self.count = 0;
    }

    /// Number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value that the fraction `share` of all values (0 to 1, else the nearer of them) do not exceed: the
    /// middle of the bucket that holds the `ceil(share · count)`-th smallest, never the zeroth. `None`
    /// without values. Never falls as `share` grows. O([`BUCKETS`]).
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        quantile(self.buckets(), self.count, share)
    }

    /// The bucket of the smallest value.
    #[must_use]
    pub fn lowest(&self) -> Option<Bucket> {
        self.buckets().next()
    }

    /// The bucket of the largest value.
    #[must_use]
    pub fn highest(&self) -> Option<Bucket> {
        self.buckets().next_back()
    }

    /// The buckets in use, lowest first.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = Bucket> + '_ {
        let (used, all): (&[_], &[_]) = match &self.counts {
            Counts::Used(used) => (used, &[]),
            Counts::All(all) => (&[], &**all),
        };
        // BUCKETS is 465: the cast loses nothing.
        let all = all.iter().enumerate().map(|(index, &count)| (index as u16, count));
        let counts = used.iter().copied().chain(all.filter(|&(_, count)| count > 0));
        counts.map(|(index, count)| Bucket::at(index, count))
    }

    /// Adds to the counter at `index`, which every caller got from [`index`] or checked.
    fn add_count(&mut self, index: u16, count: u64) {
        add(&mut self.counts.all()[usize::from(index)], count);
        add(&mut self.count, count);
    }
}

impl Counts {
    /// A counter for each bucket, from now on.
    #[inline]
    fn all(&mut self) -> &mut [u64; BUCKETS] {
        if let Self::Used(used) = self {
            *self = Self::All(spread(used));
        }
        match self {
            Self::All(all) => all,
            Self::Used(_) => unreachable!("every bucket has a counter now"),
        }
    }
}

#[cold]
fn spread(used: &[(u16, u64)]) -> Box<[u64; BUCKETS]> {
    let mut all = Box::new([0; BUCKETS]);
    used.iter().for_each(|&(index, count)| all[usize::from(index)] = count);
    all
}

fn add(counter: &mut u64, count: u64) {
    *counter = counter.saturating_add(count);
}

/// Allowed for rounding in `share · count`, so that 0.55 · 100 is the 55th value and not the 56th.
const ROUNDING: f64 = 1e-6;

fn quantile(buckets: impl Iterator<Item = Bucket>, count: u64, share: f64) -> Option<u64> {
    // The cast takes NaN and negative numbers to 0, and the clamp the rest into 1..=count.
    let rank = (libm::ceil(share * count as f64 - ROUNDING) as u64).clamp(1, count.max(1));
    let mut seen = 0u64;
    for bucket in buckets {
        seen = seen.saturating_add(bucket.count);
        if seen >= rank {
            return Some(bucket.middle());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.lowest(), histogram.highest()), (None, None, None));
        histogram.record(7);
        assert_eq!([0.0, 0.5, 1.0, f64::NAN, -1.0, 2.0].map(|q| histogram.quantile(q)), [Some(7); 6]);
        histogram.record_many(20, 3);
        assert_eq!([0.25, 0.26, 1.0].map(|q| histogram.quantile(q)), [Some(7), Some(20), Some(20)]);
        assert_eq!(histogram.lowest().map(|bucket| bucket.count), Some(1));
        assert_eq!(histogram.highest().map(|bucket| bucket.count), Some(3));
    }

    #[test]
    fn the_rank_does_not_move_with_rounding() {
        // 0.55 · 100 is 55.000000000000007 in floating point; the 56th value is another one.
        let mut histogram = Histogram::new();
        histogram.record_many(1, 55);
        histogram.record_many(2, 45);
        assert_eq!(histogram.quantile(0.55), Some(1));
    }

    #[test]
    fn what_is_too_high_counts_as_the_top() {
        let mut histogram = Histogram::new();
        for value in [VALUE_MAX, VALUE_MAX + 1, u64::MAX] {
            histogram.record(value);
        }
        let top = histogram.highest().expect("three values");
        assert_eq!((top.low, top.count, histogram.quantile(0.5)), (VALUE_MAX, 3, Some(VALUE_MAX)));
    }

    #[test]
    fn counters_stop_instead_of_wrapping() {
        let mut histogram = Histogram::new();
        histogram.record_many(9, u64::MAX);
        let other = histogram.clone();
        histogram.record(9);
        histogram.add(&other);
        histogram.record(20_000);
        assert_eq!((histogram.count(), histogram.quantile(1.0)), (u64::MAX, Some(9)));
        histogram.clear();
        assert_eq!(histogram, Histogram::new());
    }
}

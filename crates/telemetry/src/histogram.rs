//! Histograms of durations with fixed buckets.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// Histogram of durations by fixed buckets. Recording: a binary search over at most 20 integers and two
/// relaxed additions.
#[derive(Debug)]
pub struct Histogram {
    /// Upper bounds in nanoseconds, ascending; what is longer falls into one bucket more.
    bounds_ns: &'static [u64],
    counts: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
}

/// A histogram's numbers at one moment, added up over workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HistogramValues {
    pub(crate) sum_s: f64,
    pub(crate) count: u64,
    /// Upper bound in seconds and how many fell into the bucket (not cumulated); the last bound is infinite.
    pub(crate) buckets: Vec<(f64, u64)>,
}

impl Histogram {
    pub(crate) fn new(bounds_ns: &'static [u64]) -> Self {
        let counts = (0..=bounds_ns.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds_ns, counts, sum_ns: AtomicU64::new(0) }
    }

    /// Counts one duration; a duration equal to a bucket's bound falls into that bucket.
    pub fn record(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds_ns.partition_point(|&bound| bound < nanos);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Number of recorded durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Adds this histogram to `total`, which is empty or came from the same bounds.
    pub(crate) fn add_to(&self, total: &mut HistogramValues) {
        let bounds = self.bounds_ns.iter().map(|&bound| bound as f64 / 1e9).chain([f64::INFINITY]);
        for (index, (bound_s, count)) in bounds.zip(&self.counts).enumerate() {
            let count = count.load(Ordering::Relaxed);
            total.count += count;
            match total.buckets.get_mut(index) {
                Some(bucket) => bucket.1 += count,
                None => total.buckets.push((bound_s, count)),
            }
        }
        total.sum_s += self.sum_ns.load(Ordering::Relaxed) as f64 / 1e9;
    }
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// Buckets of OpenTelemetry's `http.server.request.duration`: 5 ms to 10 s.
pub(crate) const REQUEST_BOUNDS_NS: &[u64] = &[
    5 * MILLISECOND,
    10 * MILLISECOND,
    25 * MILLISECOND,
    50 * MILLISECOND,
    75 * MILLISECOND,
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    750 * MILLISECOND,
    1_000 * MILLISECOND,
    2_500 * MILLISECOND,
    5_000 * MILLISECOND,
    7_500 * MILLISECOND,
    10_000 * MILLISECOND,
];

/// 10 µs to 100 ms: work of our own, where a millisecond is already news.
pub(crate) const FINE_BOUNDS_NS: &[u64] = &[
    10 * MICROSECOND,
    25 * MICROSECOND,
    50 * MICROSECOND,
    100 * MICROSECOND,
    250 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    2_500 * MICROSECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    25 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
];

#[cfg(test)]
mod tests {
    use super::{FINE_BOUNDS_NS, Histogram, HistogramValues, REQUEST_BOUNDS_NS};
    use core::time::Duration;

    #[test]
    fn a_duration_falls_into_the_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::new(FINE_BOUNDS_NS);
        for nanos in [0, 10_000, 10_001, 100_000_000, 100_000_001, u64::MAX] {
            histogram.record(Duration::from_nanos(nanos));
        }
        let mut values = HistogramValues::default();
        histogram.add_to(&mut values);
        assert_eq!(values.count, 6);
        assert_eq!(values.buckets[0], (0.000_01, 2));
        assert_eq!(values.buckets[1], (0.000_025, 1));
        assert_eq!(values.buckets[12], (0.1, 1));
        assert_eq!(values.buckets[13], (f64::INFINITY, 2));
    }

    #[test]
    fn workers_add_up() {
        let (one, other) = (Histogram::new(REQUEST_BOUNDS_NS), Histogram::new(REQUEST_BOUNDS_NS));
        one.record(Duration::from_millis(20));
        other.record(Duration::from_millis(30));
        let mut values = HistogramValues::default();
        one.add_to(&mut values);
        other.add_to(&mut values);
        assert_eq!((values.count, values.sum_s), (2, 0.05));
        assert_eq!(values.buckets.len(), REQUEST_BOUNDS_NS.len() + 1);
    }

    #[test]
    fn bounds_ascend() {
        assert!(REQUEST_BOUNDS_NS.is_sorted() && FINE_BOUNDS_NS.is_sorted());
    }
}

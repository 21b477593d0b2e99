//! Rates of responses, counted in logarithmic buckets.

/// Buckets of a histogram; `RATE_BUCKETS` in bpf/observe_abi.h.
pub const RATE_BUCKETS: usize = 960;
/// Steps of an octave, as a power of two.
const STEPS_LOG2: u32 = 5;
/// The highest rate of a bucket is below this one, bytes per second: 16 GiB/s. What is faster counts as the
/// highest.
const RATE_END: u64 = 1 << 34;

/// Number of responses at each rate.
///
/// Rates up to 64 bytes per second have a bucket each; above, every octave is cut into 32 equal steps, up to
/// 16 GiB/s. So a rate is known to 1.6 % ([`RateBucket::middle`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateHistogram {
    counts: Box<[u32; RATE_BUCKETS]>,
}

/// The responses of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBucket {
    /// The lowest rate that belongs here, bytes per second.
    pub lowest: u64,
    /// The highest, bytes per second.
    pub highest: u64,
    /// Responses.
    pub responses: u32,
}

impl RateBucket {
    /// The rate that stands for all of them, bytes per second: off by at most 1/64, exact below 64.
    #[must_use]
    pub fn middle(&self) -> u64 {
        self.lowest + (self.highest - self.lowest) / 2
    }
}

impl Default for RateHistogram {
    fn default() -> Self {
        Self { counts: Box::new([0; RATE_BUCKETS]) }
    }
}

impl RateHistogram {
    /// Counts `responses` more of a rate, in bytes per second. Stops at the highest count instead of
    /// wrapping.
    pub fn record(&mut self, rate_bytes_per_s: u64, responses: u32) {
        let count = &mut self.counts[bucket_of(rate_bytes_per_s)];
        *count = count.saturating_add(responses);
    }

    /// Number of responses. O(buckets).
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }

    /// Number of responses in each bucket, slowest first.
    #[must_use]
    pub fn counts(&self) -> &[u32; RATE_BUCKETS] {
        &self.counts
    }

    /// The buckets in use, slowest first.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = RateBucket> + '_ {
        let used = self.counts.iter().enumerate().filter(|&(_, &responses)| responses > 0);
        used.map(|(bucket, &responses)| {
            let (lowest, highest) = bounds_of(bucket);
            RateBucket { lowest, highest, responses }
        })
    }

    /// From the sums of the kernel's counters, each the difference of flows that came and that left. A sum
    /// below zero is what a packet left behind that was on its way while the interval ended.
    pub(super) fn of_sums(sums: &[i64]) -> Self {
        let mut histogram = Self::default();
        for (count, &sum) in histogram.counts.iter_mut().zip(sums) {
            *count = u32::try_from(sum.max(0)).unwrap_or(u32::MAX);
        }
        histogram
    }
}

/// The bucket of a rate; `rate_bucket` in bpf/rate.h.
fn bucket_of(rate_bytes_per_s: u64) -> usize {
    let rate = rate_bytes_per_s.min(RATE_END - 1);
    let shift = (rate | (1 << STEPS_LOG2)).ilog2() - STEPS_LOG2;
    // Below 960: the highest rate has shift 28 and step 63.
    (shift as usize * (1 << STEPS_LOG2)) + (rate >> shift) as usize
}

/// The lowest and the highest rate of a bucket.
fn bounds_of(bucket: usize) -> (u64, u64) {
    let steps = 1 << STEPS_LOG2;
    let shift = (bucket / steps).saturating_sub(1);
    let lowest = ((bucket - shift * steps) as u64) << shift;
    (lowest, lowest + (1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_lies_within_its_bucket_and_buckets_follow_one_another() {
        let mut expected_lowest = 0;
        for bucket in 0..RATE_BUCKETS {
            let (lowest, highest) = bounds_of(bucket);
            assert_eq!(lowest, expected_lowest, "bucket {bucket}");
            assert_eq!([bucket_of(lowest), bucket_of(highest)], [bucket, bucket]);
            let middle = RateBucket { lowest, highest, responses: 1 }.middle();
            assert!(
                (highest - middle).max(middle - lowest) * 64 <= middle.max(1) || highest < 64,
                "{lowest}"
            );
            expected_lowest = highest + 1;
        }
        assert_eq!(expected_lowest, RATE_END);
        assert_eq!(bucket_of(u64::MAX), RATE_BUCKETS - 1);
    }

    #[test]
    fn counts_below_zero_are_nobody() {
        let mut sums = [0; RATE_BUCKETS];
        (sums[10], sums[11], sums[12]) = (3, -1, 2);
        let histogram = RateHistogram::of_sums(&sums);
        let used: Vec<_> = histogram.buckets().map(|bucket| (bucket.middle(), bucket.responses)).collect();
        assert_eq!((used, histogram.responses()), (vec![(10, 3), (12, 2)], 5));
    }
}

//! Buckets of values that share a counter: exact below 16, then 16 equal steps in each octave.

/// Steps in one octave: the middle of a bucket is then off by at most half of 1/16, 3.125 %.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 4;

/// The highest distinct value, 2³²: 71 minutes in microseconds, longer than any request waits. A value that
/// is higher counts as this.
pub const VALUE_MAX: u64 = 1 << 32;

/// Counters of a histogram: one for each value below 16, 16 for each octave up to 2³², and one for the top.
pub const BUCKETS: usize = index(VALUE_MAX) as usize + 1;

/// The counter of `value`. A shift and a subtraction; no logarithm, no division.
#[must_use]
pub const fn index(value: u64) -> u16 {
    let value = if value > VALUE_MAX { VALUE_MAX } else { value };
    // Bits below the five that are kept: the leading one and the step within its octave.
    let dropped = (u64::BITS - (value | STEPS).leading_zeros()) - (STEP_BITS + 1);
    // At most 28·16 + 31, so it fits. The leading one of the kept bits carries into the octave.
    ((dropped as u64 * STEPS) + (value >> dropped)) as u16
}

/// The value that the counter at `index` stands for: see [`Bucket::middle`].
#[must_use]
pub const fn bucket_middle(index: u16) -> u64 {
    Bucket::at(index, 0).middle()
}

/// Values that share a counter, and how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its place, 0 to [`BUCKETS`] − 1, for files and tables.
    pub index: u16,
    /// The lowest value in it.
    pub low: u64,
    /// The first value above it: the next bucket's `low`. (The top one, from 2³² on, has no real end.)
    pub high: u64,
    /// Number of values in it.
    pub count: u64,
}

impl Bucket {
    /// The bucket at `index`, below [`BUCKETS`].
    pub(super) const fn at(index: u16, count: u64) -> Self {
        Self { index, low: low(index), high: low(index + 1), count }
    }

    /// The value it stands for: at most 3.125 % from any value in it, and exact below 32 and at the top.
    #[must_use]
    pub const fn middle(&self) -> u64 {
        // The top holds everything from 2³² on; its width says nothing.
        if self.low == VALUE_MAX { VALUE_MAX } else { self.low + (self.high - self.low - 1) / 2 }
    }
}

/// The lowest value of the counter at `index`: the inverse of [`index`].
const fn low(index: u16) -> u64 {
    let index = index as u64;
    let octave = index / STEPS;
    if octave == 0 { index } else { (STEPS + index % STEPS) << (octave - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the buckets cover 0..=2³² without hole or overlap. Method: walk all of them.
    #[test]
    fn buckets_adjoin_and_hold_what_they_say() {
        let mut next = 0;
        for place in 0..BUCKETS as u16 {
            let bucket = Bucket::at(place, 0);
            assert_eq!((bucket.low, index(bucket.low), index(bucket.high - 1)), (next, place, place));
            assert!(bucket.low <= bucket.middle() && bucket.middle() < bucket.high);
            next = bucket.high;
        }
        assert_eq!((BUCKETS, Bucket::at(BUCKETS as u16 - 1, 0).low), (465, VALUE_MAX));
    }

    #[test]
    fn an_octave_has_sixteen_steps() {
        assert_eq!([0, 1, 15, 16, 31].map(index), [0, 1, 15, 16, 31]);
        assert_eq!([32, 33, 34, 63, 64, 67, 68].map(index), [32, 32, 33, 47, 48, 48, 49]);
        assert_eq!([VALUE_MAX - 1, VALUE_MAX, VALUE_MAX + 1, u64::MAX].map(index), [463, 464, 464, 464]);
    }
}

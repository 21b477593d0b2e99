//! Buckets of a quantity that spans many orders of magnitude: 32 equal steps in each octave.
//!
//! Finer than the buckets of a [`Histogram`](crate::measure::Histogram), because what is judged by these
//! values is a tenth worse or not: the middle of a bucket is at most 1/64 (1.6 %) from any value in it, and
//! exact below 64. The programs in the kernel (`rate_bucket` in kernel/bpf/rate.h) count transfer rates by
//! the same rule.

/// Steps of an octave, as a power of two.
const STEPS_LOG2: u32 = 5;
const STEPS: usize = 1 << STEPS_LOG2;
/// Values from here on (2³⁴: 16 GiB/s in bytes per second, almost five hours in microseconds) share the last
/// bucket.
pub const VALUE_END: u64 = 1 << 34;
/// Number of buckets.
pub const BUCKETS: usize = bucket_of(VALUE_END - 1) as usize + 1;

/// The bucket of a value, below [`BUCKETS`]. A shift and a few additions.
#[must_use]
pub const fn bucket_of(value: u64) -> u16 {
    let value = if value < VALUE_END { value } else { VALUE_END - 1 };
    let shift = (value | STEPS as u64).ilog2() - STEPS_LOG2;
    // Below 960, so it fits: the highest value has shift 28 and step 63.
    (shift as usize * STEPS + (value >> shift) as usize) as u16
}

/// The value that stands for all of a bucket.
#[must_use]
pub const fn middle_of(bucket: u16) -> u64 {
    let bucket = bucket as usize;
    let shift = (bucket / STEPS).saturating_sub(1);
    let lowest = ((bucket - shift * STEPS) as u64) << shift;
    lowest + ((1 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every value is known to 1/64. Method: each bucket's ends, and those of its neighbours, by
    /// brute force.
    #[test]
    fn a_bucket_stands_for_its_values_to_a_sixty_fourth() {
        assert_eq!((BUCKETS, bucket_of(u64::MAX)), (960, 959));
        for value in (0..100_000u64).chain((17..34).flat_map(|octave| {
            let step = 1 << (octave - 7);
            (1 << octave..1 << (octave + 1)).step_by(step as usize)
        })) {
            let bucket = bucket_of(value);
            let middle = middle_of(bucket);
            assert_eq!(bucket_of(middle), bucket, "{value}");
            assert!(middle.abs_diff(value) * 64 <= value, "{value}: {middle}");
            assert!(bucket >= bucket_of(value.saturating_sub(1)), "{value}");
        }
    }
}

//! Unevenness of times: the distribution of a request's time over the mean.

use super::constants::Constants;
use flashweir_core::measure::Histogram;

/// Decaying counts of times over their mean, in quarter octaves.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    k: Constants,
    counts: [f64; BINS],
    count: f64,
    /// The share of exponential times below each bin.
    exponential: [f64; BINS + 1],
    /// The share below each bin, and all.
    below: [f64; BINS + 1],
}

const BINS: usize = 40;
/// The bin of the mean itself.
const MIDDLE: f64 = 24.0;

impl Shape {
    pub(super) fn new(k: Constants) -> Self {
        let exponential = core::array::from_fn(|bin| {
            let times_mean = libm::exp2((bin as f64 - 0.5 - MIDDLE) / 4.0);
            1.0 - libm::exp(-times_mean)
        });
        let mut shape = Self { k, counts: [0.0; BINS], count: 0.0, exponential, below: [0.0; BINS + 1] };
        shape.add_up();
        shape
    }

    fn add_up(&mut self) {
        let (mut below, all) = (0.0, self.count + self.k.enough);
        for (bin, share) in self.below.iter_mut().enumerate() {
            *share = (below + self.k.enough * self.exponential[bin]) / all;
            below += self.counts.get(bin).copied().unwrap_or(0.0);
        }
    }

    /// Takes times of one stretch with this mean.
    pub(super) fn add(&mut self, times_us: &Histogram, mean_s: f64) {
        let new = times_us.count() as f64;
        if new < 1.0 || mean_s <= 0.0 {
            return;
        }
        let part = libm::exp(-new / self.k.memory);
        self.counts.iter_mut().for_each(|count| *count *= part);
        self.count = self.count * part + new;
        for bucket in times_us.buckets() {
            let over_mean = bucket.middle() as f64 / 1e6 / mean_s;
            let bin = 4.0 * libm::log2(over_mean.max(1e-9)) + MIDDLE + 0.5;
            self.counts[(bin.max(0.0) as usize).min(BINS - 1)] += bucket.count as f64;
        }
        self.add_up();
    }

    /// The share of requests that take at most this many times the mean; as of exponential times while little
    /// is known. O(1).
    pub(super) fn share_within(&self, times_mean: f64) -> f64 {
        self.share_within_log(libm::log(times_mean.max(1e-9)))
    }

    /// The same by the logarithm.
    pub(super) fn share_within_log(&self, log_times_mean: f64) -> f64 {
        let position = log_times_mean * (4.0 / core::f64::consts::LN_2) + (MIDDLE + 0.5);
        let position = position.clamp(0.0, BINS as f64);
        let whole = (position as usize).min(BINS - 1);
        let (low, high) = (self.below[whole], self.below[whole + 1]);
        low + (high - low) * (position - whole as f64)
    }

    /// The time over the mean that this share of requests takes at most.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut times_mean = 0.25;
        while times_mean < 16.0 && self.share_within(times_mean) < share {
            times_mean *= 1.1;
        }
        times_mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(times_ms: &[u64]) -> Shape {
        let (mut shape, mut times_us) = (Shape::new(Constants::SHIPPED), Histogram::new());
        (0..50).for_each(|_| times_ms.iter().for_each(|ms| times_us.record(ms * 1_000)));
        let mean_s = times_ms.iter().sum::<u64>() as f64 / 1e3 / times_ms.len() as f64;
        shape.add(&times_us, mean_s);
        shape
    }

    #[test]
    fn before_anything_is_seen_times_are_exponential() {
        let shape = Shape::new(Constants::SHIPPED);
        assert!((shape.share_within(1.0) - 0.632).abs() < 1e-3);
        assert!((2.9..3.4).contains(&shape.quantile(0.95)), "{}", shape.quantile(0.95));
    }

    #[test]
    fn regular_and_uneven_times_are_told_apart() {
        let (regular, uneven) = (shape(&[100; 10]), shape(&[20, 20, 20, 20, 20, 20, 20, 20, 20, 820]));
        assert!(regular.share_within(0.8) < 0.05 && regular.share_within(1.3) > 0.95);
        assert!((0.88..0.93).contains(&uneven.share_within(4.0)) && regular.quantile(0.9) < 1.4);
        assert!((7.0..10.0).contains(&uneven.quantile(0.95)), "{}", uneven.quantile(0.95));
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        let (mut shape, before) = (Shape::new(Constants::SHIPPED), Shape::new(Constants::SHIPPED));
        shape.add(&Histogram::new(), 1.0);
        shape.add(&Histogram::new(), 0.0);
        assert_eq!(shape.share_within(0.5), before.share_within(0.5));
    }
}

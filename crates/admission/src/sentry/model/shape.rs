//! How uneven times are: the distribution of a request's time over the mean.

use flashweir_measure::Histogram;

/// Decaying counts of times over their mean, in quarter octaves.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    counts: [f64; BINS],
    count: f64,
}

const BINS: usize = 40;
/// The bin of the mean itself.
const MIDDLE: f64 = 24.0;

impl Shape {
    pub(super) fn new() -> Self {
        Self { counts: [0.0; BINS], count: 0.0 }
    }

    /// Takes times of one stretch with this mean.
    pub(super) fn add(&mut self, times_us: &Histogram, mean_s: f64) {
        let new = times_us.count() as f64;
        if new < 1.0 || mean_s <= 0.0 {
            return;
        }
        let part = libm::exp(-new / MEMORY);
        self.counts.iter_mut().for_each(|count| *count *= part);
        self.count = self.count * part + new;
        for bucket in times_us.buckets() {
            let over_mean = bucket.middle() as f64 / 1e6 / mean_s;
            let bin = 4.0 * libm::log2(over_mean.max(1e-9)) + MIDDLE + 0.5;
            self.counts[(bin.max(0.0) as usize).min(BINS - 1)] += bucket.count as f64;
        }
    }

    /// The share of requests that take at most this many times the mean; as of exponential times while little is known.
    pub(super) fn share_within(&self, times_mean: f64) -> f64 {
        let position = 4.0 * libm::log2(times_mean.max(1e-9)) + MIDDLE + 0.5;
        let whole = position.max(0.0).min(BINS as f64) as usize;
        let below: f64 = self.counts[..whole.min(BINS)].iter().sum();
        let partly =
            self.counts.get(whole).map_or(0.0, |count| count * (position - whole as f64).clamp(0.0, 1.0));
        let prior = 1.0 - libm::exp(-times_mean);
        (below + partly + PRIOR * prior) / (self.count + PRIOR)
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

/// Times remembered.
const MEMORY: f64 = 500.0;
/// What is assumed counts like this many times.
const PRIOR: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(times_ms: &[u64]) -> Shape {
        let (mut shape, mut times_us) = (Shape::new(), Histogram::new());
        (0..50).for_each(|_| times_ms.iter().for_each(|ms| times_us.record(ms * 1_000)));
        let mean_s = times_ms.iter().sum::<u64>() as f64 / 1e3 / times_ms.len() as f64;
        shape.add(&times_us, mean_s);
        shape
    }

    #[test]
    fn before_anything_is_seen_times_are_exponential() {
        let shape = Shape::new();
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
        let (mut shape, before) = (Shape::new(), Shape::new());
        shape.add(&Histogram::new(), 1.0);
        shape.add(&Histogram::new(), 0.0);
        assert_eq!(shape.share_within(0.5), before.share_within(0.5));
    }
}

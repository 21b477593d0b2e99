//! Distributions of times over a whole run, in bounded memory.

use crate::result::{Pairs, Percentiles};
use hdrhistogram::Histogram;
use std::time::Duration;

/// An hour. Longer times count as an hour; no patience is longer.
const MAX_US: u64 = 3_600_000_000;

/// Microseconds to 0.1 %, about 190 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Distribution(Histogram<u64>);

/// All that is measured of one class.
#[derive(Clone, Debug)]
pub(crate) struct Distributions {
    /// Intended moment to the end of the answer, of completed tries.
    pub(crate) latency: Distribution,
    /// The same, of refused ones.
    pub(crate) refusal: Distribution,
    /// Intended moment to the head of the answer, of completed tries.
    pub(crate) ttfb: Distribution,
    /// From the moment a person first asked to their whole answer, over all tries.
    pub(crate) served: Distribution,
    /// Intended to real beginning.
    pub(crate) lag: Distribution,
}

impl Distribution {
    pub(crate) fn new() -> Self {
        // The bounds are constants that the library accepts (lowest 1, highest at least 2, 0 to 5 digits).
        let mut histogram = Histogram::new_with_bounds(1, MAX_US, 3).expect("constant bounds are valid");
        // Writes every counter, so that the kernel gives the pages now and not while the first people wait.
        histogram.reset();
        Self(histogram)
    }

    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_micros()).unwrap_or(MAX_US));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds, the one condition for adding.
        self.0.add(&other.0).expect("histograms of equal bounds add");
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Every value that was seen, to 0.1 %, lowest first. [`from_pairs`](Self::from_pairs) makes the same
    /// again.
    pub(crate) fn pairs(&self) -> Pairs {
        self.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }

    /// The distribution of these values; those beyond an hour count as an hour.
    pub(crate) fn from_pairs(pairs: &[(u64, u64)]) -> Self {
        let mut distribution = Self::new();
        for (value, count) in pairs {
            distribution.0.saturating_record_n(*value, *count);
        }
        distribution
    }

    /// The points of the distribution, each divided by `unit_us`.
    pub(crate) fn percentiles(&self, unit_us: f64) -> Percentiles {
        if self.0.is_empty() {
            return Percentiles::default();
        }
        let at = |quantile| Some(self.0.value_at_quantile(quantile) as f64 / unit_us);
        Percentiles {
            count: self.0.len(),
            mean: Some(self.0.mean() / unit_us),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: Some(self.0.max() as f64 / unit_us),
        }
    }
}

impl Distributions {
    pub(crate) fn new() -> Self {
        Self {
            latency: Distribution::new(),
            refusal: Distribution::new(),
            ttfb: Distribution::new(),
            served: Distribution::new(),
            lag: Distribution::new(),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.refusal.add(&other.refusal);
        self.ttfb.add(&other.ttfb);
        self.served.add(&other.served);
        self.lag.add(&other.lag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut distribution = Distribution::new();
        assert_eq!(distribution.percentiles(1e3), Percentiles::default());
        (1..=1000).for_each(|ms| distribution.record(Duration::from_millis(ms)));
        let points = distribution.percentiles(1e3);
        assert_eq!(points.count, 1000);
        assert!((points.p50.unwrap() - 500.0).abs() < 0.6, "{points:?}");
        assert!((points.mean.unwrap() - 500.5).abs() < 0.6, "{points:?}");
        assert!((points.p99.unwrap() - 990.0).abs() < 1.1, "{points:?}");
        assert!((points.max.unwrap() - 1000.0).abs() < 1.1, "{points:?}");
    }

    #[test]
    fn adding_counts_both_and_days_count_as_an_hour() {
        let mut one = Distribution::new();
        let mut two = Distribution::new();
        one.record(Duration::from_secs(86_400));
        two.record(Duration::ZERO);
        one.add(&two);
        let points = one.percentiles(1e6);
        assert_eq!(points.count, 2);
        assert!((3590.0..3610.0).contains(&points.max.unwrap()), "{points:?}");
        assert_eq!(points.p50, Some(0.0));
    }

    /// A distribution that is written to a file and read again is the same, to the last bucket.
    #[test]
    fn pairs_are_the_whole_distribution() {
        let mut distribution = Distribution::new();
        for us in [0, 1, 7, 1_234, 1_234_567, 3_599_999_999, u64::MAX] {
            distribution.record(Duration::from_micros(us));
        }
        let again = Distribution::from_pairs(&distribution.pairs());
        assert_eq!(again.0, distribution.0);
    }
}

//! Distributions of times, in bounded memory.

use crate::Percentiles;
use hdrhistogram::Histogram;
use std::time::Duration;

/// An hour. Longer times count as an hour; nobody's patience is tested for longer.
const MAX_US: u64 = 3_600_000_000;

/// Microseconds to 0.1 %, about 190 KiB: for whole runs.
#[derive(Clone, Debug)]
pub(crate) struct Fine(Histogram<u64>);

/// Microseconds to 1 %, about 13 KiB: for single seconds.
#[derive(Clone, Debug)]
pub(crate) struct Coarse(Histogram<u32>);

impl Fine {
    pub(crate) fn new() -> Self {
        // The bounds are constants that the library accepts (lowest 1, highest at least 2, 0 to 5 digits).
        Self(Histogram::new_with_bounds(1, MAX_US, 3).expect("constant bounds are valid"))
    }

    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(micros(time));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds, the one condition for adding.
        self.0.add(&other.0).expect("histograms of equal bounds add");
    }

    /// The points of the distribution, each divided by `unit_us`.
    pub(crate) fn percentiles(&self, unit_us: f64) -> Percentiles {
        if self.0.is_empty() {
            return Percentiles::default();
        }
        let at = |quantile| Some(self.0.value_at_quantile(quantile) as f64 / unit_us);
        Percentiles {
            count: self.0.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: Some(self.0.max() as f64 / unit_us),
        }
    }

    /// The 99th percentile; zero when nothing was measured.
    pub(crate) fn p99(&self) -> Duration {
        Duration::from_micros(if self.0.is_empty() { 0 } else { self.0.value_at_quantile(0.99) })
    }
}

impl Coarse {
    pub(crate) fn new() -> Self {
        // As in `Fine::new`.
        Self(Histogram::new_with_bounds(1, MAX_US, 2).expect("constant bounds are valid"))
    }

    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(micros(time));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // As in `Fine::add`.
        self.0.add(&other.0).expect("histograms of equal bounds add");
    }

    pub(crate) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(quantile) as f64 / 1e3)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(MAX_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut fine = Fine::new();
        let mut coarse = Coarse::new();
        assert_eq!(fine.percentiles(1e3), Percentiles::default());
        assert_eq!(coarse.quantile_ms(0.5), None);
        for ms in 1..=1000 {
            fine.record(Duration::from_millis(ms));
            coarse.record(Duration::from_millis(ms));
        }
        let points = fine.percentiles(1e3);
        assert_eq!(points.count, 1000);
        assert!((points.p50.unwrap() - 500.0).abs() < 0.6, "{points:?}");
        assert!((points.p99.unwrap() - 990.0).abs() < 1.1, "{points:?}");
        assert!((points.max.unwrap() - 1000.0).abs() < 1.1, "{points:?}");
        assert!((coarse.quantile_ms(0.99).unwrap() - 990.0).abs() < 10.0);
    }

    #[test]
    fn adding_counts_both_and_days_count_as_an_hour() {
        let mut one = Fine::new();
        let mut two = Fine::new();
        one.record(Duration::from_secs(86_400));
        two.record(Duration::ZERO);
        one.add(&two);
        let points = one.percentiles(1e6);
        assert_eq!(points.count, 2);
        assert!((3590.0..3610.0).contains(&points.max.unwrap()), "{points:?}");
        assert_eq!(points.p50, Some(0.0));
    }
}

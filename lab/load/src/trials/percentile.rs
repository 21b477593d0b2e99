//! Latency percentiles of admitted requests.

use crate::Second;
use flashweir_core::measure::Histogram;
use flashweir_core::measure::histogram::Sparse;

/// The latency that the part `share` of those who were not refused do not exceed, milliseconds, to 3 %;
/// `None` if there were none. Who gave up or got an error counts with the whole patience: leaving them out
/// would flatter a service that answers no request in time.
pub(crate) fn admitted_ms<'a>(
    seconds: impl IntoIterator<Item = &'a Second>,
    share: f64,
    patience_s: f64,
) -> Option<f64> {
    let mut latency_us = Histogram::new();
    for second in seconds {
        Sparse::from_pairs(second.latency_buckets.iter().copied()).ok()?.add_to(&mut latency_us);
        latency_us
            .record_many((patience_s * 1e6) as u64, second.timed_out + second.abandoned + second.errors);
    }
    latency_us.quantile(share).map(|us| us as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_gave_up_count_with_their_patience() {
        let bucket = |ms: u64| u64::from(flashweir_core::measure::histogram::index(ms * 1_000));
        let with = |timed_out| {
            let series =
                [Second { latency_buckets: vec![(bucket(100), 990)], timed_out, ..Second::default() }];
            admitted_ms(&series, 0.99, 2.0).unwrap()
        };
        assert!((with(10) - 100.0).abs() < 4.0, "{}", with(10));
        assert!((with(11) - 2_000.0).abs() < 70.0, "{}", with(11));
        assert_eq!(admitted_ms(&[Second::default()], 0.99, 2.0), None);
    }
}

//! Test whether two runs differ by more than the seconds of each differ among themselves.
//!
//! A run is one sample: its p99 alone has no spread. Its seconds have: a difference that is small beside what
//! one second differs from the next would be there between two runs of the same server too.
//!
//! * Times: the median of the seconds' percentile and their median absolute deviation (MAD), which a few bad
//!   seconds do not move. They differ if the medians differ by more than both deviations together, and than the
//!   3 % to which a second's percentiles are known.
//! * Shares: the standard error of a ratio of sums over clusters (Cochran, Sampling Techniques, §2.11), the
//!   seconds being the clusters: tries of one second succeed and fail together, so counting each try by itself
//!   would promise too much. They differ if they differ by more than two standard errors of the difference.
//!
//! Fewer than five seconds tell nothing.

use crate::Second;
use crate::command::metric::Share;

/// The rule in words, for readers of the marks.
pub(super) const RULE: &str = "\
better, worse: beyond the noise of the runs' own seconds; same: within it; no word: not judged.
p50 and p99 of the latency: the medians of the seconds' values differ by more than the seconds' median absolute
deviations of A and B together, and than 3 %. Shares: more than two standard errors of difference, from the spread of the
seconds. Fewer than five seconds are not judged.";

/// Seconds without which nothing is said.
const SECONDS_LEAST: usize = 5;
/// To how much a second's percentiles are known.
const RESOLUTION: f64 = 0.03;
/// Standard errors by which two shares must differ: about one false alarm in twenty.
const STANDARD_ERRORS: f64 = 2.0;

/// Sign of the difference of B from A beyond noise: -1, 0 or 1; `None` if that cannot be decided.
pub(super) fn times(a: &[Second], b: &[Second], read: fn(&Second) -> Option<f64>) -> Option<i8> {
    let spread = |series: &[Second]| {
        let mut values: Vec<_> = series.iter().filter_map(read).collect();
        (values.len() >= SECONDS_LEAST).then(|| {
            let middle = median(&mut values);
            let mut deviations: Vec<_> = values.iter().map(|value| (value - middle).abs()).collect();
            (middle, median(&mut deviations))
        })
    };
    let ((a, a_deviation), (b, b_deviation)) = (spread(a)?, spread(b)?);
    Some(direction(b - a, (a_deviation + b_deviation).max(RESOLUTION * a.max(b))))
}

/// The same for a share.
pub(super) fn shares(a: &[Second], b: &[Second], share: &Share) -> Option<i8> {
    let ((a, a_error), (b, b_error)) = (ratio(a, share)?, ratio(b, share)?);
    Some(direction(b - a, STANDARD_ERRORS * a_error.hypot(b_error)))
}

/// A share and its standard error.
fn ratio(series: &[Second], share: &Share) -> Option<(f64, f64)> {
    let seconds: Vec<_> = series
        .iter()
        .map(share.of)
        .filter(|(_, whole)| *whole > 0)
        .map(|(part, whole)| (part as f64, whole as f64))
        .collect();
    if seconds.len() < SECONDS_LEAST {
        return None;
    }
    let whole: f64 = seconds.iter().map(|(_, whole)| whole).sum();
    let ratio = seconds.iter().map(|(part, _)| part).sum::<f64>() / whole;
    let count = seconds.len() as f64;
    let squares: f64 = seconds.iter().map(|(part, whole)| (part - ratio * whole).powi(2)).sum();
    Some((ratio, (squares * count / (count - 1.0)).sqrt() / whole))
}

fn direction(difference: f64, noise: f64) -> i8 {
    if difference.abs() <= noise {
        0
    } else if difference > 0.0 {
        1
    } else {
        -1
    }
}

/// The middle value; of an even number of values the mean of the middle two. There is at least one.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::metric::SHARES;

    fn series(p99_ms: &[f64]) -> Vec<Second> {
        let second = |ms: &f64| Second { latency_p99_ms: Some(*ms), ..Second::default() };
        p99_ms.iter().map(second).collect()
    }

    fn judge(a: &[f64], b: &[f64]) -> Option<i8> {
        times(&series(a), &series(b), |second| second.latency_p99_ms)
    }

    #[test]
    fn times_differ_beyond_both_deviations_and_the_resolution() {
        let quiet = [10.0, 10.0, 10.1, 9.9, 10.0, 10.0];
        assert_eq!(judge(&quiet, &quiet), Some(0));
        assert_eq!(judge(&quiet, &quiet.map(|ms| ms * 1.02)), Some(0), "within the resolution");
        assert_eq!(judge(&quiet, &quiet.map(|ms| ms * 1.1)), Some(1));
        assert_eq!(judge(&quiet, &quiet.map(|ms| ms / 1.1)), Some(-1));
        let wild = [5.0, 20.0, 8.0, 30.0, 10.0, 14.0];
        assert_eq!(judge(&wild, &wild.map(|ms| ms * 1.3)), Some(0), "within the spread");
        assert_eq!(judge(&quiet, &[10.0, 10.0, 10.0, 10.0, 500.0, 10.0]), Some(0), "one bad second");
        assert_eq!(judge(&quiet, &[99.0; 4]), None, "four seconds");
    }

    #[test]
    fn shares_differ_beyond_two_standard_errors_of_their_seconds() {
        let goodput = &SHARES[0];
        let series = |good: &dyn Fn(u64) -> u64| -> Vec<Second> {
            let second = |n| Second { second: n, unique_offered: 100, goodput: good(n), ..Second::default() };
            (0..30).map(second).collect()
        };
        let all = series(&|_| 100);
        assert_eq!(shares(&all, &all, goodput), Some(0));
        assert_eq!(
            shares(&all, &series(&|n| if n == 7 { 20 } else { 100 }), goodput),
            Some(0),
            "one bad second"
        );
        assert_eq!(shares(&all, &series(&|n| if n % 3 == 0 { 80 } else { 100 }), goodput), Some(-1));
        assert_eq!(shares(&series(&|n| 40 + n % 5), &series(&|n| 45 + n % 5), goodput), Some(1));
        assert_eq!(shares(&series(&|n| n), &series(&|n| n + 3), goodput), Some(0), "wide spread");
        assert_eq!(shares(&all, &all[..4], goodput), None);
        assert_eq!(shares(&all, &vec![Second::default(); 9], goodput), None, "an empty run");
    }
}

//! Judgement of a target's recovery after the crowd.

use crate::crowd_window::CrowdWindow;
use crate::result::{Recovery, Second};

/// A target that served so small a share before the crowd was in no state to come back to.
const GOODPUT_RATIO_LEAST: f64 = 0.5;
/// Seconds before the crowd that tell how it was; fewer tell nothing.
const QUIET_S_LEAST: usize = 3;
/// Good seconds in a row that make it recovered: one alone may be luck.
pub const STEADY_S: usize = 3;
/// As good as before is this share of the goodput ratio before…
const GOODPUT_SHARE: f64 = 0.95;
/// …and a 99th percentile at most this many times the worst before…
const P99_FACTOR: f64 = 1.5;
/// …or so much above it, where that is more: on short latencies a scheduler's whim is a factor.
const P99_SLACK_MS: f64 = 20.0;

/// Judges a series of bins of `bin_s` seconds; `None` where too little was seen before the crowd or after it,
/// or where the target was not well before.
#[must_use]
pub fn judge(series: &[Second], bin_s: u64, crowd: CrowdWindow) -> Option<Recovery> {
    let whole = |second: &Second| second.second as f64;
    let bin = bin_s as f64;
    // The first second starts cold, and a second on the edge is part crowd.
    let before: Vec<&Second> =
        series.iter().filter(|s| s.second >= bin_s && whole(s) + bin <= crowd.from_s).collect();
    let after: Vec<&Second> = series.iter().filter(|s| whole(s) >= crowd.to_s).collect();
    if before.len() < QUIET_S_LEAST || after.len() < STEADY_S {
        return None;
    }
    let sum = |count: fn(&Second) -> u64| before.iter().map(|s| count(s)).sum::<u64>() as f64;
    let goodput_ratio_before = sum(|s| s.goodput) / sum(|s| s.unique_offered).max(1.0);
    if goodput_ratio_before < GOODPUT_RATIO_LEAST {
        return None;
    }
    let p99_before_ms = before.iter().filter_map(|s| s.latency_p99_ms).fold(0.0, f64::max);
    let p99_bound_ms = (p99_before_ms * P99_FACTOR).max(p99_before_ms + P99_SLACK_MS);
    let is_good = |second: &&Second| {
        // Seconds without arrivals say nothing against the target.
        second.unique_offered == 0
            || (second.goodput as f64 >= GOODPUT_SHARE * goodput_ratio_before * second.unique_offered as f64
                && second.latency_p99_ms.is_none_or(|p99| p99 <= p99_bound_ms))
    };
    let recovered = after.windows(STEADY_S).find(|seconds| seconds.iter().all(is_good));
    Some(Recovery {
        goodput_ratio_before,
        p99_before_ms,
        seconds: recovered.map(|seconds| (whole(seconds[0]) - crowd.to_s).max(0.0)),
        watched_s: after.last().map_or(0.0, |last| whole(last) + bin - crowd.to_s),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u64, unique_offered: u64, goodput: u64, p99_ms: f64) -> Second {
        let latency_p99_ms = Some(p99_ms);
        Second {
            second,
            offered: unique_offered,
            unique_offered,
            goodput,
            latency_p99_ms,
            ..Second::default()
        }
    }

    /// Ten quiet seconds, ten of crowd, then as `after` says.
    fn run(after: impl Fn(u64) -> (u64, f64)) -> Option<Recovery> {
        let series: Vec<_> = (0..40)
            .map(|n| match n {
                0..10 => second(n, 100, 100, 10.0),
                10..20 => second(n, 500, 20, 900.0),
                _ => {
                    let (goodput, p99_ms) = after(n - 20);
                    second(n, 100, goodput, p99_ms)
                }
            })
            .collect();
        judge(&series, 1, CrowdWindow { from_s: 10.0, to_s: 20.0 })
    }

    #[test]
    fn recovery_is_the_first_of_three_good_seconds() {
        let recovery = run(|n| if n < 4 || n == 6 { (10, 800.0) } else { (99, 12.0) }).unwrap();
        assert_eq!((recovery.seconds, recovery.watched_s), (Some(7.0), 20.0));
        assert_eq!((recovery.goodput_ratio_before, recovery.p99_before_ms), (1.0, 10.0));
        assert_eq!(run(|_| (100, 10.0)).unwrap().seconds, Some(0.0));
    }

    #[test]
    fn a_metastable_target_never_recovers() {
        assert_eq!(run(|_| (10, 800.0)).unwrap().seconds, None);
        assert_eq!(run(|_| (100, 200.0)).unwrap().seconds, None, "good enough, but slow");
    }

    #[test]
    fn too_little_to_compare_with_is_no_verdict() {
        let series: Vec<_> = (0..10).map(|n| second(n, 100, 100, 1.0)).collect();
        assert_eq!(judge(&series, 1, CrowdWindow { from_s: 3.0, to_s: 5.0 }), None, "two quiet seconds");
        assert_eq!(judge(&series, 1, CrowdWindow { from_s: 5.0, to_s: 8.0 }), None, "two seconds left");
        assert!(judge(&series, 1, CrowdWindow { from_s: 5.0, to_s: 7.0 }).is_some());
    }

    /// A target that never worked did not recover, however soon it is as bad as before.
    #[test]
    fn a_target_that_was_not_well_before_has_nothing_to_return_to() {
        let series: Vec<_> = (0..30).map(|n| second(n, 100, 20, 900.0)).collect();
        assert_eq!(judge(&series, 1, CrowdWindow { from_s: 10.0, to_s: 20.0 }), None);
    }
}

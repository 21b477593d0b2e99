//! The mean of the fastest responses: NEWS's canary.

/// Mean of the `floor(fraction·n) + 1` largest values (NEWS §4.1: the high-bandwidth flows' aggregate, with
/// the count of the authors' code), or `None` when there are none: an empty window is no measurement, and
/// feeding zero would raise an alarm.
///
/// Not byte-weighted. Reorders `values`; O(n) by selection. NaN counts as smallest.
///
/// ```
/// use flashweir_core::measure::mean_of_fastest;
/// assert_eq!(mean_of_fastest(&mut [1.0, 9.0, 5.0], 0.10), Some(9.0)); // floor(0.3) + 1 = 1
/// assert_eq!(mean_of_fastest(&mut [], 0.10), None);
/// ```
pub fn mean_of_fastest(values: &mut [f32], fraction: f64) -> Option<f64> {
    let fastest = fastest(values, fraction, |&value| value);
    (!fastest.is_empty())
        .then(|| fastest.iter().map(|&value| f64::from(value)).sum::<f64>() / fastest.len() as f64)
}

/// The `floor(fraction·n) + 1` items with the largest `speed`, in no order; none of none. Reorders `items`;
/// O(n).
pub fn fastest<T>(items: &mut [T], fraction: f64, speed: impl Fn(&T) -> f32) -> &[T] {
    let Some(count) = fastest_count(items.len(), fraction) else { return &[] };
    items.select_nth_unstable_by(count - 1, |a, b| descending(speed(a), speed(b)));
    &items[..count]
}

/// Number of items of `n` that are "the fastest": `floor(fraction·n) + 1`, never more than `n`; `None` for
/// none.
#[must_use]
pub fn fastest_count(n: usize, fraction: f64) -> Option<usize> {
    (n > 0).then(|| ((fraction * n as f64) as usize + 1).min(n))
}

/// Largest first, NaN last.
#[must_use]
pub fn descending(a: f32, b: f32) -> core::cmp::Ordering {
    let rank = |x: f32| if x.is_nan() { f32::NEG_INFINITY } else { x };
    rank(b).total_cmp(&rank(a))
}

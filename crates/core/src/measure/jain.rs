//! Jain's index of fairness: the equality of shares (Jain, *The Art of Computer Systems Performance
//! Analysis*, 1991).

/// Jain's index, (Σx)² / (n·Σx²): 1 where all have the same, 1/n where one has all. None where all are 0.
///
/// ```
/// use flashweir_core::measure::jain_index;
/// assert_eq!(jain_index([2.0, 2.0, 2.0]), Some(1.0));
/// assert_eq!(jain_index([1.0, 0.0]), Some(0.5));
/// assert_eq!(jain_index([]), None);
/// ```
#[must_use]
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

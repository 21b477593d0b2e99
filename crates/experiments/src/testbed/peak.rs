//! Where a function with one peak has it, from few of its values: the search by Fibonacci's numbers (J. Kiefer, Sequential
//! minimax search for a maximum, 1953).
//!
//! The function is looked at twice inside a stretch of whole numbers. What lies beyond the lower of both cannot be the
//! peak; the rest, five eighths of the stretch, has the higher one where one of its own two is wanted. So each further
//! value shortens the stretch by three eighths. Noise may lead it astray by as much as it flattens the peak, so that the
//! value it finds is nearly the best even then.

/// Lengths of the stretch: 34 at first, 8 before the last comparison, so five values.
const LENGTHS: [u32; 6] = [34, 21, 13, 8, 5, 3];
/// Whole numbers beyond the lowest that are searched.
pub(super) const LENGTH: u32 = LENGTHS[0];

/// The numbers that are looked at in a search from `lowest` on, in their order. While some have no value the search cannot
/// go on, and these are the last; otherwise it is over. At most five.
pub(super) fn looked_at(lowest: u32, value: impl Fn(u32) -> Option<f64>) -> Vec<u32> {
    let mut begin = lowest;
    let mut numbers = Vec::new();
    for lengths in LENGTHS.windows(3) {
        let pair = [begin + lengths[2], begin + lengths[1]];
        let new: Vec<u32> = pair.into_iter().filter(|number| !numbers.contains(number)).collect();
        numbers.extend(new);
        let [Some(left), Some(right)] = pair.map(&value) else { return numbers };
        if right > left {
            begin = pair[0];
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every peak inside the stretch is found to within two, from five values.
    #[test]
    fn a_peak_is_found_wherever_it_is() {
        for peak in 103..=131 {
            let height = |at: u32| -f64::from(at.abs_diff(peak));
            let numbers = looked_at(100, |at| Some(height(at)));
            assert_eq!(numbers.len(), 5, "{numbers:?}");
            let best = numbers.iter().copied().max_by(|a, b| height(*a).total_cmp(&height(*b)));
            assert!(best.expect("five").abs_diff(peak) <= 2, "{peak}: {numbers:?}");
        }
    }

    #[test]
    fn a_search_waits_for_values() {
        assert_eq!(looked_at(46, |_| None), [59, 67]);
        assert_eq!(looked_at(46, |at| (at == 59).then_some(1.0)), [59, 67]);
        assert_eq!(looked_at(46, |at| (at <= 67).then(|| f64::from(at))), [59, 67, 72]);
    }
}

//! Position of the peak of a unimodal function, from few of its values: the search by Fibonacci's numbers (J.
//! Kiefer, Sequential minimax search for a maximum, 1953).
//!
//! The function is looked at twice inside a stretch of whole numbers. The part beyond the lower of both
//! cannot have the peak; the rest, five eighths of the stretch, has the higher one at one of its two inner
//! points. So each further value shortens the stretch by three eighths. Noise may lead it astray by as much
//! as it flattens the peak, so that the value it finds is nearly the best even then.

/// Lengths of the stretch: 34 at first, 8 before the last comparison, so five values.
const LENGTHS: [u32; 6] = [34, 21, 13, 8, 5, 3];
/// Whole numbers beyond the lowest that are searched.
pub(super) const LENGTH: u32 = LENGTHS[0];

/// The numbers that are looked at in a search from `lowest` on, in their order. While some have no value the
/// search cannot go on, and these are the last; otherwise it is over. At most five.
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

/// As [`looked_at`], and then beyond the edge: while the best number is the lowest or the highest of all, one
/// further out, each step twice as far as the one before. At most [`BEYOND_MAX`] more; never zero.
pub(super) fn looked_at_and_beyond(lowest: u32, value: impl Fn(u32) -> Option<f64>) -> Vec<u32> {
    let mut numbers = looked_at(lowest, &value);
    for step in (0..BEYOND_MAX).map(|number| STEP_BEYOND << number) {
        let Some(next) = beyond(&numbers, step, &value) else { break };
        numbers.push(next);
    }
    numbers
}

/// The number beyond the edge that is the best; none while some have no value, or the best is no edge.
fn beyond(numbers: &[u32], step: u32, value: impl Fn(u32) -> Option<f64>) -> Option<u32> {
    let values: Option<Vec<(u32, f64)>> =
        numbers.iter().map(|&number| value(number).map(|value| (number, value))).collect();
    let (best, _) = values?.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    if numbers.iter().all(|&number| best <= number) {
        best.checked_sub(step).filter(|&next| next > 0)
    } else if numbers.iter().all(|&number| best >= number) {
        best.checked_add(step)
    } else {
        None
    }
}

/// The first step beyond an edge: what separates the last two numbers of a search.
const STEP_BEYOND: u32 = 2;
/// Numbers beyond the edge at most: they reach 62 further.
pub(super) const BEYOND_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a peak outside of the stretch is passed, so that the best is not at an edge. Without the
    /// numbers beyond, the best is the lowest or the highest of five.
    #[test]
    fn a_peak_beyond_the_stretch_is_passed() {
        for peak in [60, 80, 90, 99, 100, 101, 134, 135, 140, 160] {
            let height = |at: u32| Some(-f64::from(at.abs_diff(peak)));
            let best_of = |numbers: &[u32]| {
                let best = numbers
                    .iter()
                    .copied()
                    .max_by(|a, b| height(*a).partial_cmp(&height(*b)).expect("numbers"));
                best.expect("five at least")
            };
            let is_edge = |numbers: &[u32]| {
                let best = best_of(numbers);
                numbers.iter().all(|&number| best <= number) || numbers.iter().all(|&number| best >= number)
            };
            assert!(is_edge(&looked_at(100, height)), "{peak}");
            let numbers = looked_at_and_beyond(100, height);
            assert!(!is_edge(&numbers), "{peak}: {numbers:?}");
        }
    }

    #[test]
    fn the_search_beyond_is_bounded_and_waits_for_values() {
        let rising = looked_at_and_beyond(100, |at| Some(f64::from(at)));
        assert_eq!(rising.len(), 5 + BEYOND_MAX as usize);
        let falling = looked_at_and_beyond(5, |at| Some(-f64::from(at)));
        assert!(falling.iter().all(|&number| number > 0), "{falling:?}");
        let first = looked_at(100, |at| Some(f64::from(at)));
        let top = first.iter().copied().max().expect("five");
        let waiting = looked_at_and_beyond(100, |at| (at <= top).then(|| f64::from(at)));
        assert_eq!(waiting.len(), first.len() + 1);
        assert_eq!(looked_at_and_beyond(100, |at| Some(-f64::from(at.abs_diff(117)))).len(), 5);
    }

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

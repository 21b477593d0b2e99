//! The best setting of a protection that has to be tuned by hand.

/// Result of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial<Setting> {
    /// The setting.
    pub setting: Setting,
    /// Score; more is better.
    pub score: f64,
}

/// The values of one knob: a grid, and how it goes on beyond its edges.
#[derive(Clone, Copy, Debug)]
pub struct Knob<'a, Value> {
    /// The grid, in the order in which it is tried.
    pub grid: &'a [Value],
    /// The value below the lowest; none where nothing lower can be set.
    pub below: fn(Value) -> Option<Value>,
    /// The value above the highest; none where nothing higher can be set.
    pub above: fn(Value) -> Option<Value>,
}

/// Result of a search: its trials, the best setting first.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult<Setting> {
    /// All trials, best first; of equals the one tried first.
    pub trials: Vec<Trial<Setting>>,
    /// The search gave up while a knob's best value was still at an edge beyond which something could have
    /// been set: the best may be better than what was found.
    pub is_at_edge: bool,
}

/// Values of one knob that are tried beyond its grid at most: each costs a run of some seconds, and a grid
/// that needs more should be another.
pub const BEYOND_GRID_MAX: usize = 6;

/// Tries one knob after the other, each value of a knob with the best values of those before it; `try_it`
/// gives the score. Where the best value of a knob is the lowest or the highest tried, its grid is extended
/// until it is not, or nothing beyond can be set, or [`BEYOND_GRID_MAX`] values were added. The second knob
/// stands at the first value of its grid meanwhile. No pair is tried twice.
///
/// # Errors
/// The first error of `try_it`.
pub fn best<A: Copy + PartialOrd, B: Copy + PartialOrd, E>(
    first: Knob<'_, A>,
    second: Knob<'_, B>,
    mut try_it: impl FnMut(A, B) -> Result<f64, E>,
) -> Result<SearchResult<(A, B)>, E> {
    let Some(&start) = second.grid.first() else {
        return Ok(SearchResult { trials: Vec::new(), is_at_edge: false });
    };
    let (mut values, first_at_edge) = climb(first, Vec::new(), |a| try_it(a, start))?;
    let Some(&(a, score)) = values.first() else {
        return Ok(SearchResult { trials: Vec::new(), is_at_edge: false });
    };
    let (others, second_at_edge) = climb(second, vec![(start, score)], |b| try_it(a, b))?;
    let trial = |(a, b), score| Trial { setting: (a, b), score };
    let with_start = values.drain(..).map(|(a, score)| trial((a, start), score));
    let mut trials: Vec<Trial<(A, B)>> = with_start.collect();
    trials.extend(others.into_iter().filter(|(b, _)| *b != start).map(|(b, score)| trial((a, b), score)));
    trials.sort_by(|one, other| other.score.total_cmp(&one.score));
    Ok(SearchResult { trials, is_at_edge: first_at_edge || second_at_edge })
}

/// Values and their scores, best first, of a grid and of what lies beyond its edges; and whether the best is
/// still at an edge. `known` is not tried again.
fn climb<Value: Copy + PartialOrd, E>(
    knob: Knob<'_, Value>,
    known: Vec<(Value, f64)>,
    mut try_it: impl FnMut(Value) -> Result<f64, E>,
) -> Result<(Vec<(Value, f64)>, bool), E> {
    let mut tried = known;
    for &value in knob.grid {
        if !tried.iter().any(|(other, _)| *other == value) {
            tried.push((value, try_it(value)?));
        }
    }
    // Stable: of equals the one tried first is the best.
    let sort = |tried: &mut Vec<(Value, f64)>| tried.sort_by(|one, other| other.1.total_cmp(&one.1));
    sort(&mut tried);
    for _ in 0..BEYOND_GRID_MAX {
        let Some(next) = beyond(knob, &tried) else { return Ok((tried, false)) };
        tried.push((next, try_it(next)?));
        sort(&mut tried);
    }
    let is_at_edge = beyond(knob, &tried).is_some();
    Ok((tried, is_at_edge))
}

/// The value beyond the best, which is first, if that is an edge; both edges, if it is the only value, one
/// after the other.
fn beyond<Value: Copy + PartialOrd>(knob: Knob<'_, Value>, tried: &[(Value, f64)]) -> Option<Value> {
    let &(best, _) = tried.first()?;
    let is_lowest = tried.iter().all(|(other, _)| best <= *other);
    let is_highest = tried.iter().all(|(other, _)| best >= *other);
    let above = is_highest.then(|| (knob.above)(best)).flatten();
    above.or_else(|| is_lowest.then(|| (knob.below)(best)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn tens(grid: &[i32]) -> Knob<'_, i32> {
        Knob {
            grid,
            below: |value| value.checked_sub(10).filter(|&value| value >= 0),
            above: |value| value.checked_add(10),
        }
    }

    fn fixed(grid: &[i32]) -> Knob<'_, i32> {
        Knob { grid, below: |_| None, above: |_| None }
    }

    fn infallible<T>(result: Result<T, Infallible>) -> T {
        match result {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// A ridge along which both knobs matter: its top is found, and no pair is tried twice.
    #[test]
    fn the_top_of_a_ridge_is_found() {
        let mut tried = Vec::new();
        let height = |a: i32, b: i32| {
            tried.push((a, b));
            Ok(f64::from(-(a - 30).pow(2) - (b - 200).pow(2)))
        };
        let found = infallible(best(tens(&[10, 30, 50]), fixed(&[100, 200, 300]), height));
        assert_eq!((found.trials[0].setting, found.is_at_edge), ((30, 200), false));
        assert_eq!(found.trials.len(), 5);
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), 5);
    }

    /// Goal: a top beyond the grid is found, on either side and for either knob, and is no edge. Method:
    /// tops outside; the grid alone would end at 10 or 50.
    #[test]
    fn a_grid_is_extended_until_the_best_is_no_edge() {
        for (top, tried) in [(80, 3 + 4), (60, 3 + 2), (50, 3 + 1), (30, 3)] {
            let height = |a: i32, _: i32| Ok(f64::from(-(a - top).abs()));
            let found = infallible(best(tens(&[10, 30, 50]), fixed(&[1]), height));
            assert_eq!((found.trials[0].setting.0, found.is_at_edge), (top, false));
            assert_eq!(found.trials.len(), tried, "{top}");
            let second = |_: i32, b: i32| Ok(f64::from(-(b - top).abs()));
            let found = infallible(best(fixed(&[1]), tens(&[30, 10, 50]), second));
            assert_eq!((found.trials[0].setting.1, found.is_at_edge), (top, false));
        }
        let falling = infallible(best(tens(&[30, 50]), fixed(&[1]), |a, _| Ok(-f64::from(a))));
        // Zero is the least that can be set: no edge.
        assert_eq!((falling.trials[0].setting.0, falling.is_at_edge), (0, false));
    }

    #[test]
    fn the_extension_is_bounded_and_an_edge_is_told() {
        let rising = infallible(best(tens(&[10, 30]), fixed(&[1]), |a, _| Ok(f64::from(a))));
        assert_eq!((rising.trials.len(), rising.is_at_edge), (2 + BEYOND_GRID_MAX, true));
        assert_eq!(rising.trials[0].setting.0, 30 + 10 * BEYOND_GRID_MAX as i32);
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(best(fixed(&[1]), fixed(&[1]), |_, _| Err("broken")), Err("broken"));
        let nothing = SearchResult { trials: Vec::new(), is_at_edge: false };
        assert_eq!(infallible(best(fixed(&[]), fixed(&[1]), |_, _| Ok(0.0))), nothing);
        assert_eq!(infallible(best(fixed(&[1]), fixed(&[]), |_, _| Ok(0.0))), nothing);
    }
}

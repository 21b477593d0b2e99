//! The best setting of a protection that has to be tuned by hand.

/// What a setting came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial<Setting> {
    /// What was set.
    pub setting: Setting,
    /// Its goodput over the capacity.
    pub goodput: f64,
}

/// Tries one knob after the other, each value of a knob with the best values of those before it; `try_it` gives the
/// goodput. All trials, best first; of equals the one tried first. At most `first.len() + second.len()` trials, of
/// which none is made twice.
///
/// # Errors
/// The first error of `try_it`.
pub fn best<A: Copy + PartialEq, B: Copy + PartialEq, E>(
    first: &[A],
    second: &[B],
    start: B,
    mut try_it: impl FnMut(A, B) -> Result<f64, E>,
) -> Result<Vec<Trial<(A, B)>>, E> {
    let mut trials: Vec<Trial<(A, B)>> = Vec::new();
    for &a in first {
        trials.push(Trial { setting: (a, start), goodput: try_it(a, start)? });
    }
    sort(&mut trials);
    if let Some((a, _)) = trials.first().map(|trial| trial.setting) {
        for &b in second.iter().filter(|&&b| b != start) {
            trials.push(Trial { setting: (a, b), goodput: try_it(a, b)? });
        }
    }
    sort(&mut trials);
    Ok(trials)
}

fn sort<Setting>(trials: &mut [Trial<Setting>]) {
    trials.sort_by(|one, other| other.goodput.total_cmp(&one.goodput));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A ridge along which both knobs matter: its top is found, and no pair is tried twice.
    #[test]
    fn the_top_of_a_ridge_is_found() {
        let mut tried = Vec::new();
        let height = |a: i32, b: i32| {
            tried.push((a, b));
            Ok::<_, Infallible>(f64::from(-(a - 3).pow(2) - (b - 20).pow(2)))
        };
        let trials = best(&[1, 3, 5], &[10, 20, 30], 10, height).unwrap();
        assert_eq!(trials[0].setting, (3, 20));
        assert_eq!(trials.len(), 5);
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), 5);
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(best(&[1], &[1], 1, |_, _| Err("broken")), Err("broken"));
        assert_eq!(best(&[] as &[u8], &[1], 1, |_, _| Ok::<_, Infallible>(0.0)), Ok(Vec::new()));
    }
}

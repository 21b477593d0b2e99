//! Whether the origin is another one than before: cumulative sums of log-likelihood ratios (Page, 1954), one for each
//! factor by which departures may have changed.

/// Factors by which departures may change at once: what lies between is found by the nearest.
pub(super) const FACTORS: [f64; 6] = [0.33, 0.6, 0.85, 1.2, 1.6, 3.0];
/// By as much must a change be likelier than none, e⁸ to 1: a false alarm each few thousand windows, and a loss of two thirds
/// found after about nine completions at the new rate where they are as uneven as a Poisson process.
const ALARM: f64 = 8.0;

/// The sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    sums: [f64; FACTORS.len()],
}

/// What the sums say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// None: what was seen until now says nothing of a change.
    Nothing,
    /// Evidence since the suspicion began may be of another origin.
    Since,
    /// It is.
    Changed,
}

impl Changes {
    /// Takes the log-likelihoods of one window: of no change, and of a change by each factor.
    pub(super) fn judge(&mut self, same: f64, changed: [f64; FACTORS.len()]) -> Suspicion {
        for (sum, changed) in self.sums.iter_mut().zip(changed) {
            *sum = (*sum + changed - same).max(0.0);
        }
        let most = self.sums.into_iter().fold(0.0, f64::max);
        if most > ALARM {
            *self = Self::default();
            Suspicion::Changed
        } else if most > 0.0 {
            Suspicion::Since
        } else {
            Suspicion::Nothing
        }
    }

    /// Suspects nothing.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_goes_on_is_a_change_and_one_that_comes_and_goes_is_none() {
        let mut changes = Changes::default();
        let mut window = |ratio: f64| changes.judge(0.0, [ratio, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((window(3.0), window(-4.0)), (Suspicion::Since, Suspicion::Nothing));
        assert_eq!(
            (window(3.0), window(3.0), window(3.0)),
            (Suspicion::Since, Suspicion::Since, Suspicion::Changed)
        );
        assert_eq!(window(-1.0), Suspicion::Nothing, "the sums start from zero");
    }
}

//! Detects that the origin is another one than before: cumulative sums of log-likelihood ratios (Page, 1954),
//! one for each factor by which times may have changed. Only windows at one number in flight are compared
//! with each other: another limit may change times by itself.

use super::constants::Constants;

/// A window of traffic, as evidence of the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// Mean number in flight.
    pub(super) in_flight: f64,
    /// Request-seconds that the work took.
    pub(super) time_s: f64,
    /// Completions times their costs.
    pub(super) work: f64,
    /// Completions.
    pub(super) completed: f64,
    /// Completions over their dispersion: as many of regular requests would tell as much.
    pub(super) weight: f64,
}

/// The sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changes {
    k: Constants,
    sums: [f64; 6],
}

/// Verdict of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// The window is of the origin as it is known.
    No,
    /// It may be of another one.
    Open,
    /// It is.
    Changed,
}

impl Changes {
    pub(super) fn new(k: Constants) -> Self {
        Self { k, sums: [0.0; 6] }
    }

    /// Takes one window: the logarithm of its times over those remembered at that number in flight, with its
    /// variance; `None` where nothing is remembered to compare with.
    pub(super) fn judge(&mut self, difference: Option<(f64, f64)>) -> Suspicion {
        let Some((difference, variance)) = difference else {
            self.sums = [0.0; 6];
            return Suspicion::No;
        };
        let k = self.k;
        let (root, fourth) = (libm::sqrt(k.factor), libm::sqrt(libm::sqrt(k.factor)));
        let factors = [1.0 / k.factor, 1.0 / root, 1.0 / fourth, fourth, root, k.factor];
        for (sum, factor) in self.sums.iter_mut().zip(factors) {
            let by = libm::log(factor);
            let ratio = (by * difference - by * by / 2.0) / variance;
            *sum = (*sum + ratio.min(k.alarm / 2.0)).max(0.0);
        }
        let highest = self.sums.into_iter().fold(0.0, f64::max);
        if highest >= k.alarm {
            self.sums = [0.0; 6];
            Suspicion::Changed
        } else if highest >= k.alarm / 2.0 {
            Suspicion::Open
        } else {
            Suspicion::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_windows_with_times_of_three_times_the_length_are_a_change_and_one_is_none() {
        let mut changes = Changes::new(Constants::SHIPPED);
        let mut window = |times: f64| changes.judge(Some((libm::log(times), 0.1)));
        assert_eq!([window(1.05), window(3.0), window(0.8)], [Suspicion::No, Suspicion::Open, Suspicion::No]);
        assert_eq!([window(3.0), window(3.0)], [Suspicion::Open, Suspicion::Changed]);
        assert_eq!(window(1.0), Suspicion::No);
    }

    #[test]
    fn uncertain_windows_and_those_at_another_number_in_flight_say_nothing() {
        let mut changes = Changes::new(Constants::SHIPPED);
        assert_eq!(changes.judge(Some((libm::log(3.0), 2.0))), Suspicion::No);
        assert_eq!(changes.judge(Some((libm::log(3.0), 0.1))), Suspicion::Open);
        assert_eq!(changes.judge(None), Suspicion::No);
        assert_eq!(changes.judge(Some((libm::log(1.4), 0.3))), Suspicion::No);
    }
}

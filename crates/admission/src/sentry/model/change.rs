//! Whether the origin is another one than before: cumulative sums of log-likelihood ratios (Page, 1954), one for each factor by which
//! times may have changed. Only windows at one number in flight are compared with each other: another limit may change times by itself.

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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    sums: [f64; FACTORS.len()],
}

/// What the sums say.
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
    /// Takes one window: the logarithm of its times over those remembered at that number in flight, with its variance; `None` where
    /// nothing is remembered to compare with.
    pub(super) fn judge(&mut self, difference: Option<(f64, f64)>) -> Suspicion {
        let Some((difference, variance)) = difference else {
            *self = Self::default();
            return Suspicion::No;
        };
        for (sum, factor) in self.sums.iter_mut().zip(FACTORS) {
            let by = libm::log(factor);
            let ratio = (by * difference - by * by / 2.0) / variance;
            *sum = (*sum + ratio.min(RATIO_MAX)).max(0.0);
        }
        let highest = self.sums.into_iter().fold(0.0, f64::max);
        if highest > ALARM {
            *self = Self::default();
            Suspicion::Changed
        } else if highest >= SUSPICIOUS {
            Suspicion::Open
        } else {
            Suspicion::No
        }
    }
}

/// Factors by which times may change at once: what lies between is found by the nearest.
const FACTORS: [f64; 4] = [0.4, 0.65, 1.5, 2.5];
/// A change must be e⁶ times as likely as none, so that chance seldom raises it.
const ALARM: f64 = 6.0;
/// One window says this much at most, so that an alarm takes at least two: mean times of uneven requests have long tails.
const RATIO_MAX: f64 = 4.0;
/// From here on a window is kept apart from what is remembered.
const SUSPICIOUS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_windows_with_times_of_three_times_the_length_are_a_change_and_one_is_none() {
        let mut changes = Changes::default();
        let mut window = |times: f64| changes.judge(Some((libm::log(times), 0.1)));
        assert_eq!([window(1.05), window(3.0), window(0.8)], [Suspicion::No, Suspicion::Open, Suspicion::No]);
        assert_eq!([window(3.0), window(3.0)], [Suspicion::Open, Suspicion::Changed]);
        assert_eq!(window(1.0), Suspicion::No);
    }

    #[test]
    fn uncertain_windows_and_those_at_another_number_in_flight_say_nothing() {
        let mut changes = Changes::default();
        assert_eq!(changes.judge(Some((libm::log(3.0), 2.0))), Suspicion::No);
        assert_eq!(changes.judge(Some((libm::log(3.0), 0.1))), Suspicion::Open);
        assert_eq!(changes.judge(None), Suspicion::No);
        assert_eq!(changes.judge(Some((libm::log(1.4), 0.3))), Suspicion::No);
    }
}

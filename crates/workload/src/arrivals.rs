//! When each person arrives: decided by the process and the seed before anything runs.

use crate::profile::{RateProfile, Segment};
use flashweir_core::Rng;
use std::time::Duration;

/// How arrivals fall at the rate of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// Evenly spaced: the k-th person comes when k − ½ are due. Uses no randomness.
    Constant(RateProfile),
    /// Independently of each other, as people who do not know one another do.
    Poisson(RateProfile),
}

impl ArrivalProcess {
    /// The moments of arrival in order, as offsets from the start. The same process and seed give the same
    /// moments on every machine. O(1) memory; about 30 ns for each.
    #[must_use]
    pub fn moments(&self, seed: u64) -> Moments<'_> {
        let gap = match self {
            Self::Constant(_) => Gap::Even,
            Self::Poisson(_) => Gap::Exponential(Rng::new(seed)),
        };
        Moments { segments: self.profile().segments(), start: Duration::ZERO, due_before: 0.0, due: 0.0, gap }
    }

    /// The rate that the arrivals follow.
    #[must_use]
    pub fn profile(&self) -> &RateProfile {
        match self {
            Self::Constant(profile) | Self::Poisson(profile) => profile,
        }
    }
}

/// The moments of arrival; made by [`ArrivalProcess::moments`].
///
/// Inverts the integral of the rate (the time-change theorem for Poisson processes): a process of rate one is
/// drawn, and each of its points is placed where the profile's integral reaches it. Nothing is thinned away,
/// so a profile's quiet stretches cost nothing.
#[derive(Clone, Debug)]
pub struct Moments<'a> {
    /// The stretch under way and those to come.
    segments: &'a [Segment],
    /// When the stretch under way began.
    start: Duration,
    /// The profile's integral up to that moment.
    due_before: f64,
    /// The integral at which the latest arrival came.
    due: f64,
    gap: Gap,
}

/// Distance between two arrivals of a process of rate one.
#[derive(Clone, Debug)]
enum Gap {
    Even,
    Exponential(Rng),
}

impl Iterator for Moments<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.due += match &mut self.gap {
            // Half a step first: a profile worth exactly n arrivals then gives n, whatever the rounding.
            Gap::Even if self.due == 0.0 => 0.5,
            Gap::Even => 1.0,
            Gap::Exponential(rng) => rng.exponential(1.0),
        };
        while let Some((segment, rest)) = self.segments.split_first() {
            let due_after = self.due_before + segment.expected_arrivals();
            if self.due < due_after {
                let seconds = (self.due - self.due_before) / segment.rate_per_s;
                // Rounding must not carry an arrival past its stretch, or order would suffer.
                let within = Duration::from_secs_f64(seconds.min(segment.length.as_secs_f64()));
                return Some(self.start + within.min(segment.length));
            }
            self.due_before = due_after;
            self.start += segment.length;
            self.segments = rest;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn constant(rate: f64, seconds: u32) -> RateProfile {
        RateProfile::constant(rate, seconds * SECOND).unwrap()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced() {
        let moments: Vec<_> = ArrivalProcess::Constant(constant(4.0, 1)).moments(1).collect();
        assert_eq!(moments, [125, 375, 625, 875].map(Duration::from_millis));
    }

    #[test]
    fn nobody_arrives_at_rate_zero() {
        let silent = constant(0.0, 10);
        assert_eq!(ArrivalProcess::Constant(silent.clone()).moments(1).count(), 0);
        assert_eq!(ArrivalProcess::Poisson(silent).moments(1).count(), 0);
    }

    #[test]
    fn a_silent_stretch_is_skipped_and_the_rest_served() {
        let gap = RateProfile::from_bins(SECOND, [2.0, 0.0, 2.0]).unwrap();
        let moments: Vec<_> = ArrivalProcess::Constant(gap).moments(1).collect();
        assert_eq!(moments, [250, 750, 2250, 2750].map(Duration::from_millis));
    }

    /// Poisson counts have the variance of their mean; gaps have a coefficient of variation of one.
    #[test]
    fn poisson_arrivals_scatter_as_poisson_does() {
        let moments: Vec<_> = ArrivalProcess::Poisson(constant(1000.0, 100)).moments(42).collect();
        let expected = 100_000.0;
        assert!((moments.len() as f64 - expected).abs() < 4.0 * f64::sqrt(expected), "{}", moments.len());
        let gaps: Vec<f64> = moments.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{}", variance.sqrt() / mean);
    }

    #[test]
    fn each_seed_has_its_own_moments() {
        let process = ArrivalProcess::Poisson(constant(100.0, 1));
        assert!(process.moments(1).eq(process.moments(1)));
        assert!(process.moments(1).ne(process.moments(2)));
    }

    fn profiles() -> impl Strategy<Value = RateProfile> {
        let rate = prop_oneof![Just(0.0), 0.0..3000.0f64];
        (1u64..4_000, proptest::collection::vec(rate, 1..20)).prop_map(|(width_ms, rates)| {
            RateProfile::from_bins(Duration::from_millis(width_ms), rates).unwrap()
        })
    }

    proptest! {
        #[test]
        fn moments_are_in_order_and_within_the_profile(profile in profiles(), seed: u64) {
            for process in [ArrivalProcess::Constant(profile.clone()), ArrivalProcess::Poisson(profile.clone())] {
                let moments: Vec<_> = process.moments(seed).collect();
                prop_assert!(moments.is_sorted());
                prop_assert!(moments.last().is_none_or(|last| *last <= profile.length()));
                prop_assert!(moments.iter().all(|moment| profile.rate_at(*moment) > 0.0
                    || *moment == profile.length() || profile.rate_at(*moment - Duration::from_nanos(2)) > 0.0));
            }
        }

        #[test]
        fn constant_arrivals_count_to_the_integral(profile in profiles()) {
            let count = ArrivalProcess::Constant(profile.clone()).moments(0).count() as f64;
            prop_assert!((count - profile.expected_arrivals()).abs() <= 0.5 + 1e-6);
        }

        /// Six standard deviations: the chance of a false failure over all cases is below one in a million.
        #[test]
        fn poisson_arrivals_count_to_the_integral(profile in profiles(), seed: u64) {
            let expected = profile.expected_arrivals();
            let count = ArrivalProcess::Poisson(profile).moments(seed).count() as f64;
            prop_assert!((count - expected).abs() <= 6.0 * expected.sqrt() + 12.0, "{count} for {expected}");
        }
    }
}

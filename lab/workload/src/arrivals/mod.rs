//! Arrival time of each person: decided by the process and the seed before anything runs.

mod error;
mod given;
mod paced;
mod placement;
mod self_similar;

pub use error::ArrivalError;
pub use given::Given;
pub use paced::{Colliding, RandomTiming};
pub use self_similar::SelfSimilarity;

use crate::profile::RateProfile;
use flashweir_core::Rng;
use paced::{CollidingMoments, RandomTimingMoments};
use placement::Placement;
use self_similar::SelfSimilarPoints;
use std::sync::Arc;
use std::time::Duration;

/// Process of arrivals at the rate of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// Evenly spaced: the k-th person comes when k − ½ are due. Uses no randomness.
    Constant(RateProfile),
    /// Independently of each other, as people who do not know one another do.
    Poisson(RateProfile),
    /// Bursty at every time scale (M/G/∞): made by [`self_similar`](Self::self_similar).
    SelfSimilar(SelfSimilar),
    /// Machines that send at the same places of each second: made by [`colliding`](Self::colliding).
    Colliding(Colliding),
    /// Workers that wait about a second each: made by [`random_timing`](Self::random_timing).
    RandomTiming(RandomTiming),
    /// Given one by one, as from a recorded log: made by [`given`](Self::given).
    Given(Given),
}

/// A profile with the sessions whose requests follow it; see [`ArrivalProcess::self_similar`].
#[derive(Clone, Debug, PartialEq)]
pub struct SelfSimilar {
    profile: RateProfile,
    similarity: SelfSimilarity,
}

impl ArrivalProcess {
    /// The requests of sessions whose lengths have a heavy tail (M/G/∞): long-range dependent, with the Hurst
    /// parameter that [`SelfSimilarity::hurst`] returns.
    ///
    /// Memory: 16 bytes for each session under way, of which there are about mean rate × gap.
    ///
    /// # Errors
    /// More sessions under way on average than
    /// [`SELF_SIMILAR_ACTIVE_MEAN`](flashweir_core::limits::SELF_SIMILAR_ACTIVE_MEAN).
    pub fn self_similar(profile: RateProfile, similarity: SelfSimilarity) -> Result<Self, ArrivalError> {
        similarity.check(profile.mean_rate())?;
        Ok(Self::SelfSimilar(SelfSimilar { profile, similarity }))
    }

    /// Method 2 of Esser's thesis (§3.3): each of `workers` sends once a second, spread evenly over
    /// it; but `machines` that share the workers do not coordinate, so that many requests fall on the same
    /// instant. With one machine nothing collides.
    ///
    /// # Errors
    /// No workers or more than [`PACED_WORKERS`](flashweir_core::limits::PACED_WORKERS); no machines, or
    /// more than workers.
    pub fn colliding(workers: u32, machines: u32, length: Duration) -> Result<Self, ArrivalError> {
        Colliding::new(workers, machines, length).map(Self::Colliding)
    }

    /// Method 3 (§3.4): as method 2, but all machines agree, so that requests are evenly spaced.
    ///
    /// # Errors
    /// No workers or more than [`PACED_WORKERS`](flashweir_core::limits::PACED_WORKERS); no length.
    pub fn interleaved(workers: u32, length: Duration) -> Result<Self, ArrivalError> {
        paced::checked_workers(workers)?;
        Ok(Self::Constant(RateProfile::constant(f64::from(workers), length)?))
    }

    /// Method 4 (§3.5): each of `workers` waits 0.7 s to 1.3 s between its requests, drawn uniformly, in an
    /// open loop. Memory: 16 bytes for each worker.
    ///
    /// # Errors
    /// No workers or more than [`PACED_WORKERS`](flashweir_core::limits::PACED_WORKERS).
    pub fn random_timing(workers: u32, length: Duration) -> Result<Self, ArrivalError> {
        RandomTiming::new(workers, length).map(Self::RandomTiming)
    }

    /// Exactly these moments.
    ///
    /// # Errors
    /// A moment before its predecessor.
    pub fn given(moments: impl Into<Arc<[Duration]>>) -> Result<Self, ArrivalError> {
        Given::new(moments.into(), None).map(Self::Given)
    }

    /// Exactly these moments, in a schedule that goes on until `length`: people who came may still do
    /// something.
    ///
    /// # Errors
    /// A moment before its predecessor, or after `length`.
    pub fn given_within(moments: impl Into<Arc<[Duration]>>, length: Duration) -> Result<Self, ArrivalError> {
        Given::new(moments.into(), Some(length)).map(Self::Given)
    }

    /// The moments of arrival in order, as offsets from the start, none after [`length`](Self::length). The
    /// same process and seed give the same moments on every machine. For each moment evenly spaced arrivals
    /// cost about 20 ns, Poisson 55 ns, self-similar 110 ns, randomly timed ones 50 to 100 ns, the others 10
    /// ns. Memory is O(1) unless the process says otherwise.
    #[must_use]
    pub fn moments(&self, seed: u64) -> Moments<'_> {
        Moments(match self {
            Self::Constant(profile) => {
                Source::Even { due: 0.0, placement: Placement::new(profile.segments()) }
            }
            Self::Poisson(profile) => Source::Poisson {
                due: 0.0,
                rng: Rng::new(seed),
                placement: Placement::new(profile.segments()),
            },
            Self::SelfSimilar(SelfSimilar { profile, similarity }) => Source::SelfSimilar {
                points: SelfSimilarPoints::new(similarity, profile.mean_rate(), seed),
                placement: Placement::new(profile.segments()),
            },
            Self::Colliding(process) => Source::Colliding(process.moments()),
            Self::RandomTiming(process) => Source::RandomTiming(process.moments(seed)),
            Self::Given(given) => Source::Given(given.moments().iter()),
        })
    }

    /// The same process at its profile's mean rate throughout, so that the same seed draws the same points
    /// with the profile taken out. Estimates of burstiness are to be made on these: a profile that rises and
    /// falls looks like burstiness at long times. Processes that follow no profile stay as they are.
    #[must_use]
    pub fn evened(&self) -> Self {
        match self {
            Self::Constant(profile) => Self::Constant(profile.evened()),
            Self::Poisson(profile) => Self::Poisson(profile.evened()),
            Self::SelfSimilar(SelfSimilar { profile, similarity }) => {
                Self::SelfSimilar(SelfSimilar { profile: profile.evened(), similarity: *similarity })
            }
            Self::Colliding(_) | Self::RandomTiming(_) | Self::Given(_) => self.clone(),
        }
    }

    /// The rate that arrivals follow; none for those paced by workers or given one by one.
    #[must_use]
    pub fn profile(&self) -> Option<&RateProfile> {
        match self {
            Self::Constant(profile)
            | Self::Poisson(profile)
            | Self::SelfSimilar(SelfSimilar { profile, .. }) => Some(profile),
            Self::Colliding(_) | Self::RandomTiming(_) | Self::Given(_) => None,
        }
    }

    /// Length of the arrivals: the length of the profile; of given moments the length given, or else the
    /// last.
    #[must_use]
    pub fn length(&self) -> Duration {
        match self {
            Self::Constant(profile)
            | Self::Poisson(profile)
            | Self::SelfSimilar(SelfSimilar { profile, .. }) => profile.length(),
            Self::Colliding(process) => process.length(),
            Self::RandomTiming(process) => process.length(),
            Self::Given(given) => given.length(),
        }
    }

    /// Expected number of arrivals: the mean over all seeds (for random timing within 3 % of one per worker).
    #[must_use]
    pub fn expected(&self) -> f64 {
        match self {
            Self::Constant(profile)
            | Self::Poisson(profile)
            | Self::SelfSimilar(SelfSimilar { profile, .. }) => profile.expected_arrivals(),
            Self::Colliding(process) => process.expected(),
            Self::RandomTiming(process) => process.expected(),
            Self::Given(given) => given.moments().len() as f64,
        }
    }
}

/// The moments of arrival in order; made by [`ArrivalProcess::moments`].
#[derive(Clone, Debug)]
pub struct Moments<'a>(Source<'a>);

/// A closed choice rather than a boxed iterator: every thread of a run walks through every arrival.
#[derive(Clone, Debug)]
enum Source<'a> {
    Even { due: f64, placement: Placement<'a> },
    Poisson { due: f64, rng: Rng, placement: Placement<'a> },
    SelfSimilar { points: SelfSimilarPoints, placement: Placement<'a> },
    Colliding(CollidingMoments<'a>),
    RandomTiming(RandomTimingMoments),
    Given(std::slice::Iter<'a, Duration>),
}

impl Iterator for Moments<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        match &mut self.0 {
            Source::Even { due, placement } => {
                // Half a step first: a profile worth exactly n arrivals then gives n for any rounding.
                *due += if *due == 0.0 { 0.5 } else { 1.0 };
                placement.moment(*due)
            }
            Source::Poisson { due, rng, placement } => {
                *due += rng.exponential(1.0);
                placement.moment(*due)
            }
            Source::SelfSimilar { points, placement } => placement.moment(points.next_point()),
            Source::Colliding(moments) => moments.next(),
            Source::RandomTiming(moments) => moments.next(),
            Source::Given(moments) => moments.next().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Segment;
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

    /// On a slope the k-th arrival comes where the integral, a parabola, reaches k − ½.
    #[test]
    fn arrivals_on_a_slope_follow_its_parabola() {
        let check = |from: f64, to: f64, length_s: f64| {
            let length = Duration::from_secs_f64(length_s);
            let profile = RateProfile::ramp(from, to, length, length).unwrap();
            let process = ArrivalProcess::Constant(profile);
            let slope = (to - from) / length_s;
            let mut count = 0;
            for (k, moment) in process.moments(0).enumerate() {
                let t = moment.as_secs_f64();
                let rate = from + slope * t;
                let error = from * t + 0.5 * slope * t * t - (k as f64 + 0.5);
                // Moments are rounded to a nanosecond; the rest is the precision of numbers as large as
                // these.
                assert!(
                    error.abs() <= rate * 2e-9 + 1e-9 * process.expected(),
                    "{from} {to}: {error} at {t}"
                );
                count = k + 1;
            }
            assert!((count as f64 - process.expected()).abs() <= 0.5 + 1e-6, "{from} {to}: {count}");
        };
        check(0.0, 1000.0, 10.0);
        check(1000.0, 0.0, 10.0);
        check(100.0, 100.000_000_001, 50.0);
        check(100.000_000_001, 100.0, 50.0);
        check(1e-9, 300.0, 3.0);
        check(300.0, 1e-300, 3.0);
    }

    #[test]
    fn a_profile_at_its_mean_rate_has_the_same_points() {
        let ramp = RateProfile::ramp(0.0, 200.0, 10 * SECOND, 10 * SECOND).unwrap();
        let process = ArrivalProcess::self_similar(ramp, SelfSimilarity::default()).unwrap();
        let even = process.evened();
        assert_eq!((even.length(), even.expected()), (process.length(), process.expected()));
        assert_eq!(process.moments(4).count(), even.moments(4).count());
        for (moment, evened) in process.moments(4).zip(even.moments(4)) {
            // Of 1000 arrivals due in ten seconds, (t/10)² · 1000 are due by t.
            let due = (moment.as_secs_f64() / 10.0).powi(2);
            assert!((due - evened.as_secs_f64() / 10.0).abs() < 1e-8);
        }
    }

    fn profiles() -> impl Strategy<Value = RateProfile> {
        let rate = || prop_oneof![Just(0.0), 0.0..3000.0f64];
        let stretch = (1u64..4_000, rate(), prop_oneof![Just(None), rate().prop_map(Some)]);
        proptest::collection::vec(stretch, 1..20).prop_map(|stretches| {
            let segments = stretches.into_iter().map(|(length_ms, from_per_s, to_per_s)| Segment {
                length: Duration::from_millis(length_ms),
                from_per_s,
                to_per_s: to_per_s.unwrap_or(from_per_s),
            });
            RateProfile::new(segments).unwrap()
        })
    }

    fn following(profile: &RateProfile) -> [ArrivalProcess; 3] {
        let similarity = SelfSimilarity::new(1.4, SECOND / 50).unwrap();
        [
            ArrivalProcess::Constant(profile.clone()),
            ArrivalProcess::Poisson(profile.clone()),
            ArrivalProcess::self_similar(profile.clone(), similarity).unwrap(),
        ]
    }

    proptest! {
        #[test]
        fn moments_are_in_order_and_within_the_profile(profile in profiles(), seed: u64) {
            // Rounding to nanoseconds may put an arrival on the edge of a stretch without arrivals.
            let edge = Duration::from_nanos(2);
            let somebody_comes = |moment: Duration| {
                [moment.saturating_sub(edge), moment, moment + edge].iter().any(|near| profile.rate_at(*near) > 0.0)
            };
            for process in following(&profile) {
                let moments: Vec<_> = process.moments(seed).collect();
                prop_assert!(moments.is_sorted());
                prop_assert!(moments.last().is_none_or(|last| *last <= profile.length()));
                prop_assert!(moments.iter().all(|moment| somebody_comes(*moment)));
                prop_assert!(process.moments(seed).eq(moments));
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

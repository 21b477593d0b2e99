//! Arrival rate as a function of time: stretches of constant or evenly rising or falling rate.

use std::time::Duration;

/// One stretch of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Length of the stretch; never zero inside a profile.
    pub length: Duration,
    /// Arrivals per second as it begins; finite and not negative inside a profile.
    pub from_per_s: f64,
    /// Arrivals per second as it ends, reached along a straight line; the same as at first where the rate is
    /// constant. Finite and not negative inside a profile.
    pub to_per_s: f64,
}

/// A rate that is constant, or changes along a straight line, over each of a sequence of stretches.
///
/// [`ramp`](Self::ramp) and [`spike`](Self::spike) are built of such stretches too.
///
/// Everything composes: build a profile, then [`squeeze`](Self::squeeze) its time, [`scale`](Self::scale) its
/// rate or set its [`peak`](Self::peak), append another with [`then`](Self::then), [`cut`](Self::cut) its
/// end.
///
/// ```
/// use flashweir_workload::RateProfile;
/// use std::time::Duration;
/// let minute = Duration::from_secs(60);
/// let morning = RateProfile::from_bins(minute, [1.0, 4.0, 2.0])?.squeeze(60.0)?.peak(100.0)?;
/// assert_eq!(morning.length(), Duration::from_secs(3));
/// assert_eq!(morning.rate_at(Duration::from_millis(2500)), 50.0);
/// assert_eq!(morning.expected_arrivals(), 175.0);
/// # Ok::<(), flashweir_workload::ProfileError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RateProfile {
    segments: Vec<Segment>,
}

/// The numbers given do not make a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// A profile of no length at all.
    #[error("a rate profile needs at least one stretch that is longer than zero")]
    Empty,
    /// A rate that is negative, infinite or not a number.
    #[error("{0} is not a rate: expected a finite number of arrivals per second, zero or more")]
    NotARate(f64),
    /// A factor that is zero, negative, infinite or not a number.
    #[error("{0} is not a factor: expected a finite number above zero")]
    NotAFactor(f64),
    /// A peak was asked of a profile that is zero throughout.
    #[error("a profile whose rate is zero throughout cannot be given a peak")]
    NoPeak,
    /// A spike that would be over before it began.
    #[error("a spike needs a half-life of at least 16 ns")]
    NoHalfLife,
    /// So strong a squeeze that stretches vanish, or so weak that they overflow.
    #[error("squeezing time {0} times leaves no stretch a length that can be expressed (1 ns to centuries)")]
    Squeezed(f64),
}

impl RateProfile {
    /// A profile of the given stretches; those of zero length are left out.
    ///
    /// # Errors
    /// No stretch longer than zero, or a rate that is not one.
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Result<Self, ProfileError> {
        let segments: Vec<_> = segments.into_iter().filter(|segment| !segment.length.is_zero()).collect();
        if segments.is_empty() {
            return Err(ProfileError::Empty);
        }
        let mut rates = segments.iter().flat_map(|segment| [segment.from_per_s, segment.to_per_s]);
        match rates.find(|rate_per_s| !is_rate(*rate_per_s)) {
            Some(wrong) => Err(ProfileError::NotARate(wrong)),
            None => Ok(Self { segments }),
        }
    }

    /// The same rate throughout.
    ///
    /// # Errors
    /// A rate that is not one, or no length.
    pub fn constant(rate_per_s: f64, length: Duration) -> Result<Self, ProfileError> {
        Self::new([Segment::constant(length, rate_per_s)])
    }

    /// One rate until `at`, another from then on until `length`.
    ///
    /// # Errors
    /// A rate that is not one, or no length.
    pub fn step(
        before_per_s: f64,
        after_per_s: f64,
        at: Duration,
        length: Duration,
    ) -> Result<Self, ProfileError> {
        let at = at.min(length);
        Self::new([Segment::constant(at, before_per_s), Segment::constant(length - at, after_per_s)])
    }

    /// Stretches of equal width, each with its rate per second.
    ///
    /// # Errors
    /// A rate that is not one, or no bins, or bins of no width.
    pub fn from_bins(
        width: Duration,
        rates_per_s: impl IntoIterator<Item = f64>,
    ) -> Result<Self, ProfileError> {
        Self::new(rates_per_s.into_iter().map(|rate_per_s| Segment::constant(width, rate_per_s)))
    }

    /// Time runs `factor` times faster. All people still come, so rates rise by the same factor (use
    /// [`peak`](Self::peak) or [`scale`](Self::scale) afterwards to set them otherwise).
    ///
    /// # Errors
    /// A factor that is not one, or a profile too short or too long afterwards.
    pub fn squeeze(self, factor: f64) -> Result<Self, ProfileError> {
        let factor = checked_factor(factor)?;
        let segments = self.segments.iter().map(|segment| {
            let length = Duration::try_from_secs_f64(segment.length.as_secs_f64() / factor)
                .map_err(|_| ProfileError::Squeezed(factor))?;
            if length.is_zero() {
                return Err(ProfileError::Squeezed(factor));
            }
            Ok(Segment { length, ..segment.scaled(factor) })
        });
        Self::new(segments.collect::<Result<Vec<_>, _>>()?)
    }

    /// Every rate times `factor`.
    ///
    /// # Errors
    /// A factor that is not one.
    pub fn scale(mut self, factor: f64) -> Result<Self, ProfileError> {
        let factor = checked_factor(factor)?;
        for segment in &mut self.segments {
            *segment = segment.scaled(factor);
        }
        Self::new(self.segments)
    }

    /// Scales so that the highest rate is `rate_per_s`.
    ///
    /// # Errors
    /// A peak that is not a factor, or a profile that is zero throughout.
    pub fn peak(self, rate_per_s: f64) -> Result<Self, ProfileError> {
        let rate_per_s = checked_factor(rate_per_s)?;
        match self.peak_rate() {
            0.0 => Err(ProfileError::NoPeak),
            peak => self.scale(rate_per_s / peak),
        }
    }

    /// This profile, then the other.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.segments.extend(next.segments);
        self
    }

    /// The profile up to `length`, which may fall inside a stretch; a shorter profile stays as it is.
    ///
    /// # Errors
    /// `length` is zero.
    pub fn cut(self, length: Duration) -> Result<Self, ProfileError> {
        let mut left = length;
        Self::new(self.segments.into_iter().map_while(|segment| {
            let length = segment.length.min(left);
            left -= length;
            let whole = length == segment.length;
            let to_per_s = if whole { segment.to_per_s } else { segment.rate_after(length) };
            (!length.is_zero()).then_some(Segment { length, to_per_s, ..segment })
        }))
    }

    /// The stretches in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Length of the profile.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.segments.iter().map(|segment| segment.length).sum()
    }

    /// The highest rate, per second.
    #[must_use]
    pub fn peak_rate(&self) -> f64 {
        self.segments.iter().map(|segment| segment.from_per_s.max(segment.to_per_s)).fold(0.0, f64::max)
    }

    /// The rate at a moment, per second; zero once the profile is over.
    #[must_use]
    pub fn rate_at(&self, moment: Duration) -> f64 {
        let mut start = Duration::ZERO;
        for segment in &self.segments {
            if moment - start < segment.length {
                return segment.rate_after(moment - start);
            }
            start += segment.length;
        }
        0.0
    }

    /// The integral of the rate: how many arrivals to expect in all.
    #[must_use]
    pub fn expected_arrivals(&self) -> f64 {
        self.segments.iter().map(Segment::expected_arrivals).sum()
    }

    /// The mean rate over the whole length, per second.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        self.expected_arrivals() / self.length().as_secs_f64()
    }

    /// The mean rate throughout: as many people over as long, evenly.
    #[must_use]
    pub fn evened(&self) -> Self {
        Self { segments: vec![Segment::constant(self.length(), self.mean_rate())] }
    }
}

impl Segment {
    /// A stretch of one rate.
    #[must_use]
    pub fn constant(length: Duration, rate_per_s: f64) -> Self {
        Self { length, from_per_s: rate_per_s, to_per_s: rate_per_s }
    }

    /// Expected number of arrivals in this stretch.
    #[must_use]
    pub fn expected_arrivals(&self) -> f64 {
        // Halved before they are added: the sum of two finite rates need not be finite.
        (0.5 * self.from_per_s + 0.5 * self.to_per_s) * self.length.as_secs_f64()
    }

    /// The rate at a time after the stretch began, per second; that of its end from there on.
    #[must_use]
    pub fn rate_after(&self, after: Duration) -> f64 {
        // A segment of no length is at its end at once; dividing by the length would give no number.
        if after >= self.length {
            return self.to_per_s;
        }
        let share = after.as_secs_f64() / self.length.as_secs_f64();
        self.from_per_s + (self.to_per_s - self.from_per_s) * share
    }

    /// Time from the beginning of the stretch until `due` arrivals (from 0 to those expected) are expected,
    /// seconds.
    ///
    /// The positive root t of from·t + slope·t²/2 = due, in the form 2·due / (from + √(from² + 2·slope·due)):
    /// it neither divides by the slope nor subtracts nearly equal numbers, so that a slope close to zero or a
    /// rate that begins or ends at zero costs no precision. The root is the rate at the moment sought.
    pub(crate) fn seconds_until(&self, due: f64) -> f64 {
        if self.from_per_s == self.to_per_s {
            return due / self.from_per_s;
        }
        if due <= 0.0 {
            return 0.0;
        }
        let slope = (self.to_per_s - self.from_per_s) / self.length.as_secs_f64();
        // Below zero only by rounding, where a falling rate reaches zero at the end of the stretch.
        let rate = (self.from_per_s * self.from_per_s + 2.0 * slope * due).max(0.0).sqrt();
        2.0 * due / (self.from_per_s + rate)
    }

    fn scaled(self, factor: f64) -> Self {
        Self { from_per_s: self.from_per_s * factor, to_per_s: self.to_per_s * factor, ..self }
    }
}

fn checked_factor(factor: f64) -> Result<f64, ProfileError> {
    if is_rate(factor) && factor > 0.0 { Ok(factor) } else { Err(ProfileError::NotAFactor(factor)) }
}

fn is_rate(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn squeezing_time_keeps_everybody() {
        let slow = RateProfile::from_bins(60 * SECOND, [2.0, 6.0]).unwrap();
        let fast = slow.clone().squeeze(30.0).unwrap();
        assert_eq!(fast.length(), 4 * SECOND);
        assert!((fast.expected_arrivals() - slow.expected_arrivals()).abs() < 1e-9);
        assert_eq!(fast.peak_rate(), 180.0);
    }

    #[test]
    fn a_step_changes_rate_at_its_moment_and_not_before() {
        let step = RateProfile::step(10.0, 50.0, 2 * SECOND, 5 * SECOND).unwrap();
        assert_eq!(step.rate_at(Duration::from_nanos(1_999_999_999)), 10.0);
        assert_eq!(step.rate_at(2 * SECOND), 50.0);
        assert_eq!(step.rate_at(5 * SECOND), 0.0);
        assert_eq!(step.expected_arrivals(), 170.0);
    }

    #[test]
    fn a_step_after_the_end_is_never_reached() {
        let step = RateProfile::step(10.0, 50.0, 9 * SECOND, 5 * SECOND).unwrap();
        assert_eq!(step.segments(), [Segment::constant(5 * SECOND, 10.0)]);
    }

    #[test]
    fn cutting_ends_inside_a_stretch() {
        let cut = RateProfile::from_bins(2 * SECOND, [1.0, 2.0, 3.0]).unwrap().cut(3 * SECOND).unwrap();
        assert_eq!(cut.length(), 3 * SECOND);
        assert_eq!(cut.expected_arrivals(), 4.0);
        assert_eq!(RateProfile::constant(1.0, SECOND).unwrap().cut(9 * SECOND).unwrap().length(), SECOND);
    }

    #[test]
    fn a_slope_is_cut_squeezed_and_scaled_like_a_line() {
        let slope = Segment { length: 10 * SECOND, from_per_s: 0.0, to_per_s: 100.0 };
        let profile = RateProfile::new([slope]).unwrap();
        assert_eq!(
            (profile.expected_arrivals(), profile.mean_rate(), profile.peak_rate()),
            (500.0, 50.0, 100.0)
        );
        let cut = profile.clone().cut(4 * SECOND).unwrap();
        assert_eq!(cut.segments(), [Segment { length: 4 * SECOND, from_per_s: 0.0, to_per_s: 40.0 }]);
        let squeezed = profile.clone().squeeze(5.0).unwrap();
        assert_eq!((squeezed.rate_at(SECOND), squeezed.expected_arrivals()), (250.0, 500.0));
        assert_eq!(profile.clone().peak(10.0).unwrap().rate_at(5 * SECOND), 5.0);
        assert_eq!(profile.clone().cut(10 * SECOND).unwrap(), profile);
        let wrong = RateProfile::new([Segment { to_per_s: -1.0, ..slope }]);
        assert_eq!(wrong, Err(ProfileError::NotARate(-1.0)));
    }

    #[test]
    fn numbers_that_make_no_profile_are_refused() {
        assert_eq!(RateProfile::from_bins(SECOND, []), Err(ProfileError::Empty));
        assert_eq!(RateProfile::constant(1.0, Duration::ZERO), Err(ProfileError::Empty));
        assert_eq!(RateProfile::constant(-1.0, SECOND), Err(ProfileError::NotARate(-1.0)));
        let one = RateProfile::constant(1.0, SECOND).unwrap();
        assert_eq!(one.clone().peak(0.0), Err(ProfileError::NotAFactor(0.0)));
        assert_eq!(one.clone().squeeze(1e12), Err(ProfileError::Squeezed(1e12)));
        assert!(matches!(one.clone().scale(f64::NAN), Err(ProfileError::NotAFactor(_))));
        assert!(matches!(one.scale(1e300).unwrap().scale(1e300), Err(ProfileError::NotARate(_))));
        assert_eq!(RateProfile::constant(0.0, SECOND).unwrap().peak(5.0), Err(ProfileError::NoPeak));
    }

    proptest! {
        #[test]
        fn then_adds_lengths_and_arrivals(
            first in proptest::collection::vec(0.0..1e4f64, 1..9),
            second in proptest::collection::vec(0.0..1e4f64, 1..9),
        ) {
            let first = RateProfile::from_bins(SECOND, first).unwrap();
            let second = RateProfile::from_bins(3 * SECOND, second).unwrap();
            let both = first.clone().then(second.clone());
            prop_assert_eq!(both.length(), first.length() + second.length());
            let sum = first.expected_arrivals() + second.expected_arrivals();
            prop_assert!((both.expected_arrivals() - sum).abs() < 1e-6);
        }
    }
}

//! Shapes of a crowd that are built of straight lines: a ramp, and a spike that dies away.

use crate::profile::{ProfileError, RateProfile, Segment};
use std::time::Duration;

/// Straight pieces for each half-life of a spike. A chord of c·2^(−t/half-life) is off by at most
/// c·(ln 2 / pieces)²/8: with 16 pieces 0.024 % of the height, which leaves the total 0.016 % too high.
const PIECES_PER_HALF_LIFE: u32 = 16;
/// Half-lives after which a spike counts as over: 2^−12 of its height is left, again 0.024 %.
const HALF_LIVES: u32 = 12;

impl RateProfile {
    /// The rate goes from one value to another along a straight line that takes `over`, then stays there
    /// until `length`. A ramp longer than `length` is cut there.
    ///
    /// ```
    /// use flashweir_workload::RateProfile;
    /// use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let ramp = RateProfile::ramp(0.0, 100.0, 10 * second, 15 * second)?;
    /// assert_eq!(ramp.rate_at(4 * second), 40.0);
    /// assert_eq!(ramp.rate_at(12 * second), 100.0);
    /// assert_eq!(ramp.expected_arrivals(), 10.0 * 50.0 + 5.0 * 100.0);
    /// # Ok::<(), flashweir_workload::ProfileError>(())
    /// ```
    ///
    /// # Errors
    /// A rate that is not one, or no length.
    pub fn ramp(
        from_per_s: f64,
        to_per_s: f64,
        over: Duration,
        length: Duration,
    ) -> Result<Self, ProfileError> {
        let slope = Segment { length: over, from_per_s, to_per_s };
        Self::new([slope, Segment::constant(length.saturating_sub(over), to_per_s)])?.cut(length)
    }

    /// A flash crowd's outline: `base_per_s`, at `at` a jump to `peak_per_s`, and from there back to the base
    /// exponentially: of the people above the base, half are left after each `half_life`.
    ///
    /// The decay is made of straight pieces, 16 for each half-life, and ends after 12 half-lives: the rate is
    /// nowhere more than 0.025 % of the height above the base away from the exponential. (A decay given by
    /// its time constant τ has the half-life τ·ln 2.)
    ///
    /// ```
    /// use flashweir_workload::RateProfile;
    /// use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let spike = RateProfile::spike(100.0, 900.0, 5 * second, 2 * second, 60 * second)?;
    /// assert_eq!(spike.rate_at(4 * second), 100.0);
    /// assert_eq!(spike.rate_at(5 * second), 900.0);
    /// assert_eq!(spike.rate_at(7 * second), 500.0);
    /// assert_eq!(spike.rate_at(59 * second), 100.0);
    /// # Ok::<(), flashweir_workload::ProfileError>(())
    /// ```
    ///
    /// # Errors
    /// A rate that is not one, no length, or a half-life below 16 ns.
    pub fn spike(
        base_per_s: f64,
        peak_per_s: f64,
        at: Duration,
        half_life: Duration,
        length: Duration,
    ) -> Result<Self, ProfileError> {
        let piece = half_life / PIECES_PER_HALF_LIFE;
        if piece.is_zero() {
            return Err(ProfileError::NoHalfLife);
        }
        let at = at.min(length);
        let rate_after = |pieces: u32| {
            let half_lives = f64::from(pieces) / f64::from(PIECES_PER_HALF_LIFE);
            base_per_s + (peak_per_s - base_per_s) * libm::exp2(-half_lives)
        };
        let pieces = PIECES_PER_HALF_LIFE * HALF_LIVES;
        let decay = (0..pieces).map(|index| Segment {
            length: piece,
            from_per_s: rate_after(index),
            to_per_s: rate_after(index + 1),
        });
        // Adding up rather than multiplying: a half-life of centuries must not overflow before it is cut.
        let decay = decay.scan(length - at, |left, segment| {
            let piece = (!left.is_zero()).then_some(segment);
            *left = left.saturating_sub(segment.length);
            piece
        });
        let mut segments = vec![Segment::constant(at, base_per_s)];
        segments.extend(decay);
        let decayed = (length - at).saturating_sub(piece.saturating_mul(pieces));
        segments.push(Segment::constant(decayed, base_per_s));
        Self::new(segments)?.cut(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_ramp_may_fall_be_steep_or_never_end() {
        let falling = RateProfile::ramp(80.0, 0.0, 4 * SECOND, 6 * SECOND).unwrap();
        assert_eq!((falling.rate_at(SECOND), falling.rate_at(5 * SECOND)), (60.0, 0.0));
        assert_eq!((falling.length(), falling.expected_arrivals()), (6 * SECOND, 160.0));
        let jump = RateProfile::ramp(1.0, 9.0, Duration::ZERO, SECOND).unwrap();
        assert_eq!(jump.segments(), [Segment::constant(SECOND, 9.0)]);
        let cut = RateProfile::ramp(0.0, 100.0, 10 * SECOND, 3 * SECOND).unwrap();
        assert_eq!(cut.segments(), [Segment { length: 3 * SECOND, from_per_s: 0.0, to_per_s: 30.0 }]);
    }

    #[test]
    fn a_spike_is_nowhere_far_from_the_exponential() {
        let (base, peak, half_life) = (50.0, 1050.0, 1.7);
        let spike =
            RateProfile::spike(base, peak, 3 * SECOND, Duration::from_secs_f64(half_life), 40 * SECOND)
                .unwrap();
        assert_eq!(spike.length(), 40 * SECOND);
        for step in 0..36_999 {
            let after = Duration::from_millis(step);
            let wanted = base + (peak - base) * (-after.as_secs_f64() / half_life).exp2();
            let found = spike.rate_at(3 * SECOND + after);
            assert!((found - wanted).abs() < 0.000_25 * (peak - base), "{found} at {after:?}, not {wanted}");
        }
        let total = 40.0 * base + (peak - base) * half_life / std::f64::consts::LN_2;
        assert!((spike.expected_arrivals() / total - 1.0).abs() < 0.001);
    }

    #[test]
    fn a_spike_is_cut_wherever_the_run_ends() {
        let spike = |at: Duration, half_life: Duration| {
            RateProfile::spike(10.0, 90.0, at, half_life, 5 * SECOND)
                .map(|spike| (spike.length(), spike.peak_rate()))
        };
        assert_eq!(spike(SECOND, 4 * SECOND), Ok((5 * SECOND, 90.0)));
        assert_eq!(spike(SECOND, Duration::MAX), Ok((5 * SECOND, 90.0)));
        assert_eq!(spike(9 * SECOND, SECOND), Ok((5 * SECOND, 10.0)));
        assert_eq!(spike(SECOND, Duration::ZERO), Err(ProfileError::NoHalfLife));
    }
}

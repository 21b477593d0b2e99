//! Work and progress in whole numbers, so that no event time ever depends on how floats are rounded.
//!
//! Work is counted in 2⁻¹² ns of processor time, speeds in 2⁻³² (1 is a processor to oneself). Progress
//! within a stretch of time is rounded down to a unit, the moment at which something is done up to a
//! nanosecond: an event at that moment finds it done.

use flashweir_core::Duration;

/// Processor time, 2⁻¹² ns. A week of it takes 2⁶¹.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Units(u64);

/// Progress per time, 2⁻³². Several processors together may make more than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed(u64);

const UNIT_BITS: u32 = 12;
const SPEED_BITS: u32 = 32;
/// From nanoseconds times speed to units.
const SHIFT: u32 = SPEED_BITS - UNIT_BITS;

impl Units {
    pub(super) const ZERO: Self = Self(0);

    pub(super) fn of(work: Duration) -> Self {
        // Work is at most a day (2⁴⁷ ns), so nothing is lost.
        Self((work.as_nanos() as u64) << UNIT_BITS)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Subtracts `other`; zero if that is more.
    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Time that this takes at `speed`, in whole nanoseconds, rounded up.
    pub(super) fn nanos_at(self, speed: Speed) -> u64 {
        // The quick division suffices for up to four seconds of work.
        if self.0 >> (u64::BITS - SHIFT) == 0 {
            return (self.0 << SHIFT).div_ceil(speed.0);
        }
        let nanos = (u128::from(self.0) << SHIFT).div_ceil(u128::from(speed.0));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

impl Speed {
    /// Full speed divided by `slowdown` (1 or more), to the nearest step; never quite zero.
    pub(super) fn slowed(slowdown: f64) -> Self {
        // Saturates; a slowdown that is no number is none.
        let speed = ((1u64 << SPEED_BITS) as f64 / slowdown.max(1.0) + 0.5) as u64;
        Self(speed.max(1))
    }

    /// The speed of each of `sharers` on `processors`: a request uses one at most.
    pub(super) fn shared(self, processors: u32, sharers: usize) -> Self {
        let sharers = sharers as u64;
        if sharers <= u64::from(processors) {
            return self;
        }
        // At most 2³² · 2¹⁶, so it fits.
        Self((self.0 * u64::from(processors) / sharers).max(1))
    }

    /// All processors together.
    pub(super) fn times(self, processors: u32) -> Self {
        Self(self.0 * u64::from(processors))
    }

    /// Work done in `nanos` nanoseconds, rounded down.
    pub(super) fn done_in(self, nanos: u64) -> Units {
        // A week at the speed of 2¹⁶ processors would not fit; its owner never lets that much pass at once.
        Units(u64::try_from((u128::from(nanos) * u128::from(self.0)) >> SHIFT).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn speeds_are_shares() {
        let second = 1_000_000_000;
        assert_eq!(Speed::slowed(1.0).shared(2, 2).done_in(second), Units::of(Duration::from_secs(1)));
        assert_eq!(Speed::slowed(1.0).shared(2, 4).done_in(second), Units::of(Duration::from_millis(500)));
        assert_eq!(Speed::slowed(4.0).done_in(second), Units::of(Duration::from_millis(250)));
        assert_eq!(Speed::slowed(f64::NAN), Speed::slowed(1.0));
        assert_eq!(Units::of(Duration::from_secs(60)).nanos_at(Speed::slowed(2.0)), 120 * second);
    }

    proptest! {
        /// Work is done at the computed moment, and not a nanosecond earlier.
        #[test]
        fn the_moment_told_is_the_first_at_which_it_is_done(
            nanos in 1u64..100_000_000_000, processors in 1u32..64, sharers in 1usize..10_000, slow in 1.0f64..1e4,
        ) {
            let work = Units::of(Duration::from_nanos(nanos));
            let speed = Speed::slowed(slow).shared(processors, sharers);
            let needed = work.nanos_at(speed);
            prop_assert!(speed.done_in(needed) >= work);
            prop_assert!(speed.done_in(needed - 1) < work);
        }
    }
}

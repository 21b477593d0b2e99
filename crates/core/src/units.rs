//! Rates a gate can use without floats.

use core::fmt;

/// Events per second, held as whole thousandths: fractional rates stay exact and gates stay integer.
///
/// ```
/// use flashweir_core::Rate;
/// assert_eq!(Rate::from_per_second(2.5).as_milli(), 2_500);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// No events at all.
    pub const ZERO: Self = Self(0);
    /// The fastest rate a bucket can be given: a billion a second, beyond any machine and far from overflow.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// From thousandths of an event per second, capped at [`Rate::MAX`].
    #[must_use]
    pub const fn from_milli(milli_per_second: u64) -> Self {
        if milli_per_second > Self::MAX.0 { Self::MAX } else { Self(milli_per_second) }
    }

    /// From events per second, rounded to the nearest thousandth; negative and NaN become zero.
    #[must_use]
    pub fn from_per_second(per_second: f64) -> Self {
        // `as` saturates and maps NaN to zero, which is the documented behaviour wanted here.
        Self::from_milli((per_second * 1_000.0 + 0.5) as u64)
    }

    /// Thousandths of an event per second.
    #[must_use]
    pub const fn as_milli(self) -> u64 {
        self.0
    }

    /// Events per second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}/s", self.per_second())
    }
}

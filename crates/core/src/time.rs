//! A point in time that the caller measured.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// Nanoseconds since an origin the caller chose (process start, simulation start). 584 years fit.
///
/// Arithmetic saturates: a clock that steps backwards gives a zero duration, never a panic or a wrap.
///
/// ```
/// use flashweir_core::{Duration, Instant};
/// let start = Instant::from_millis(10);
/// let later = start + Duration::from_millis(5);
/// assert_eq!(later.saturating_since(start), Duration::from_millis(5));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin itself.
    pub const ZERO: Self = Self(0);
    /// Later than any instant a program reaches: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// From milliseconds since the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// From seconds since the origin.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// From a duration since the origin.
    #[must_use]
    pub fn from_duration(since_origin: Duration) -> Self {
        Self(nanos_u64(since_origin))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, for planners and reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos_u64(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_u64(rhs)))
    }
}

fn nanos_u64(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

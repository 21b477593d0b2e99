//! The one place that names a clock: everything else is handed an `Instant`.

use flashweir_core::Instant;
use std::time::{Instant as SystemInstant, SystemTime};

/// Monotonic time since the process's control thread started. Copies share the origin, so their instants
/// compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: SystemInstant,
}

impl Clock {
    /// Starts counting now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// Nanoseconds since the start; one `clock_gettime`, about 22 ns.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }

    /// The tokio instant of the same moment, for timers.
    #[must_use]
    pub fn timer_at(&self, at: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + at.saturating_since(Instant::ZERO))
    }
}

/// Milliseconds since 1970, for numbers that are to be larger after a restart. Zero before 1970.
#[must_use]
pub fn unix_millis_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Seconds since 1970, for what leaves the process (state file, explanations). Zero before 1970.
#[must_use]
pub fn unix_seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

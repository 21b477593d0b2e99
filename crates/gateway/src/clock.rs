//! The one place in the gateway that names a clock: everything else is handed an `Instant`.

use flashweir_core::Instant;
use std::time::{Instant as SystemInstant, SystemTime};

/// Monotonic time since the process's gateway started. Copies share the origin, so their instants compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
}

impl Clock {
    /// Starts counting now.
    pub(crate) fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// Nanoseconds since the start; one `clock_gettime`, about 22 ns.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }

    /// The tokio instant of the same moment, for timers.
    pub(crate) fn timer_at(&self, at: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + at.saturating_since(Instant::ZERO))
    }
}

/// Seconds since 1970, for what leaves the process (state file, explanations). Zero before 1970.
pub(crate) fn unix_seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

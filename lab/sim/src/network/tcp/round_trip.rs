//! The retransmission timeout (RFC 6298), in whole nanoseconds.

use super::{TcpSettings, TimeoutFloor};
use flashweir_core::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// Smoothed round trip and its mean deviation; nothing measured yet while the first is zero.
    smoothed_ns: u64,
    deviation_ns: u64,
    timeout_ns: u64,
    /// Timeouts in a row: each doubles the timeout (§5.5).
    doublings: u32,
}

impl RoundTrip {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        let timeout_ns = settings.timeout_initial.as_nanos() as u64;
        Self { smoothed_ns: 0, deviation_ns: 0, timeout_ns, doublings: 0 }
    }

    /// One round trip of a segment that was sent once (Karn: the others tell nothing), §2.2 and §2.3.
    pub(super) fn measured(&mut self, sample: Duration, settings: &TcpSettings) {
        let sample_ns = (sample.as_nanos() as u64).max(1);
        if self.smoothed_ns == 0 {
            self.smoothed_ns = sample_ns;
            self.deviation_ns = sample_ns / 2;
        } else {
            self.deviation_ns = (3 * self.deviation_ns + self.smoothed_ns.abs_diff(sample_ns)) / 4;
            self.smoothed_ns = (7 * self.smoothed_ns + sample_ns) / 8;
        }
        let margin_ns = (4 * self.deviation_ns).max(GRANULARITY_NS);
        let floor_ns = settings.timeout_min.as_nanos() as u64;
        let timeout_ns = match settings.timeout_floor {
            TimeoutFloor::Timeout => (self.smoothed_ns + margin_ns).max(floor_ns),
            TimeoutFloor::Margin => self.smoothed_ns + margin_ns.max(floor_ns),
        };
        self.timeout_ns = timeout_ns.min(settings.timeout_max.as_nanos() as u64);
    }

    /// The handshake itself was repeated, so it measured nothing: §5.7 starts data with three seconds.
    pub(super) fn handshake_repeated(&mut self) {
        self.timeout_ns = self.timeout_ns.max(TIMEOUT_AFTER_REPEATED_SYN_NS);
    }

    pub(super) fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1);
    }

    pub(super) fn progress(&mut self) {
        self.doublings = 0;
    }

    pub(super) fn timeouts_in_a_row(&self) -> u32 {
        self.doublings
    }

    pub(super) fn timeout(&self, settings: &TcpSettings) -> Duration {
        doubled(Duration::from_nanos(self.timeout_ns), self.doublings, settings.timeout_max)
    }
}

/// `timeout` doubled `doublings` times (at most 16), up to `max`.
pub(super) fn doubled(timeout: Duration, doublings: u32, max: Duration) -> Duration {
    timeout.saturating_mul(1 << doublings.min(16)).min(max)
}

/// The clock granularity G of RFC 6298: a millisecond, as today's stacks have.
const GRANULARITY_NS: u64 = 1_000_000;
const TIMEOUT_AFTER_REPEATED_SYN_NS: u64 = 3_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The arithmetic of RFC 6298 §2 by hand.
    #[test]
    fn follows_the_rfc() {
        let settings = TcpSettings { timeout_min: Duration::from_millis(1), ..TcpSettings::modern() };
        let mut round_trip = RoundTrip::new(&settings);
        assert_eq!(round_trip.timeout(&settings), Duration::from_secs(1));
        round_trip.measured(Duration::from_millis(100), &settings);
        // SRTT 100, RTTVAR 50: 100 + 4 · 50.
        assert_eq!(round_trip.timeout(&settings), Duration::from_millis(300));
        round_trip.measured(Duration::from_millis(180), &settings);
        // RTTVAR (3 · 50 + 80) / 4 = 57.5, SRTT (7 · 100 + 180) / 8 = 110: 110 + 4 · 57.5.
        assert_eq!(round_trip.timeout(&settings), Duration::from_millis(340));
        round_trip.back_off();
        round_trip.back_off();
        assert_eq!(round_trip.timeout(&settings), Duration::from_millis(1_360));
        round_trip.progress();
        assert_eq!(round_trip.timeout(&settings), Duration::from_millis(340));
    }

    #[test]
    fn a_floor_of_the_margin_lies_above_the_round_trip() {
        let settings = TcpSettings::modern();
        let mut round_trip = RoundTrip::new(&settings);
        for _ in 0..100 {
            round_trip.measured(Duration::from_millis(300), &settings);
        }
        assert_eq!(round_trip.timeout(&settings), Duration::from_millis(500));
    }

    #[test]
    fn keeps_its_floor_and_ceiling() {
        let settings = TcpSettings::of_2003();
        let mut round_trip = RoundTrip::new(&settings);
        round_trip.measured(Duration::from_millis(10), &settings);
        assert_eq!(round_trip.timeout(&settings), Duration::from_secs(1));
        for _ in 0..100 {
            round_trip.back_off();
        }
        assert_eq!(round_trip.timeout(&settings), Duration::from_secs(64));
    }
}

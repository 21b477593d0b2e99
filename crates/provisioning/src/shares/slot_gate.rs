//! A share of slots that is no whole number.
//!
//! A hundred slots over sixteen gateways are six and a quarter each. Rounded down, sixteen slots of the limit
//! stay idle, and a gateway with less than one never admits; rounded up, the limit is exceeded. So the share
//! is kept as a mean: the gate accounts for the slot-seconds by which less than the share was in flight, and
//! admits one request more than the whole part while it has some. At no time more than the share rounded up.
//! **Cost** O(1), 24 bytes.

use flashweir_core::Instant;

/// Slot-seconds that a gate saves at most: after a quiet time one request more for some seconds, not a burst.
const SAVED_MAX_S: f64 = 1.0;
/// And owes at most, when its share shrinks under requests in flight.
const OWED_MAX_S: f64 = 10.0;

/// Keeps the mean number of requests in flight at a share.
#[derive(Clone, Debug, Default)]
pub struct SlotGate {
    /// Slot-seconds by which less than the share was in flight.
    saved_s: f64,
    accounted: Instant,
}

impl SlotGate {
    /// Accounts for the time since the last call, in which `in_flight` requests were in flight. To be called
    /// before every change of that number and of the share.
    pub fn account(&mut self, now: Instant, in_flight: u32, share: f64) {
        let seconds = now.saturating_since(self.accounted).as_secs_f64();
        self.accounted = self.accounted.max(now);
        self.saved_s =
            (self.saved_s + (share - f64::from(in_flight)) * seconds).clamp(-OWED_MAX_S, SAVED_MAX_S);
    }

    /// Returns whether one more request may be admitted beside `in_flight` others. The caller has accounted
    /// for the time until now.
    #[must_use]
    pub fn admits(&self, in_flight: u32, share: f64) -> bool {
        let next = f64::from(in_flight) + 1.0;
        next <= share || (next < share + 1.0 && self.saved_s > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the mean in flight is the share, for any length of requests. Method: as many requests as the
    /// gate admits, of three lengths.
    #[test]
    fn the_mean_in_flight_is_the_share() {
        for share in [0.25, 0.9, 2.0, 6.4] {
            for length in [3u64, 40, 700] {
                let mut gate = SlotGate::default();
                let mut ends: Vec<u64> = Vec::new();
                let mut slot_ms = 0u64;
                const LENGTH_MS: u64 = 200_000;
                for now_ms in 1..=LENGTH_MS {
                    slot_ms += ends.len() as u64;
                    gate.account(Instant::from_millis(now_ms), ends.len() as u32, share);
                    ends.retain(|&end| end > now_ms);
                    while gate.admits(ends.len() as u32, share) {
                        ends.push(now_ms + length + (ends.len() as u64 * 7) % 5);
                        assert!((ends.len() as f64) < share + 1.0);
                    }
                }
                let mean = slot_ms as f64 / LENGTH_MS as f64;
                assert!((mean / share - 1.0).abs() < 0.03, "{share} slots, {length} ms: {mean}");
            }
        }
    }

    #[test]
    fn no_share_admits_nothing() {
        let mut gate = SlotGate::default();
        gate.account(Instant::from_secs(100), 0, 0.0);
        assert!(!gate.admits(0, 0.0));
    }
}

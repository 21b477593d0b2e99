//! Back-off before the API server is asked again. No I/O.

use flashweir_core::{Duration, Rng};

/// The first wait: short, since most failures are one lost request.
const FIRST: Duration = Duration::from_millis(500);
/// The longest: a server that is back is noticed within it.
const LONGEST: Duration = Duration::from_secs(30);
/// Doublings until the longest.
const DOUBLINGS_MAX: u32 = 6;

/// Failures in a row.
#[derive(Debug)]
pub struct BackOff {
    failures: u32,
    longest: Duration,
    rng: Rng,
}

impl BackOff {
    /// None yet; `seed` spreads the waits of several controllers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::up_to(seed, LONGEST)
    }

    /// As [`BackOff::new`], with another longest wait.
    #[must_use]
    pub fn up_to(seed: u64, longest: Duration) -> Self {
        Self { failures: 0, longest, rng: Rng::new(seed) }
    }

    /// One more. The wait: half of the doubled time for sure, the other half at random, so that many clients
    /// do not return together.
    pub fn failed(&mut self) -> Duration {
        let doublings = self.failures.min(DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        let whole = (FIRST * (1 << doublings)).min(self.longest);
        whole.mul_f64(0.5 + self.rng.unit_f64() / 2.0)
    }

    /// The server has answered. Whether it had failed before.
    pub fn succeeded(&mut self) -> bool {
        core::mem::take(&mut self.failures) > 0
    }

    /// Returns whether the last attempt failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_again() {
        let mut back_off = BackOff::new(1);
        let mut whole_ms = 500;
        for _ in 0..20 {
            let wait_ms = back_off.failed().as_millis();
            assert!(wait_ms >= whole_ms / 2 && wait_ms <= whole_ms, "{wait_ms} of {whole_ms}");
            whole_ms = (whole_ms * 2).min(30_000);
        }
        assert!(back_off.is_failing() && back_off.succeeded() && !back_off.succeeded());
        assert!(back_off.failed() <= FIRST);
    }
}

//! Requests a second that arrive for a node, before any limit.

use flashweir_core::{Duration, Instant, Rate};

/// An exponential average. The memory is one second: what a limit's floor and its opening refer to is what
/// arrives now.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfferedRate {
    per_s: f64,
    at: Instant,
}

/// Time in which the weight of an arrival falls to 1/e.
const MEMORY: Duration = Duration::from_secs(1);

impl OfferedRate {
    /// A request arrives.
    pub fn arrive(&mut self, now: Instant) {
        self.per_s = self.per_s_at(now) + 1.0 / MEMORY.as_secs_f64();
        self.at = now.max(self.at);
    }

    /// The rate now.
    #[must_use]
    pub fn rate(&self, now: Instant) -> Rate {
        Rate::from_per_second(self.per_s_at(now))
    }

    fn per_s_at(&self, now: Instant) -> f64 {
        let age = now.saturating_since(self.at);
        self.per_s * libm::exp(-age.as_secs_f64() / MEMORY.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
        let mut offered = OfferedRate::default();
        assert_eq!(offered.rate(Instant::from_secs(5)), Rate::ZERO);
        for number in 0..500 {
            offered.arrive(Instant::from_millis(number * 10));
        }
        let rate = offered.rate(Instant::from_secs(5)).per_second();
        assert!((rate - 100.0).abs() < 2.0, "{rate}");
        assert!(offered.rate(Instant::from_secs(15)).per_second() < 0.01);
        let before = offered.rate(Instant::from_secs(5));
        offered.arrive(Instant::ZERO);
        assert!(offered.rate(Instant::from_secs(5)) > before, "a clock that steps back forgets nothing");
    }
}

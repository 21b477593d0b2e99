//! Felber's three thresholds: copy before it is necessary, redirect when it is, and stop with hysteresis.
//!
//! ```text
//! NORMAL ──ia < T_C──► COPYING ──ia < T_R──► REDIRECTING ──ia > T_S──► NORMAL         T_S > T_C > T_R
//!                      COPYING ──ia > T_S──► NORMAL  (not in the thesis; without it a copying site never calms down)
//! ```
//!
//! Felber, Kaldewey and Weiss (SRDS 2004), as described by Esser §2.4. `ia` is the mean inter-arrival time;
//! as published a moving average for each arrival. That average is biased by bursts, and it stands still when
//! arrivals stop. Here it is the inverse of a decayed rate, which falls with time: [`Felber::phase_at`] sees
//! an end of arrivals without an arrival.
//!
//! The values of the thresholds are not in the sources; the defaults are those of HW = 300/s: copy at 80 % of
//! it, redirect at it, stop at a third.

use crate::SettingsError;
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Duration, Instant};

/// Inter-arrival times at which the phase changes; service > copy > redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FelberThresholds {
    /// T_C: below it documents are copied.
    pub copy: Duration,
    /// T_R: below it requests are redirected.
    pub redirect: Duration,
    /// T_S: above it the site serves alone again.
    pub service: Duration,
}

impl Default for FelberThresholds {
    fn default() -> Self {
        let of_rate = |per_s: u64| Duration::from_nanos(1_000_000_000 / per_s);
        Self { copy: of_rate(240), redirect: of_rate(300), service: of_rate(100) }
    }
}

/// Phase of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FelberPhase {
    /// Serves alone.
    Normal,
    /// Copies popular documents; requests are not redirected yet.
    Copying,
    /// Redirects requests to the copies.
    Redirecting,
}

/// One site's phase. O(1) for each arrival, about 0.6 kB.
#[derive(Clone, Debug)]
pub struct Felber {
    thresholds: FelberThresholds,
    arrivals: DecayedCounters,
    phase: FelberPhase,
}

impl Felber {
    /// In the normal phase; `tau` is the memory of the rate (1 s:
    /// [`COUNTER_TAU`](crate::distribution::COUNTER_TAU)).
    ///
    /// # Errors
    /// [`SettingsError`] unless service > copy > redirect > 0.
    pub fn new(thresholds: FelberThresholds, tau: Duration) -> Result<Self, SettingsError> {
        let FelberThresholds { copy, redirect, service } = thresholds;
        if !(service > copy && copy > redirect && redirect > Duration::ZERO) {
            return Err(SettingsError::new("Felber's thresholds", "service > copy > redirect > 0"));
        }
        Ok(Self { thresholds, arrivals: DecayedCounters::new(1, tau), phase: FelberPhase::Normal })
    }

    /// An arrival, and the phase it finds.
    pub fn arrive(&mut self, now: Instant) -> FelberPhase {
        self.arrivals.add(now, 0);
        self.phase_at(now)
    }

    /// The phase now; may be called at any time, with or without arrivals.
    pub fn phase_at(&mut self, now: Instant) -> FelberPhase {
        let rate_rps = self.arrivals.rate_rps(now, 0);
        let is_below = |threshold: Duration| rate_rps * threshold.as_secs_f64() > 1.0;
        let FelberThresholds { copy, redirect, service } = self.thresholds;
        self.phase = match self.phase {
            _ if is_below(redirect) => FelberPhase::Redirecting,
            FelberPhase::Normal if is_below(copy) => FelberPhase::Copying,
            FelberPhase::Copying | FelberPhase::Redirecting if !is_below(service) => FelberPhase::Normal,
            phase => phase,
        };
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each transition happens at its rate and the end of arrivals is seen. Method: even arrivals,
    /// five seconds at each rate.
    #[test]
    fn phases_follow_the_rate_with_hysteresis() {
        let mut felber = Felber::new(FelberThresholds::default(), Duration::from_secs(1)).unwrap();
        let mut now = Instant::ZERO;
        for (rate, expected) in [
            (200, FelberPhase::Normal),
            (270, FelberPhase::Copying),
            (150, FelberPhase::Copying),
            (330, FelberPhase::Redirecting),
            (120, FelberPhase::Redirecting),
            (80, FelberPhase::Normal),
            (270, FelberPhase::Copying),
            (80, FelberPhase::Normal),
        ] {
            for _ in 0..5 * rate {
                now += Duration::from_nanos(1_000_000_000 / rate);
                felber.arrive(now);
            }
            assert_eq!(felber.phase_at(now), expected, "at {rate}/s");
        }
        for _ in 0..2_000 {
            now += Duration::from_millis(2);
            felber.arrive(now);
        }
        assert_eq!(felber.phase_at(now), FelberPhase::Redirecting);
        assert_eq!(felber.phase_at(now + Duration::from_secs(4)), FelberPhase::Normal);
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_refused() {
        let wrong = FelberThresholds { service: Duration::from_millis(1), ..FelberThresholds::default() };
        let error = Felber::new(wrong, Duration::from_secs(1)).unwrap_err();
        assert_eq!(
            alloc::format!("{error}"),
            "Felber's thresholds out of range: expected service > copy > redirect > 0"
        );
    }
}

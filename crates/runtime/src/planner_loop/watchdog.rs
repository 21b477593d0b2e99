//! Detection of failed planners, and the time at which one may start again. No clock in here: times are
//! arguments.

use flashweir_core::{Duration, Instant};
use std::fmt;

/// A plan takes microseconds; one that takes this long is late for every decision, and the next may never
/// come.
pub const PLAN_TIME_MAX: Duration = Duration::from_secs(1);
/// A planner that is asked this many times, over this many of its intervals, and gives no new plan gives none
/// any more.
pub const ASKS_UNANSWERED_MAX: u32 = 10;
/// Nor is one silent before this time is over, however short its interval.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// A fault that comes this long after the last one is the first of a new series.
const SERIES_ENDS_AFTER: Duration = Duration::from_secs(60);
/// The first restart of a series is immediate, the second waits this long, each further one twice as long as
/// the last.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The longest wait for a restart.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(32);

/// Fault of a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It panicked, with this message.
    Panicked(String),
    /// One plan took this long.
    Slow(Duration),
    /// It gave no new plan for this long.
    Silent(Duration),
    /// The clock went back by this much, so that its memory lies in the future.
    ClockWentBack(Duration),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "panicked ({message})"),
            Self::Slow(took) => write!(f, "took {:.1} s for one plan", took.as_secs_f64()),
            Self::Silent(time) => write!(f, "gave no plan for {:.1} s", time.as_secs_f64()),
            Self::ClockWentBack(by) => {
                write!(f, "lives in the future since the clock went back by {:.1} s", by.as_secs_f64())
            }
        }
    }
}

/// Watches one planner.
#[derive(Debug)]
pub(super) struct Watchdog {
    last_plan_at: Instant,
    asks_unanswered: u32,
    /// Faults of the present series, and when the last one was.
    faults: u32,
    fault_at: Instant,
}

impl Watchdog {
    /// The planner starts now.
    pub(super) fn new(now: Instant) -> Self {
        Self { last_plan_at: now, asks_unanswered: 0, faults: 0, fault_at: now }
    }

    /// The planner starts again now, or the clock does.
    pub(super) fn restart(&mut self, now: Instant) {
        self.last_plan_at = now;
        self.asks_unanswered = 0;
    }

    /// The planner was asked at `now`, needed `took`, and gave a new plan or not. Whether that is a fault.
    /// `interval` is the time between two plans of a planner that works.
    pub(super) fn asked(
        &mut self,
        now: Instant,
        took: Duration,
        is_new: bool,
        interval: Duration,
    ) -> Option<Fault> {
        if took > PLAN_TIME_MAX {
            return Some(Fault::Slow(took));
        }
        if is_new {
            self.restart(now);
            return None;
        }
        self.asks_unanswered = self.asks_unanswered.saturating_add(1);
        let silent_for = now.saturating_since(self.last_plan_at);
        let silence_max = SILENCE_MIN.max(interval.saturating_mul(ASKS_UNANSWERED_MAX));
        (self.asks_unanswered >= ASKS_UNANSWERED_MAX && silent_for >= silence_max)
            .then_some(Fault::Silent(silent_for))
    }

    /// The planner failed at `now`; when it may start again.
    pub(super) fn failed(&mut self, now: Instant) -> Instant {
        let in_series = self.faults > 0 && now.saturating_since(self.fault_at) < SERIES_ENDS_AFTER;
        self.faults = if in_series { self.faults.saturating_add(1) } else { 1 };
        self.fault_at = now;
        match self.faults {
            1 => now,
            // The delay stops growing long before the shift could overflow.
            again => now + (RESTART_DELAY * (1 << (again - 2).min(16))).min(RESTART_DELAY_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);
    const QUICK: Duration = Duration::from_micros(50);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_slow_plan_is_a_fault_even_if_it_is_new() {
        let mut watchdog = Watchdog::new(at(0));
        assert_eq!(watchdog.asked(at(100), PLAN_TIME_MAX, true, INTERVAL), None);
        let took = Duration::from_millis(1_001);
        assert_eq!(watchdog.asked(at(200), took, true, INTERVAL), Some(Fault::Slow(took)));
    }

    #[test]
    fn silence_counts_in_asks_and_in_time() {
        let mut watchdog = Watchdog::new(at(0));
        // Asked often: time decides.
        let mut ask = |millis| watchdog.asked(at(millis), QUICK, false, INTERVAL);
        assert!((1..100).all(|step| ask(step * 10).is_none()));
        assert_eq!(ask(1_000), Some(Fault::Silent(Duration::from_secs(1))));
        // A long pause without asks is no silence.
        let mut watchdog = Watchdog::new(at(0));
        assert!((0..9).all(|ask| watchdog.asked(at(60_000 + ask), QUICK, false, INTERVAL).is_none()));
        assert!(watchdog.asked(at(60_010), QUICK, false, INTERVAL).is_some());
        // A planner with a long interval is asked many times between two plans.
        let mut watchdog = Watchdog::new(at(0));
        let slow = Duration::from_secs(64);
        assert!((1..64).all(|second| watchdog.asked(at(second * 1_000), QUICK, false, slow).is_none()));
        assert_eq!(watchdog.asked(at(64_000), QUICK, true, slow), None);
    }

    #[test]
    fn restarts_of_a_planner_that_fails_again_wait_longer_and_longer() {
        let mut watchdog = Watchdog::new(at(0));
        let mut delays = (0..9).map(|_| watchdog.failed(at(5_000)).saturating_since(at(5_000)).as_secs());
        assert!(delays.by_ref().eq([0, 1, 2, 4, 8, 16, 32, 32, 32]));
        assert_eq!(watchdog.failed(at(65_000)), at(65_000), "a minute later it is a new series");
    }
}

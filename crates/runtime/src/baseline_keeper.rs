//! Keeps what a planner learned: in memory for a planner that is built again, in the state file for the next
//! process.

use crate::state_file::StateFile;
use flashweir_admission::flash_crowd::{Baseline, Mode};
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::Telemetry;
use std::sync::Arc;

/// A crash loses at most this much learning.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);
/// A planner that is built again loses at most this much. A baseline holds a few hundred numbers.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The baseline of one planner.
#[derive(Clone, Debug)]
pub struct BaselineKeeper {
    latest: Baseline,
    refresh_at: Instant,
    save_at: Instant,
}

impl BaselineKeeper {
    /// Begins with what an earlier planner learned.
    #[must_use]
    pub fn new(learned: Baseline, now: Instant) -> Self {
        Self { latest: learned, refresh_at: now, save_at: now + SAVE_INTERVAL }
    }

    /// The baseline learned so far, at most a second old.
    #[must_use]
    pub fn latest(&self) -> &Baseline {
        &self.latest
    }

    /// Takes over what the planner has learned, once a second. Whether it did.
    pub fn refresh(&mut self, now: Instant, learned: impl FnOnce() -> Baseline) -> bool {
        // A clock that went back does not stop it.
        let is_due = now >= self.refresh_at || self.refresh_at > now + REFRESH_INTERVAL;
        if is_due {
            self.refresh_at = now + REFRESH_INTERVAL;
            self.latest = learned();
        }
        is_due
    }

    /// Takes over what was learned until now.
    pub fn replace(&mut self, learned: Baseline) {
        self.latest = learned;
    }

    /// Returns whether it is time to save: now and then, and in quiet times only, for a crowd's baseline does
    /// not change.
    pub fn is_save_due(&mut self, now: Instant, mode: Mode) -> bool {
        let is_due = now >= self.save_at || self.save_at > now + SAVE_INTERVAL;
        if is_due && mode == Mode::Normal {
            self.save_at = now + SAVE_INTERVAL;
            return true;
        }
        false
    }

    /// Saves the baseline without blocking this thread: syncing to the disk takes long, and neither plans nor
    /// signs of life may wait for it. `telemetry` is where `holder` keeps the metrics.
    pub fn save_soon<H: Send + Sync + 'static>(
        &self,
        now: Instant,
        file: StateFile,
        holder: Arc<H>,
        telemetry: fn(&H) -> &Telemetry,
    ) {
        let baseline = self.latest.clone();
        tokio::task::spawn_blocking(move || file.save_or_tell(now, &baseline, telemetry(&holder)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_refreshed_each_second_and_saved_each_half_minute_of_quiet() {
        let mut keeper = BaselineKeeper::new(Baseline::default(), Instant::ZERO);
        let learned = |rps| Baseline { unique_offered_rps: Some(rps), ..Baseline::default() };
        let at = Instant::from_millis;
        assert!(keeper.refresh(at(0), || learned(1.0)));
        assert!(!keeper.refresh(at(999), || learned(2.0)));
        assert_eq!(keeper.latest(), &learned(1.0));
        assert!(keeper.refresh(at(1_000), || learned(3.0)));
        assert!(!keeper.is_save_due(at(29_999), Mode::Normal));
        assert!(!keeper.is_save_due(at(40_000), Mode::Alarm));
        assert!(keeper.is_save_due(at(50_000), Mode::Normal));
        assert!(!keeper.is_save_due(at(79_999), Mode::Normal));
        assert!(keeper.is_save_due(at(80_000), Mode::Normal));
    }

    #[test]
    fn a_clock_that_goes_back_stops_neither() {
        let mut keeper = BaselineKeeper::new(Baseline::default(), Instant::from_secs(3_600));
        assert!(keeper.refresh(Instant::from_secs(5), Baseline::default));
        assert!(keeper.is_save_due(Instant::from_secs(5), Mode::Normal));
        assert!(!keeper.is_save_due(Instant::from_secs(6), Mode::Normal));
    }
}

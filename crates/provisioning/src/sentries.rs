//! Number of sentries of an application, by the utilisation of their processors.
//!
//! **Published** (Cataclysm §4.2): above 80 % for 30 s, one more; below a lower threshold, one fewer, never
//! none. The paper does not give the lower threshold. **Repair S-1:** one more at a time follows no crowd
//! that doubles in a minute; the number is the one with which the measured work keeps each sentry at 60 %; at
//! once where one is above 80 %, and one more than that after 30 s in which one stays there, because a new
//! sentry has clients only when these look for sentries again. **Repair S-2:** one fewer only where the
//! others then stay below 60 %, for five minutes on end: the published rule, with any lower threshold above
//! half of the upper one, moves one sentry back and forth.

use crate::policy::Mode;
use crate::sample::SentryLoad;
use flashweir_core::limits::GATEWAYS;
use flashweir_core::{Duration, Instant};

/// Share of a processor above which another sentry is wanted (high_cpu).
const HIGH: f64 = 0.8;
/// Time for which it must be above, as published.
const HIGH_FOR: Duration = Duration::from_secs(30);
/// Share below which one is too many (low_cpu; ours, the paper has none).
const LOW: f64 = 0.25;
/// Time for which it must be below (ours).
const LOW_FOR: Duration = Duration::from_secs(300);
/// Sentries are gateways.
const COUNT_MAX: u32 = GATEWAYS as u32;
/// The share that the repaired number aims at.
const WANTED: f64 = 0.6;

/// The number of sentries of one application.
#[derive(Debug)]
pub(crate) struct SentryCount {
    mode: Mode,
    /// Planned; none until a load was seen.
    planned: Option<u32>,
    high_since: Option<Instant>,
    low_since: Option<Instant>,
}

impl SentryCount {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, planned: None, high_since: None, low_since: None }
    }

    /// The number from now on. Unknown or undefined load changes nothing.
    pub(crate) fn plan(&mut self, now: Instant, load: Option<SentryLoad>) -> u32 {
        let Some(load) = load.filter(|load| load.busiest.is_finite() && load.mean.is_finite()) else {
            return self.planned.unwrap_or(1);
        };
        let serving = load.count.min(COUNT_MAX);
        // A planner that was restarted goes on from what there is.
        let mut count = self.planned.unwrap_or(serving.max(1));
        // A sentry that was ordered and does not serve yet is no reason for another.
        if serving < count {
            self.high_since = None;
            return count;
        }
        let work = load.mean.clamp(0.0, 1.0) * f64::from(serving);
        let (is_high, is_low, wanted) = match self.mode {
            Mode::Published => (load.busiest > HIGH, load.busiest < LOW, serving + 1),
            Mode::Repaired => {
                // At most the count over 0.6, so it fits.
                let wanted = libm::ceil(work / WANTED) as u32;
                (load.busiest > HIGH, work < WANTED * f64::from(serving - serving.min(1)), wanted)
            }
        };
        let lasts = |since: &mut Option<Instant>, is_so: bool, time: Duration| {
            *since = is_so.then(|| since.unwrap_or(now));
            since.is_some_and(|since| now.saturating_since(since) >= time)
        };
        // Where the work of all needs no more of them, one is too busy only until clients have found the
        // others.
        let is_enough = self.mode == Mode::Repaired && wanted <= serving;
        let high_for = if self.mode == Mode::Published || is_enough { HIGH_FOR } else { Duration::ZERO };
        if lasts(&mut self.high_since, is_high, high_for) {
            (count, self.high_since) = (wanted.max(serving + 1).min(COUNT_MAX), None);
        }
        if lasts(&mut self.low_since, is_low && count > 1, LOW_FOR) {
            (count, self.low_since) = (count - 1, None);
        }
        self.planned = Some(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(count: u32, busy: f64) -> Option<SentryLoad> {
        Some(SentryLoad { count, busiest: busy, mean: busy })
    }

    /// Goal: one more after 30 s, one fewer after five minutes, never none, as published.
    #[test]
    fn published_sentries_come_one_by_one() {
        let mut sentries = SentryCount::new(Mode::Published);
        let mut at = |second, load| sentries.plan(Instant::from_secs(second), load);
        assert_eq!([0, 10, 29].map(|second| at(second, load(1, 0.9))), [1, 1, 1]);
        assert_eq!(at(30, load(1, 1.0)), 2);
        assert_eq!(at(90, load(1, 1.0)), 2, "it is on its way");
        assert_eq!((at(100, load(2, 0.81)), at(129, load(2, 0.79)), at(159, load(2, 0.9))), (2, 2, 2));
        assert_eq!((at(200, load(2, 0.1)), at(499, load(2, 0.1)), at(500, load(2, 0.1))), (2, 2, 1));
        assert_eq!((at(600, load(1, 0.0)), at(6_000, load(1, 0.0)), at(7_000, None)), (1, 1, 1));
    }

    /// Goal: the repaired number is right at once, and one fewer does not overload the others.
    #[test]
    fn repaired_sentries_come_together_and_do_not_sway() {
        let mut sentries = SentryCount::new(Mode::Repaired);
        let mut at = |second, load| sentries.plan(Instant::from_secs(second), load);
        assert_eq!(at(0, load(3, 1.0)), 5);
        assert_eq!((at(10, load(5, 0.55)), at(1_000, load(5, 0.55))), (5, 5), "four would be at 0.69");
        assert_eq!((at(1_010, load(5, 0.4)), at(1_309, load(5, 0.4)), at(1_310, load(5, 0.4))), (5, 5, 4));
        assert_eq!(at(1_320, load(5, f64::NAN)), 4);
        assert_eq!(at(1_330, load(u32::MAX, 1.0)), 4_096, "bounded");
        let mut uneven = SentryCount::new(Mode::Repaired);
        let mut at = |second, load| uneven.plan(Instant::from_secs(second), load);
        assert_eq!(at(0, load(1, 0.85)), 2);
        // Once it ordered one more with each plan until clients had moved.
        let first_has_all = Some(SentryLoad { count: 2, busiest: 0.9, mean: 0.45 });
        assert_eq!([1, 2, 10, 30].map(|second| at(second, first_has_all)), [2; 4]);
        assert_eq!((at(31, first_has_all), at(32, load(3, 0.3))), (3, 3), "they do not move");
        let mut restarted = SentryCount::new(Mode::Repaired);
        assert_eq!(restarted.plan(Instant::ZERO, load(4, 0.5)), 4);
    }
}

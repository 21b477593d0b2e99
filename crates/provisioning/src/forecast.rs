//! Forecast of the demand until ordered servers are up: from the same time on earlier days, and from the last
//! minutes.
//!
//! **The rule.** The forecast is today's level times growth. *Seasonal* growth is how demand grew on earlier
//! days from this time of day to the time in question, of which a quantile is taken, not the mean: with a
//! mean, every second morning is short of servers. The shape is taken from earlier days and the level from
//! today, because a Sunday has the shape of a Monday sooner than its level. *Trend* is the smallest of the
//! last three rises, and counts only if each is more than chance: a ramp rises every time, a step at most
//! twice (it may fall within a window), and to extend a step would order servers for a crowd that is half as
//! large again.
//!
//! **Published** (the paper withholds its forecast): the mean of the last minutes, for half an hour.
//!
//! **Cold start:** no earlier day, no seasonal growth. **Cost** O(days) for a forecast; 4 bytes for each bin
//! and day, 16 kB an application. Source: Cataclysm §4.1, ALGORITHMS repair of its forecast.

use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::{SEASON_BINS, SEASONS_REMEMBERED};
use flashweir_core::{Duration, Instant};

/// Mean demand by bin of the season, for the last seasons.
#[derive(Clone, Debug)]
pub struct SeasonalHistory {
    bin: Duration,
    /// [`SEASONS_REMEMBERED`] times [`SEASON_BINS`] rates, a ring by absolute bin; not a number where nothing
    /// was measured.
    rates_rps: Vec<f32>,
    open: Option<OpenBin>,
}

#[derive(Clone, Copy, Debug)]
struct OpenBin {
    number: u64,
    requests: f64,
    seconds: f64,
}

/// The quantile of earlier growths: with seven days, the second largest.
const GROWTH_QUANTILE: f64 = 0.8;
/// Growth beyond this is an earlier day's accident (an outage that ended).
const GROWTH_MAX: f64 = 4.0;
/// Below this rate a ratio of two bins is noise.
const RATE_MIN_RPS: f32 = 0.1;

impl SeasonalHistory {
    /// Of seasons of this length.
    #[must_use]
    pub fn new(season: Duration) -> Self {
        let bin = (season / SEASON_BINS as u32).max(Duration::from_millis(1));
        Self { bin, rates_rps: vec![f32::NAN; SEASON_BINS * SEASONS_REMEMBERED], open: None }
    }

    /// Takes requests that arrived in the time before `now`.
    pub fn observe(&mut self, now: Instant, requests: f64, span: Duration) {
        let number = self.number_of(now);
        if self.open.is_none_or(|open| open.number != number) {
            self.close(number);
        }
        if let Some(open) = &mut self.open {
            open.requests += requests;
            open.seconds += span.as_secs_f64();
        }
    }

    /// By how much demand grew on earlier seasons from this time to `horizon` later: a quantile of it,
    /// between 1 and 4; 1 where there is no earlier season.
    #[must_use]
    pub fn growth(&self, now: Instant, horizon: Duration) -> f64 {
        let mut growths = [0.0f64; SEASONS_REMEMBERED];
        let mut count = 0;
        let season = self.bin * SEASON_BINS as u32;
        for earlier in 1..SEASONS_REMEMBERED as u32 {
            let then = now - season * earlier;
            if now.saturating_since(then) < season * earlier {
                break;
            }
            let (Some(at), Some(later)) = (self.rate_at(then), self.rate_at(then + horizon)) else {
                continue;
            };
            growths[count] = f64::from(later / at);
            count += 1;
        }
        let growths = &mut growths[..count];
        growths.sort_by(f64::total_cmp);
        let place = libm::ceil(count as f64 * GROWTH_QUANTILE) as usize;
        growths.get(place.max(1) - 1).copied().unwrap_or(1.0).clamp(1.0, GROWTH_MAX)
    }

    /// On a straight line between the middles of bins; none where nothing was measured, or next to nothing.
    fn rate_at(&self, at: Instant) -> Option<f32> {
        let place = at.as_secs_f64() / self.bin.as_secs_f64() - 0.5;
        let before = place.max(0.0) as u64;
        let part = (place - before as f64).clamp(0.0, 1.0) as f32;
        let [one, other] = [before, before + 1].map(|number| self.rates_rps[self.slot(number)]);
        let rate_rps = one + (other - one) * part;
        Some(rate_rps).filter(|rate| *rate >= RATE_MIN_RPS)
    }

    /// Ends the open bin, forgets what is a whole memory old, and opens `number`.
    fn close(&mut self, number: u64) {
        if let Some(open) = self.open.take() {
            let slot = self.slot(open.number);
            self.rates_rps[slot] = (open.requests / open.seconds.max(1e-9)) as f32;
            let skipped = number.saturating_sub(open.number + 1).min(self.rates_rps.len() as u64);
            for between in 0..skipped {
                let slot = self.slot(open.number + 1 + between);
                self.rates_rps[slot] = f32::NAN;
            }
        }
        let slot = self.slot(number);
        self.rates_rps[slot] = f32::NAN;
        self.open = Some(OpenBin { number, requests: 0.0, seconds: 0.0 });
    }

    fn number_of(&self, at: Instant) -> u64 {
        at.as_nanos() / self.bin.as_nanos().max(1) as u64
    }

    fn slot(&self, number: u64) -> usize {
        (number % self.rates_rps.len() as u64) as usize
    }
}

/// The rate at `horizon_s` after the newest of four rates measured one after the other over `window_s` each,
/// if each rise is more than chance; none otherwise. `dispersion` is the variance of counts over their mean,
/// 1 of Poisson arrivals.
#[must_use]
pub fn trend_rps(
    rates_rps: [f64; TREND_WINDOWS],
    window_s: f64,
    dispersion: f64,
    horizon_s: f64,
) -> Option<f64> {
    let error_rps = |one: f64, other: f64| libm::sqrt(dispersion.max(1.0) * (one + other) / window_s);
    let rises = rates_rps.windows(2).map(|pair| {
        let rise_rps = pair[1] - pair[0];
        (rise_rps > ERRORS * error_rps(pair[0], pair[1])).then_some(rise_rps)
    });
    let rise_rps = rises.into_iter().try_fold(f64::INFINITY, |least, rise_rps| Some(least.min(rise_rps?)))?;
    // The newest rate is that of the middle of its window.
    Some(rates_rps[TREND_WINDOWS - 1] + rise_rps / window_s * (window_s / 2.0 + horizon_s))
}

/// Rates that make a trend.
pub const TREND_WINDOWS: usize = 4;
/// Standard errors that each rise has to exceed: three times in a row by chance once in 80,000 plans.
const ERRORS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Goal: the shape of earlier days, at today's level. Method: days on which demand doubles from 8 to 9,
    /// one on which it does not, and a day of which nothing is known.
    #[test]
    fn growth_is_that_of_most_earlier_days() {
        let mut history = SeasonalHistory::new(24 * HOUR);
        let minute = Duration::from_secs(60);
        let grows = [true, true, false, true, true];
        assert_eq!(history.growth(Instant::ZERO + 8 * HOUR, HOUR), 1.0);
        for (day, grows) in (0..).zip(grows) {
            for minute_of_day in 0..1_440u32 {
                let now = Instant::ZERO + 24 * HOUR * day + minute * minute_of_day;
                let rate = if grows && minute_of_day >= 9 * 60 { 20.0 } else { 10.0 };
                history.observe(now, rate * 60.0 * f64::from(day + 1), minute);
            }
        }
        let today = Instant::ZERO + 24 * HOUR * 5;
        assert!((history.growth(today + 8 * HOUR + HOUR / 2, HOUR) - 2.0).abs() < 1e-3);
        assert_eq!(history.growth(today + 10 * HOUR, HOUR), 1.0);
        // Three weeks later all of it is forgotten.
        let later = today + 24 * HOUR * 21;
        history.observe(later, 1.0, minute);
        assert_eq!(history.growth(later + 8 * HOUR + HOUR / 2, HOUR), 1.0);
    }

    #[test]
    fn a_ramp_is_extended_and_a_step_is_not() {
        let trend = |rates| trend_rps(rates, 40.0, 1.0, 40.0);
        assert_eq!(trend([80.0, 100.0, 120.0, 140.0]), Some(170.0));
        assert_eq!(trend([80.0, 100.0, 120.0, 160.0]), Some(190.0));
        // A step, also one that falls within a window.
        assert_eq!(trend([100.0, 100.0, 100.0, 400.0]), None);
        assert_eq!(trend([100.0, 100.0, 250.0, 400.0]), None);
        assert_eq!(trend([100.0, 250.0, 400.0, 400.0]), None);
        assert_eq!(trend([99.0, 100.0, 101.0, 102.0]), None, "chance");
        assert_eq!(trend([0.0; 4]), None);
    }
}

//! Detects that a backlog grows because the origin cannot keep up, from what comes and what is completed
//! alone.
//!
//! A backlog that grows is no proof: before an origin that takes half a second for each request and any
//! number of them at once, it grows for half a second after each step of the load. The time that requests
//! take does not grow there. That time is measured without marking any request: it is how long ago as much
//! had arrived as is completed by now. At an origin of capacity C with arrivals of λ > C it rises by `1 − C /
//! λ` seconds in a second; where the origin keeps up it rises only while its own response time does.

use alloc::collections::VecDeque;
use flashweir_core::limits::LADDER_GROWTH_TICKS;
use flashweir_core::{Duration, Instant};

/// The shortest time over which a rise is judged.
const OVER_MIN: Duration = Duration::from_millis(300);
/// Completions over which it is judged, thousandths: with fewer, chance decides.
const DONE_MIN: u64 = 10_000;
/// It grows where requests take longer by this part of the time that passes: arrivals of 1.25 times the
/// capacity.
const RISE_MIN: f64 = 0.2;

/// Arrivals and completions of the last seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Oldest first; at most [`LADDER_GROWTH_TICKS`].
    ticks: VecDeque<Tick>,
    is_growing: bool,
    completed_rps: Option<f64>,
}

/// Work in usual requests, thousandths, since the first tick.
#[derive(Clone, Copy, Debug)]
struct Tick {
    at: Instant,
    arrived: u64,
    done: u64,
    /// Time that the work which is completed now has taken, seconds; none where none is, or where it arrived
    /// before all that is remembered.
    taken_s: Option<f64>,
}

impl Growth {
    /// Takes the backlog of now, and what was completed since the last time.
    pub(super) fn observe(&mut self, now: Instant, backlog_milli: u64, completed_milli: u64) {
        let last = self.ticks.back().copied();
        let done = last.map_or(0, |last| last.done) + completed_milli;
        let arrived = done + backlog_milli;
        if last.is_some_and(|last| arrived < last.arrived) {
            // Work was given up: counts do not say how long the rest of it has waited.
            self.ticks.clear();
        }
        if self.ticks.len() == LADDER_GROWTH_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back(Tick { at: now, arrived, done, taken_s: None });
        let taken_s = (completed_milli > 0).then(|| self.arrived_before_s(now, done)).flatten();
        if let Some(tick) = self.ticks.back_mut() {
            tick.taken_s = taken_s;
        }
        let window = self.ticks.iter().rev().find(|tick| {
            let is_long_enough = now.saturating_since(tick.at) >= OVER_MIN;
            is_long_enough && done.saturating_sub(tick.done) >= DONE_MIN
        });
        let over = window.map(|tick| (tick, now.saturating_since(tick.at).as_secs_f64()));
        let rises = |(tick, span_s): (&Tick, f64)| {
            let rise_s = taken_s.zip(tick.taken_s).map(|(now_s, then_s)| now_s - then_s);
            rise_s.is_some_and(|rise_s| rise_s >= RISE_MIN * span_s)
        };
        self.is_growing = over.is_some_and(rises);
        self.completed_rps = over.map(|(tick, span_s)| (done - tick.done) as f64 / 1e3 / span_s);
    }

    /// Returns true if requests take longer and longer.
    pub(super) fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// Completions per second, over the shortest sufficient time; none after too few completions.
    pub(super) fn completed_rps(&self) -> Option<f64> {
        self.completed_rps
    }

    /// Time since this much had arrived, seconds.
    fn arrived_before_s(&self, now: Instant, amount: u64) -> Option<f64> {
        let index = self.ticks.iter().rposition(|tick| tick.arrived <= amount)?;
        let (from, to) = (self.ticks[index], self.ticks.get(index + 1));
        let ago_s = now.saturating_since(from.at).as_secs_f64();
        // Between two ticks work arrives evenly.
        let into_s = to.map_or(0.0, |to| {
            let span_s = to.at.saturating_since(from.at).as_secs_f64();
            let part = (amount - from.arrived) as f64 / (to.arrived - from.arrived) as f64;
            span_s * part
        });
        Some(ago_s - into_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Seconds in which it is said to grow, of an origin that completes `done` of each tick, given what
    /// arrived up to each.
    fn growing(arrivals_per_tick: impl Fn(usize) -> u64, done: impl Fn(usize, &[u64]) -> u64) -> Vec<usize> {
        let (mut growth, mut arrived, mut completed) = (Growth::default(), alloc::vec![0], 0);
        let mut ticks = Vec::new();
        growth.observe(Instant::ZERO, 0, 0);
        for tick in 1..100 {
            arrived.push(arrived[tick - 1] + arrivals_per_tick(tick));
            let now_done = done(tick, &arrived);
            growth.observe(
                Instant::from_millis(100 * tick as u64),
                arrived[tick] - now_done,
                now_done - completed,
            );
            completed = now_done;
            if growth.is_growing() {
                ticks.push(tick);
            }
        }
        ticks
    }

    #[test]
    fn an_origin_that_cannot_keep_up_is_seen_after_some_tenths() {
        // 20 a tick, of 45 that arrive.
        let ticks = growing(|_| 45_000, |tick, arrived| (20_000 * tick as u64).min(arrived[tick]));
        assert!(ticks[0] <= 5, "{ticks:?}");
        // Later on, what is completed arrived before all that is remembered.
        assert!(ticks.iter().copied().take(40).eq(ticks[0]..ticks[0] + 40), "{ticks:?}");
    }

    /// An origin that takes 700 ms and any number at once, and a load that doubles twice.
    #[test]
    fn an_origin_that_is_only_slow_is_not() {
        let load = |tick| 10_000 * (1 + u64::from(tick >= 30) + 2 * u64::from(tick >= 60));
        let ticks = growing(load, |tick, arrived| arrived[tick.saturating_sub(7)]);
        assert_eq!(ticks, [0; 0]);
    }

    #[test]
    fn what_was_given_up_starts_over() {
        let mut growth = Growth::default();
        let at = |tick: u64| Instant::from_millis(100 * tick);
        (0..10).for_each(|tick| growth.observe(at(tick), 25_000 * tick, 20_000 * tick.min(1)));
        assert!(growth.is_growing());
        growth.observe(at(10), 10_000, 20_000);
        assert!(!growth.is_growing());
        assert_eq!(growth.ticks.len(), 1);
        (11..200).for_each(|tick| growth.observe(at(tick), 10_000, 20_000));
        assert!(!growth.is_growing());
        assert_eq!(growth.ticks.len(), LADDER_GROWTH_TICKS);
        assert_eq!(growth.completed_rps().map(f64::round), Some(200.0));
    }
}

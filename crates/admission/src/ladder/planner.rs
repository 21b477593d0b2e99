//! Computes the rate advertised to all senders together, ten times a second.

use super::capacity::{Capacity, IntervalCounts};
use super::first::FirstRule;
use super::plan::{Explanation, LadderInput, LadderPlan, Rule};
use super::{LadderGate, Rungs, Scheme, level_us};
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant, Rate};

/// Follows the level and says what to ask.
#[derive(Clone, Debug)]
pub struct LadderPlanner {
    gate: Option<LadderGate>,
    planned_at: Option<Instant>,
    rps: [f64; CLASSES],
    capacity: Capacity,
    /// The newest thresholds.
    rungs: Option<Rungs>,
    /// Time at which the sentry first knew the origin.
    known_since: Option<Instant>,
    level_us: u64,
    /// Advertised rate, and since when less than nine tenths of it have been used.
    asks: Option<(u8, Rate)>,
    unused_since: Option<Instant>,
    first: FirstRule,
}

/// The time in which a level that is off its reference comes back to it by two thirds (T_d in ALGORITHMS
/// §5.1, which has 2 s). Chosen by the simulator (`sim/tests/sim/senders`, seeds 1 to 8): with 1.1 s and less
/// the rate of a second is outside ± 10 % more often than it may be where senders join and leave, and with
/// 1.3 s the backlog strays so far that in one cold start of eight more than 1 % is refused.
const SETTLING_S: f64 = 1.2;
/// The least that is asked for, as a part of the capacity: a stream of requests whose responses say what is
/// true by now.
const PART_MIN: f64 = 0.01;
/// A limit of which less than this is used decides nothing.
const BINDS_FROM: f64 = 0.9;
/// A limit that binds no more is kept this long: arrivals vary.
const UNUSED_FOR: Duration = Duration::from_secs(1);
/// The sentry's first numbers are averages over few requests; no threshold is derived from them.
const KNOWN_AFTER: Duration = Duration::from_secs(2);
/// The time over which arrivals are averaged.
const AVERAGED_OVER_S: f64 = 1.0;

impl LadderPlanner {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self {
            gate: None,
            planned_at: None,
            rps: [0.0; CLASSES],
            capacity: Capacity::UNKNOWN,
            rungs: None,
            known_since: None,
            level_us: 0,
            asks: None,
            unused_since: None,
            first: FirstRule::default(),
        }
    }

    /// Takes measurements and plans; to be called every 100 ms or so. O(ranks).
    pub fn plan(&mut self, now: Instant, input: &LadderInput) -> LadderPlan {
        self.measure(now, input);
        let Some(rungs) = self.known_rungs(now, input) else {
            (self.gate, self.unused_since) = (None, None);
            self.asks = self.first_asks(now);
            let rule = if self.asks.is_some() { Rule::First } else { Rule::Unknown };
            return self.planned(None, rule, 0);
        };
        let gate = match &mut self.gate {
            Some(gate) => {
                gate.set_rungs(rungs.clone());
                gate
            }
            gate @ None => gate.insert(LadderGate::new(Scheme::Combined, rungs.clone(), &[])),
        };
        // The sentry may let fewer requests wait than would reach the onset.
        let least_us = if input.is_refusing { rungs.lowest().onset } else { 0 };
        gate.observe(self.level_us.max(least_us));
        let throttled = gate.throttled_from();
        let from_rank = throttled.or(self.asks.map(|(from_rank, _)| from_rank));
        let Some(from_rank) = from_rank else {
            return self.planned(Some(rungs), Rule::Quiet, 0);
        };
        if throttled.is_none() && self.is_unused(now, from_rank) {
            (self.asks, self.unused_since) = (None, None);
            return self.planned(Some(rungs), Rule::Quiet, 0);
        }
        let rung = rungs.of(from_rank);
        let reference_us = rung.abatement.midpoint(rung.onset);
        let error_s = (self.level_us as f64 - reference_us as f64) / 1e6;
        let capacity_rps = self.capacity.rps();
        let left_rps = capacity_rps - self.unlimited_rps(from_rank);
        let rate_rps = (left_rps * (1.0 - error_s / SETTLING_S)).max(PART_MIN * capacity_rps);
        self.asks = Some((from_rank, Rate::from_per_second(rate_rps)));
        let rule = if throttled.is_some() { Rule::Throttle } else { Rule::Release };
        self.planned(Some(rungs), rule, reference_us)
    }

    /// Rate advertised before there are thresholds: the more important ranks that fit into the completion
    /// rate are not limited.
    fn first_asks(&self, now: Instant) -> Option<(u8, Rate)> {
        let completed_rps = self.capacity.rps();
        if !self.first.is_overloaded(now) || completed_rps <= 0.0 {
            return None;
        }
        let fits = |from_rank: &u8| self.unlimited_rps(*from_rank) <= completed_rps;
        let last = self.rps.iter().rposition(|&rps| rps > 0.0)? as u8;
        let from_rank = (0..=last).rev().find(fits)?;
        let left_rps = completed_rps - self.unlimited_rps(from_rank);
        let rate_rps = (self.first.part() * left_rps).max(PART_MIN * completed_rps);
        Some((from_rank, Rate::from_per_second(rate_rps)))
    }

    /// The rungs, once the sentry has known the origin for long enough that its numbers are not those of its
    /// first requests. Numbers that it forgets during an experiment stay as they were.
    fn known_rungs(&mut self, now: Instant, input: &LadderInput) -> Option<Rungs> {
        if let Some(rungs) = input.rungs.clone().filter(|_| input.capacity_rps > 0.0) {
            self.rungs = Some(rungs);
            self.known_since.get_or_insert(now);
        }
        let is_new = now.saturating_since(self.known_since?) < KNOWN_AFTER;
        self.rungs.clone().filter(|_| !is_new)
    }

    fn measure(&mut self, now: Instant, input: &LadderInput) {
        let span_s = self.planned_at.map_or(0.0, |before| now.saturating_since(before).as_secs_f64());
        self.planned_at = Some(now);
        self.first.observe(now, input, self.asks.is_some());
        if span_s > 0.0 {
            let part = 1.0 - libm::exp(-span_s / AVERAGED_OVER_S);
            for (rps, &count) in self.rps.iter_mut().zip(&input.arrived) {
                *rps += (count as f64 / span_s - *rps) * part;
            }
            self.measure_capacity(now, span_s, input);
        }
        let capacity = Rate::from_per_second(self.capacity.rps());
        self.level_us = level_us(input.backlog_milli, capacity);
    }

    fn measure_capacity(&mut self, now: Instant, span_s: f64, input: &LadderInput) {
        let completed_rps = input.completed_milli as f64 / 1e3 / span_s;
        let is_overloaded = self.first.is_overloaded(now);
        if self.capacity.rps() <= 0.0 && is_overloaded {
            return self.capacity.guess(self.first.completed_rps().unwrap_or(completed_rps));
        }
        let Some((from_rank, rate)) = self.asks else {
            let is_known = self.capacity.rps() > 0.0 || input.capacity_rps <= 0.0;
            if input.is_short && is_known {
                // The sentry's estimate may be several times too high below its limit: by that one the level
                // of a backlog would stay below every onset. A lower one than what was counted in a few
                // moments is the better one.
                self.capacity.observe(&IntervalCounts { span_s, completed_rps, is_busy: true, binds: false });
                if input.capacity_rps < self.capacity.rps() {
                    self.capacity.guess(input.capacity_rps);
                }
            } else {
                self.capacity.guess(input.capacity_rps);
            }
            return;
        };
        let level_us = level_us(input.backlog_milli, Rate::from_per_second(self.capacity.rps()));
        self.capacity.observe(&IntervalCounts {
            span_s,
            completed_rps,
            is_busy: match (&self.gate, &self.rungs) {
                (Some(_), Some(rungs)) => level_us >= rungs.lowest().abatement,
                _ => input.is_short || is_overloaded,
            },
            binds: self.used_rps(from_rank) >= BINDS_FROM * rate.per_second(),
        });
    }

    /// Returns true if senders have left part of the rate unused for a while.
    fn is_unused(&mut self, now: Instant, from_rank: u8) -> bool {
        let used_rps = self.used_rps(from_rank);
        let binds = self.asks.is_none_or(|(_, rate)| used_rps >= BINDS_FROM * rate.per_second());
        if binds {
            self.unused_since = None;
            return false;
        }
        let since = *self.unused_since.get_or_insert(now);
        now.saturating_since(since) >= UNUSED_FOR
    }

    fn unlimited_rps(&self, from_rank: u8) -> f64 {
        self.rps[..from_rank.into()].iter().sum()
    }

    fn used_rps(&self, from_rank: u8) -> f64 {
        self.rps[from_rank.into()..].iter().sum()
    }

    fn planned(&self, rungs: Option<Rungs>, rule: Rule, reference_us: u64) -> LadderPlan {
        let from_rank = self.asks.map_or(0, |(from_rank, _)| from_rank);
        let capacity_rps = self.capacity.rps();
        let holds = rungs.clone().or_else(|| self.first.rungs());
        LadderPlan {
            rungs,
            holds: holds.filter(|_| self.asks.is_some()),
            asks: self.asks,
            // A limit that opens below every abatement is still one.
            severity: self.gate.as_ref().map_or(0, LadderGate::severity).max(self.asks.is_some().into()),
            capacity: Rate::from_per_second(capacity_rps),
            explanation: Explanation {
                rule,
                level_us: self.level_us,
                reference_us,
                capacity_rps,
                unlimited_rps: self.unlimited_rps(from_rank),
                used_rps: self.used_rps(from_rank),
            },
        }
    }
}

impl Default for LadderPlanner {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Rung;
    use alloc::vec::Vec;

    const RUNG: Rung = Rung { abatement: 20_000, onset: 320_000, discard: 560_000 };
    const REFERENCE_US: f64 = 170_000.0;

    /// Simulates an origin of 100 requests a second without chance, and senders that keep to the rate 200 ms
    /// late. `offered_rps` is the rate offered in each tick, of which `important_rps` is rank 0; counted
    /// completions are off by the factor `error`. Returns the rate asked for and the level, each 100 ms.
    fn loop_of(
        offered_rps: impl Fn(usize) -> f64,
        important_rps: f64,
        error: f64,
    ) -> Vec<(Option<f64>, f64)> {
        let rungs =
            Rungs::new(alloc::vec![Rung { abatement: 600_000, onset: 700_000, discard: 800_000 }, RUNG]);
        let rungs = rungs.unwrap();
        let mut planner = LadderPlanner::new();
        let mut asked: Vec<Option<f64>> = alloc::vec![None, None];
        let mut work = 0.0_f64;
        let mut levels = Vec::new();
        let (mut owed, mut completed) = (0.0, 0.0);
        for tick in 0..300 {
            // Quiet at first, so that the origin is known when the overload comes.
            let offered_rps = if tick < 25 { 50.0 } else { offered_rps(tick) };
            let less_rps = (offered_rps - important_rps).max(0.0);
            let sent_rps = asked[tick].map_or(less_rps, |rate| less_rps.min(rate));
            let arriving = (sent_rps + important_rps) / 10.0;
            let done = (work + arriving).min(10.0);
            work += arriving - done;
            owed += sent_rps / 10.0;
            let mut arrived = [0; CLASSES];
            (arrived[0], arrived[1]) = ((important_rps / 10.0) as u64, owed as u64);
            owed -= arrived[1] as f64;
            completed += done * error;
            let input = LadderInput {
                backlog_milli: (work * 1e3) as u64,
                rungs: Some(rungs.clone()),
                capacity_rps: 110.0,
                arrived,
                completed_milli: (completed * 1e3) as u64,
                wait_us: 600_000,
                is_short: false,
                is_refusing: false,
            };
            completed = 0.0;
            let plan = planner.plan(Instant::from_millis(100 * (tick as u64 + 1)), &input);
            let rate = plan.asks.map(|(from_rank, rate)| {
                assert_eq!(from_rank, 1);
                rate.per_second()
            });
            asked.push(rate);
            levels.push((rate, plan.explanation.level_us as f64));
        }
        levels
    }

    /// A tick of a crowd of 300 requests a second of each rank, at an origin that completes 100 a second.
    fn crowd(backlog_milli: u64, capacity_rps: f64) -> LadderInput {
        LadderInput {
            backlog_milli,
            rungs: Rungs::single(RUNG).ok(),
            capacity_rps,
            arrived: [30; CLASSES],
            completed_milli: 10_000,
            wait_us: 600_000,
            is_short: false,
            is_refusing: false,
        }
    }

    /// Goal: the level settles at the reference though the sentry's estimate is a tenth too high, and an
    /// error of the counted completions moves it by that part of the settling time.
    #[test]
    fn the_level_settles_near_the_reference() {
        for (error, expected_us) in [(1.0, REFERENCE_US), (1.05, 227_000.0), (0.95, 107_000.0)] {
            let run = loop_of(|_| 225.0, 0.0, error);
            for &(rate, level_us) in &run[200..] {
                assert!((level_us - expected_us).abs() < 10_000.0, "{error}: {level_us}");
                assert!((rate.unwrap() - 100.0).abs() < 1.0, "{rate:?}");
            }
        }
    }

    #[test]
    fn important_ranks_are_taken_off_the_rate_and_not_limited() {
        let run = loop_of(|_| 225.0, 40.0, 1.0);
        assert!(run[200..].iter().all(|&(rate, _)| (rate.unwrap() - 60.0).abs() < 2.0), "{:?}", run[299]);
    }

    /// Goal: without overload nothing is asked, and after one the limit ends within three seconds. Method:
    /// 20 s of overload.
    #[test]
    fn a_limit_ends_when_it_is_not_used() {
        let run = loop_of(|tick| if tick < 200 { 225.0 } else { 80.0 }, 0.0, 1.0);
        assert!(run[100].0.is_some());
        let ended = run[200..].iter().position(|(rate, _)| rate.is_none()).expect("it ends");
        assert!(ended <= 30, "{ended} tenths of a second");
        assert!(loop_of(|_| 90.0, 0.0, 1.0).iter().all(|(rate, _)| rate.is_none()));
    }

    /// Goal: an overload is asked about though the sentry takes the origin for three times what it is.
    /// Method: 40 requests wait before an origin of 100 a second; by the estimate that is 0.13 s of work,
    /// below the onset.
    #[test]
    fn an_estimate_that_is_far_too_high_is_mended_while_the_origin_is_short() {
        let asks = |is_short| {
            let mut planner = LadderPlanner::new();
            let plans = (1..=40).map(|tick| {
                let input = LadderInput { is_short, ..crowd(40_000, 300.0) };
                planner.plan(Instant::from_millis(100 * tick), &input).asks.is_some()
            });
            plans.last()
        };
        assert_eq!((asks(false), asks(true)), (Some(false), Some(true)));
    }

    /// Goal: while the sentry refuses, senders are asked for less, however few it lets wait. Method: 5
    /// requests before an origin of 100 a second, far below the onset.
    #[test]
    fn a_sentry_that_refuses_is_reason_enough() {
        let asks = |is_refusing| {
            let mut planner = LadderPlanner::new();
            let plans = (1..=40).map(|tick| {
                let input = LadderInput { is_short: is_refusing, is_refusing, ..crowd(5_000, 100.0) };
                planner.plan(Instant::from_millis(100 * tick), &input).asks.is_some()
            });
            plans.last()
        };
        assert_eq!((asks(false), asks(true)), (Some(false), Some(true)));
    }

    #[test]
    fn an_unknown_origin_is_asked_for_nothing() {
        let mut planner = LadderPlanner::new();
        let input = LadderInput { arrived: [9; CLASSES], ..crowd(900_000, 0.0) };
        let plan = planner.plan(Instant::ZERO, &input);
        assert_eq!((plan.asks, plan.rungs, plan.explanation.rule), (None, None, Rule::Unknown));
        assert_eq!(plan.holds, None);
        // Nothing beyond the capacity: still a probe.
        let known = LadderInput { capacity_rps: 100.0, ..input };
        let mut asks = |tick: u64| planner.plan(Instant::from_millis(100 * tick), &known).asks;
        let asks: Vec<_> = (1..=22).map(&mut asks).collect();
        assert_eq!((asks[0], asks[21]), (None, Some((0, Rate::from_per_second(1.0)))));
    }
    /// Goal: an origin of which nothing is known is asked about before the sentry refuses, once requests
    /// wait for longer than they may, and not before. Method: 100 completions a second; from the second
    /// second on 225 arrive, and none is refused.
    #[test]
    fn a_backlog_that_grows_is_asked_about_before_anything_is_refused() {
        let mut planner = LadderPlanner::new();
        let mut backlog = 0.0;
        let mut first = None;
        for tick in 0..60_u64 {
            let arriving: f64 = if tick < 20 { 9.0 } else { 22.5 };
            let done = (backlog + arriving).min(10.0);
            backlog += arriving - done;
            let mut arrived = [0; CLASSES];
            arrived[0] = arriving as u64;
            let input = LadderInput {
                backlog_milli: (backlog * 1e3) as u64,
                arrived,
                completed_milli: (done * 1e3) as u64,
                ..LadderInput { rungs: None, ..crowd(0, 0.0) }
            };
            let plan = planner.plan(Instant::from_millis(100 * tick), &input);
            if let (None, Some((0, rate))) = (first, plan.asks) {
                first = Some(tick);
                assert_eq!(plan.explanation.rule, Rule::First);
                assert!((50.0..=105.0).contains(&rate.per_second()), "{rate:?}");
                assert!(plan.holds.is_some() && plan.rungs.is_none());
                // More than the 0.6 s that may wait.
                assert!((60.0..100.0).contains(&backlog), "{backlog}");
            }
        }
        assert!(first.is_some_and(|tick| tick >= 24), "{first:?}");
    }
}

//! What is asked of all senders together, ten times a second.

use super::{LadderGate, Rungs, Scheme};
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant, Rate};

/// What the node measured since the last plan.
#[derive(Clone, Debug, Default)]
pub struct LadderInput {
    /// Unfinished work now, microseconds: see [`level_us`](super::level_us).
    pub level_us: u64,
    /// The thresholds by the sentry's present plan; none while it does not know the origin.
    pub rungs: Option<Rungs>,
    /// Requests per second that the origin can complete, as learned.
    pub capacity_rps: f64,
    /// Requests that arrived, by rank.
    pub arrived: [u64; CLASSES],
}

/// What the ladder decided.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderPlan {
    /// The thresholds for the gates; none where nothing is to be throttled or discarded.
    pub rungs: Option<Rungs>,
    /// What is asked of senders: ranks from this one on, and at which rate together; none without overload.
    pub asks: Option<(u8, Rate)>,
    /// Onset levels crossed.
    pub severity: u8,
    /// Why.
    pub explanation: Explanation,
}

/// The inputs and the rule that fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The rule.
    pub rule: Rule,
    /// Unfinished work, microseconds.
    pub level_us: u64,
    /// Where the level is to settle, microseconds; 0 while nothing is asked.
    pub reference_us: u64,
    /// The origin's capacity per second.
    pub capacity_rps: f64,
    /// Requests per second of the ranks that are not limited.
    pub unlimited_rps: f64,
    /// Requests per second of the ranks that are.
    pub used_rps: f64,
}

/// Which rule made the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing is known of the origin.
    Unknown,
    /// No onset was crossed: nothing is asked.
    Quiet,
    /// The level is above an abatement: the rate holds it near the reference.
    Throttle,
    /// The level is below every abatement, and senders still use the rate: it rises until they do not.
    Release,
}

/// Follows the level and says what to ask.
#[derive(Clone, Debug)]
pub struct LadderPlanner {
    gate: Option<LadderGate>,
    planned_at: Option<Instant>,
    rps: [f64; CLASSES],
    /// What is asked, and since when less than nine tenths of it have been used.
    asks: Option<(u8, Rate)>,
    unused_since: Option<Instant>,
}

/// The time in which a level that is off its reference comes back to it by two thirds (T_d in ALGORITHMS §5.1): ten times the
/// delay of a refresh and a round trip.
const SETTLING_S: f64 = 2.0;
/// The least that is asked for, as a part of the capacity: a stream of requests whose responses say what is true by now.
const PART_MIN: f64 = 0.01;
/// A limit of which less than this is used decides nothing.
const BINDS_FROM: f64 = 0.9;
/// A limit that binds no more is kept this long: arrivals vary.
const UNUSED_FOR: Duration = Duration::from_secs(1);
/// The time over which arrivals are averaged.
const AVERAGED_OVER_S: f64 = 1.0;

impl LadderPlanner {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self { gate: None, planned_at: None, rps: [0.0; CLASSES], asks: None, unused_since: None }
    }

    /// Takes measurements and plans; to be called every 100 ms or so. O(ranks).
    pub fn plan(&mut self, now: Instant, input: &LadderInput) -> LadderPlan {
        self.measure(now, &input.arrived);
        let Some(rungs) = input.rungs.clone().filter(|_| input.capacity_rps > 0.0) else {
            (self.gate, self.asks, self.unused_since) = (None, None, None);
            return self.planned(None, Rule::Unknown, input, 0);
        };
        let gate = match &mut self.gate {
            Some(gate) => {
                gate.set_rungs(rungs.clone());
                gate
            }
            gate @ None => gate.insert(LadderGate::new(Scheme::Combined, rungs.clone(), &[])),
        };
        gate.observe(input.level_us);
        let throttled = gate.throttled_from();
        let from_rank = throttled.or(self.asks.map(|(from_rank, _)| from_rank));
        let Some(from_rank) = from_rank else {
            return self.planned(Some(rungs), Rule::Quiet, input, 0);
        };
        if throttled.is_none() && self.is_unused(now, from_rank) {
            (self.asks, self.unused_since) = (None, None);
            return self.planned(Some(rungs), Rule::Quiet, input, 0);
        }
        let rung = rungs.of(from_rank);
        let reference_us = rung.abatement.midpoint(rung.onset);
        let error_s = (input.level_us as f64 - reference_us as f64) / 1e6;
        let left_rps = input.capacity_rps - self.unlimited_rps(from_rank);
        let rate_rps = (left_rps * (1.0 - error_s / SETTLING_S)).max(PART_MIN * input.capacity_rps);
        self.asks = Some((from_rank, Rate::from_per_second(rate_rps)));
        let rule = if throttled.is_some() { Rule::Throttle } else { Rule::Release };
        self.planned(Some(rungs), rule, input, reference_us)
    }

    fn measure(&mut self, now: Instant, arrived: &[u64; CLASSES]) {
        let Some(before) = self.planned_at.replace(now) else { return };
        let span_s = now.saturating_since(before).as_secs_f64();
        if span_s <= 0.0 {
            return;
        }
        let part = 1.0 - libm::exp(-span_s / AVERAGED_OVER_S);
        for (rps, &count) in self.rps.iter_mut().zip(arrived) {
            *rps += (count as f64 / span_s - *rps) * part;
        }
    }

    /// Whether senders have left part of the rate unused for a while.
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

    fn planned(
        &self,
        rungs: Option<Rungs>,
        rule: Rule,
        input: &LadderInput,
        reference_us: u64,
    ) -> LadderPlan {
        let from_rank = self.asks.map_or(0, |(from_rank, _)| from_rank);
        LadderPlan {
            rungs,
            asks: self.asks,
            severity: self.gate.as_ref().map_or(0, LadderGate::severity),
            explanation: Explanation {
                rule,
                level_us: input.level_us,
                reference_us,
                capacity_rps: input.capacity_rps,
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

    /// An origin of 100 requests a second without chance, and senders that keep to the rate 200 ms late. What is offered, of
    /// which `important_rps` is rank 0, and how far the learned capacity is off. The rates asked for and the levels, each 100 ms.
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
        let mut owed = 0.0;
        for tick in 0..300 {
            let less_rps = (offered_rps(tick) - important_rps).max(0.0);
            let sent_rps = asked[tick].map_or(less_rps, |rate| less_rps.min(rate));
            let arriving = (sent_rps + important_rps) / 10.0;
            let done = (work + arriving).min(10.0);
            work += arriving - done;
            owed += sent_rps / 10.0;
            let mut arrived = [0; CLASSES];
            (arrived[0], arrived[1]) = ((important_rps / 10.0) as u64, owed as u64);
            owed -= arrived[1] as f64;
            let input = LadderInput {
                level_us: (work * 10_000.0) as u64,
                rungs: Some(rungs.clone()),
                capacity_rps: 100.0 * error,
                arrived,
            };
            let plan = planner.plan(Instant::from_millis(100 * (tick as u64 + 1)), &input);
            let rate = plan.asks.map(|(from_rank, rate)| {
                assert_eq!(from_rank, 1);
                rate.per_second()
            });
            asked.push(rate);
            levels.push((rate, input.level_us as f64));
        }
        levels
    }

    /// Goal: the level settles at the reference, and an error of the capacity moves it by that part of two seconds.
    #[test]
    fn the_level_settles_near_the_reference() {
        for (error, expected_us) in [(1.0, REFERENCE_US), (1.05, 265_000.0), (0.95, 65_000.0)] {
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

    /// Goal: without overload nothing is asked, and after one the limit ends within three seconds. Method: 20 s of overload.
    #[test]
    fn a_limit_ends_when_it_is_not_used() {
        let run = loop_of(|tick| if tick < 200 { 225.0 } else { 80.0 }, 0.0, 1.0);
        assert!(run[100].0.is_some());
        let ended = run[200..].iter().position(|(rate, _)| rate.is_none()).expect("it ends");
        assert!(ended <= 30, "{ended} tenths of a second");
        assert!(loop_of(|_| 90.0, 0.0, 1.0).iter().all(|(rate, _)| rate.is_none()));
    }

    #[test]
    fn an_unknown_origin_is_asked_for_nothing() {
        let mut planner = LadderPlanner::new();
        let rungs = Rungs::single(RUNG).ok();
        let input = LadderInput { level_us: 900_000, rungs, capacity_rps: 0.0, arrived: [9; CLASSES] };
        let plan = planner.plan(Instant::ZERO, &input);
        assert_eq!((plan.asks, plan.rungs, plan.explanation.rule), (None, None, Rule::Unknown));
        // Nothing beyond the capacity: still a probe.
        let known = LadderInput { capacity_rps: 100.0, level_us: 9_000_000, ..input };
        assert_eq!(
            planner.plan(Instant::from_millis(100), &known).asks,
            Some((0, Rate::from_per_second(1.0)))
        );
    }
}

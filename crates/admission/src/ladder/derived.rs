//! Thresholds from the sentry's plan, so that nothing is set by hand.
//!
//! ```text
//! base = twice the usual cost (as much again in the queue as the servers work on), or the work in an origin with as many requests
//!        as the sentry lets in, where that is less or the cost is unknown
//! span = how long a request waits before the sentry serves the newest first, by the plan, and half the target at most
//! a rank's part of the span:  abatement at its beginning · onset at 7/10 of it, or 8/10 where there are several ranks · discard at 9/10
//! the least important rank has the first two thirds of the span, or all of it; the others share the rest by importance
//! ```
//!
//! At `base` no server is idle, so nothing is asked for below it. (Not at the sentry's limit: that may be
//! several times as many as the origin works on at once, and a backlog at the origin makes requests wait as
//! one in the queue does.) Before `base + span`, the sentry without a ladder would serve the newest first, so
//! discarding begins there; see [`in_order`] for what the sentry does instead. The level settles midway
//! between abatement and onset, as a rule those of the least important rank: 0.12 s above `base` for a target
//! of 0.7 s. Lower, and the origin is idle between two refreshes: with onset at 5/10 for 0.8 % of the time in
//! the simulator, with 7/10 for 0.2 %.

use super::{Rung, Rungs};
use crate::sentry::{ClassPlan, Plan};
use flashweir_core::limits::REQUESTS_HELD;
use flashweir_core::{Duration, Rate};

/// Work that keeps the origin busy, in usual costs: one for each server, and one more each so that none waits
/// for the next request.
const BASE_COSTS: u64 = 2;
/// A rank's part is at least this long: a request's own work is often some milliseconds.
const PART_MIN: Duration = Duration::from_millis(10);

/// The level: microseconds until an origin of this capacity has done the work that is queued and in service.
/// The work is counted in usual requests, thousandths: one that costs twice the usual counts 2,000. 0 for an
/// unknown capacity.
#[must_use]
pub fn level_us(backlog_milli: u64, capacity: Rate) -> u64 {
    let level = (u128::from(backlog_milli) * 1_000_000).checked_div(capacity.as_milli().into());
    level.map_or(0, |level| u64::try_from(level).unwrap_or(u64::MAX))
}

/// Maximum wait of requests for the origin before the sentry gives up the oldest, microseconds: half of the
/// shortest target at most. Known before anything is known of the origin.
#[must_use]
pub fn wait_us(plan: &Plan) -> u64 {
    plan.classes.iter().map(ClassPlan::span_us).min().unwrap_or(0)
}

/// The rungs for the ranks of a plan, in microseconds of work; none while the sentry does not know what the
/// origin can do.
#[must_use]
pub fn rungs_of_plan(plan: &Plan) -> Option<Rungs> {
    let base_us = base_us(plan)?;
    let ranks = 1 + plan.classes.iter().map(|class| u64::from(class.rank)).max()?;
    let span_us = wait_us(plan).max(3 * ranks * PART_MIN.as_micros() as u64);
    let onset_tenths = if ranks == 1 { 7 } else { 8 };
    let least_us = span_us * 2 / 3;
    let rung = |from_least: u64| {
        let (from_us, part_us) = match from_least {
            0 if ranks == 1 => (0, span_us),
            0 => (0, least_us),
            _ => {
                let part_us = (span_us - least_us) / (ranks - 1);
                (least_us + (from_least - 1) * part_us, part_us)
            }
        };
        let at = |tenths| base_us + from_us + part_us * tenths / 10;
        Rung { abatement: at(0), onset: at(onset_tenths), discard: at(9) }
    };
    Rungs::new((0..ranks).rev().map(rung).collect()).ok()
}

/// The sentry's plan while the ladder holds the backlog within `rungs` at an origin of this capacity:
/// requests are served in the order in which they came, and as many may wait as the ladder lets wait.
///
/// The sentry serves the newest first once the oldest has waited for half of what it may, because in an
/// overload that is not limited elsewhere the queue is full at all times and those at its end would never be
/// answered in time. A backlog that feedback holds is short, and yet it is never empty: once a moment's
/// excess had made one request that old, it and all that came with it would wait below the newer ones until
/// they are refused, at a level at which all could be answered in time (in the simulator 0.4 to 0.8 % of what
/// is offered). And where the sentry has learned a high limit it lets hardly any request wait, fewer than
/// chance needs. Discarding bounds the wait instead.
#[must_use]
pub fn in_order(plan: &Plan, rungs: &Rungs, capacity: Rate) -> Plan {
    let mut plan = plan.clone();
    let most = (REQUESTS_HELD / plan.classes.len().max(1)) as u32;
    for class in &mut plan.classes {
        let waiting_milli =
            u128::from(rungs.of(class.rank).discard) * u128::from(capacity.as_milli()) / 1_000_000;
        let waiting = u32::try_from(waiting_milli.div_ceil(1_000)).unwrap_or(most).min(most);
        class.newest_first_after = class.hold_for;
        class.hold_len = class.hold_len.max(waiting);
        // Feedback keeps this queue short, and never empty.
        (class.standing_len, class.standing_for) = (class.hold_len, class.hold_for);
    }
    plan
}

/// Work that surely keeps the origin busy; none where neither a cost nor a capacity is known.
fn base_us(plan: &Plan) -> Option<u64> {
    let by_cost = BASE_COSTS * u64::from(plan.costs.usual_us);
    let full = level_us(1_000 * u64::from(plan.limit), Rate::from_per_second(plan.explanation.capacity_rps));
    [by_cost, full].into_iter().filter(|&base_us| base_us > 0).min()
}

impl ClassPlan {
    fn span_us(&self) -> u64 {
        self.newest_first_after.min(self.target / 2).as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Policy, SentryPlanner};
    use alloc::sync::Arc;

    fn plan(ranks: u8, span_ms: u64) -> Plan {
        let planner = SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))));
        let mut plan = planner.current().clone();
        let class = ClassPlan { newest_first_after: Duration::from_millis(span_ms), ..plan.classes[0] };
        plan.classes = (0..ranks).map(|rank| ClassPlan { rank, ..class }).collect();
        let costs = crate::sentry::Costs { usual_us: 5_000, ..(*plan.costs).clone() };
        Plan { limit: 4, knee_milli: 1_000, costs: Arc::new(costs), ..plan }
    }

    #[test]
    fn one_rank_has_the_time_in_which_the_sentry_keeps_the_order() {
        let rungs = rungs_of_plan(&plan(1, 400)).expect("a known origin");
        // Two requests of 5 ms for each server.
        assert_eq!(rungs.as_slice(), [Rung { abatement: 10_000, onset: 290_000, discard: 370_000 }]);
    }

    #[test]
    fn ranks_share_the_time_by_importance() {
        let rungs = rungs_of_plan(&plan(2, 300)).expect("a known origin");
        assert_eq!(rungs.of(1), &Rung { abatement: 10_000, onset: 170_000, discard: 190_000 });
        assert_eq!(rungs.of(0), &Rung { abatement: 210_000, onset: 290_000, discard: 300_000 });
        // However little time there is, the ranks have different rungs.
        assert!(rungs_of_plan(&plan(16, 0)).is_some());
    }

    /// The ladder discards from 0.37 s of work on, so 37 requests of an origin of 100 a second may wait, in
    /// their order.
    #[test]
    fn the_sentry_keeps_the_order_while_the_ladder_holds_the_backlog() {
        let learned = plan(1, 400);
        let rungs = rungs_of_plan(&learned).expect("a known origin");
        let few = Plan { classes: alloc::vec![ClassPlan { hold_len: 3, ..learned.classes[0] }], ..learned };
        let ordered = in_order(&few, &rungs, Rate::from_per_second(100.0));
        assert_eq!(ordered.classes[0].hold_len, 37);
        assert_eq!(ordered.classes[0].newest_first_after, few.classes[0].hold_for);
        // A queue that is longer already stays so, and there is a bound.
        let bound = |rps| in_order(&ordered, &rungs, Rate::from_per_second(rps)).classes[0].hold_len as usize;
        assert_eq!((bound(1.0), bound(1e9)), (37, REQUESTS_HELD));
        assert_eq!(wait_us(&few), 400_000);
    }

    #[test]
    fn an_unknown_origin_has_no_rungs() {
        let known = plan(1, 400);
        let free = Arc::new(crate::sentry::Costs { usual_us: 0, ..(*known.costs).clone() });
        assert_eq!(rungs_of_plan(&Plan { costs: free, ..known }), None);
        assert_eq!(level_us(40_000, Rate::from_per_second(200.0)), 200_000);
        assert_eq!(level_us(40_000, Rate::ZERO), 0);
    }
}

//! Thresholds from the sentry's plan, so that nothing is set by hand.
//!
//! ```text
//! base = twice the usual cost (as much again in the queue as the servers work on), or the work in an origin with as many requests
//!        as the sentry lets in, where that is less or the cost is unknown
//! span = how long a request waits before the sentry serves the newest first, by the plan, and half the target at most
//! a rank's part of the span:  abatement at its beginning · onset at 5/10 of it, or 8/10 where there are several ranks · discard at 9/10
//! the least important rank has the first half of the span, or all of it; the others share the second half by importance
//! ```
//!
//! At `base` no server is idle, so nothing is asked for below it. (Not at the sentry's limit: that may be several times as many as the
//! origin works on at once, and a backlog at the origin makes requests wait as one in the queue does.) From `base + span` on, the sentry serves the newest
//! first and gives up the oldest. A backlog that feedback keeps steady would then be one of requests that are given up later, each
//! replaced by another: with a span of all that a request may wait, 5 % of the calls were refused in the simulator for that reason. So
//! discarding begins before. The level settles midway between abatement and onset, as a
//! rule those of the least important rank: 0.1 s above `base` for a target of 0.7 s. Lower, and the origin is idle between two refreshes.

use super::{Rung, Rungs};
use crate::sentry::{ClassPlan, Plan};
use flashweir_core::{Duration, Rate};

/// Work that keeps the origin busy, in usual costs: one for each server, and one more each so that none waits for the next request.
const BASE_COSTS: u64 = 2;
/// A rank's part is at least this long: a request's own work is often some milliseconds.
const PART_MIN: Duration = Duration::from_millis(10);

/// The level: microseconds until an origin of this capacity has done the work that is queued and in service. The work is counted in
/// usual requests, thousandths: one that costs twice the usual counts 2,000. 0 for an unknown capacity.
#[must_use]
pub fn level_us(backlog_milli: u64, capacity: Rate) -> u64 {
    let level = (u128::from(backlog_milli) * 1_000_000).checked_div(capacity.as_milli().into());
    level.map_or(0, |level| u64::try_from(level).unwrap_or(u64::MAX))
}

/// The rungs for the ranks of a plan, in microseconds of work; none while the sentry does not know what the origin can do.
#[must_use]
pub fn rungs_of_plan(plan: &Plan) -> Option<Rungs> {
    let base_us = base_us(plan)?;
    let ranks = 1 + plan.classes.iter().map(|class| u64::from(class.rank)).max()?;
    let span_us = plan.classes.iter().map(ClassPlan::span_us).min()?;
    let span_us = span_us.max(2 * ranks * PART_MIN.as_micros() as u64);
    let onset_tenths = if ranks == 1 { 5 } else { 8 };
    let rung = |from_least: u64| {
        let (from_us, part_us) = match from_least {
            0 if ranks == 1 => (0, span_us),
            0 => (0, span_us / 2),
            _ => {
                let part_us = span_us / 2 / (ranks - 1);
                (span_us / 2 + (from_least - 1) * part_us, part_us)
            }
        };
        let at = |tenths| base_us + from_us + part_us * tenths / 10;
        Rung { abatement: at(0), onset: at(onset_tenths), discard: at(9) }
    };
    Rungs::new((0..ranks).rev().map(rung).collect()).ok()
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
        assert_eq!(rungs.as_slice(), [Rung { abatement: 10_000, onset: 210_000, discard: 370_000 }]);
    }

    #[test]
    fn ranks_share_the_time_by_importance() {
        let rungs = rungs_of_plan(&plan(2, 400)).expect("a known origin");
        assert_eq!(rungs.of(1), &Rung { abatement: 10_000, onset: 170_000, discard: 190_000 });
        assert_eq!(rungs.of(0), &Rung { abatement: 210_000, onset: 370_000, discard: 390_000 });
        // However little time there is, the ranks have different rungs.
        assert!(rungs_of_plan(&plan(16, 0)).is_some());
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

//! Thresholds from the sentry's plan, so that nothing is set by hand.
//!
//! ```text
//! base = work in a full origin = limit · usual cost / servers        hold = how long a request may wait, by the plan
//! rank i of n, counted from the least important:
//!     abatement = base + hold · i/n     onset = base + hold · (i + 0.5)/n     discard = base + hold · (i + 0.9)/n
//! ```
//!
//! Below `base` the origin has a free slot, so nothing is asked for there; beyond `base + hold` a request cannot be answered in
//! time. Between them the ranks share the time by importance. With one rank the level settles a quarter of the way from `base`,
//! where throttling costs the least waiting and the origin still has work for every moment between two refreshes.

use super::{Rung, Rungs};
use crate::sentry::{ClassPlan, Plan};
use flashweir_core::Duration;

/// Nobody's waiting time is divided more finely than this between two thresholds: levels are sampled every 100 ms at best, and a
/// request's own work is often some milliseconds.
const STEP_MIN: Duration = Duration::from_millis(5);

/// The level: microseconds until `servers_milli` thousandths of a server have done `work_us` of work. 0 for no servers.
#[must_use]
pub fn level_us(work_us: u64, servers_milli: u64) -> u64 {
    (u128::from(work_us) * 1_000).checked_div(servers_milli.into()).map_or(0, |level| level as u64)
}

/// The rungs for the ranks of a plan, in microseconds of work; none while the sentry does not know what the origin can do.
#[must_use]
pub fn rungs_of_plan(plan: &Plan) -> Option<Rungs> {
    let usual_us = u64::from(plan.costs.usual_us);
    if plan.knee_milli == 0 || usual_us == 0 || plan.explanation.capacity_rps <= 0.0 {
        return None;
    }
    let ranks = 1 + plan.classes.iter().map(|class| u64::from(class.rank)).max()?;
    let base_us = level_us(u64::from(plan.limit) * usual_us, plan.knee_milli);
    let hold_us = plan.classes.iter().map(ClassPlan::hold_us).min()?;
    let steps_us = hold_us.max(ranks * 10 * STEP_MIN.as_micros() as u64);
    // Tenths of a rank's part of the time.
    let at = |from_least: u64, tenths: u64| base_us + steps_us * (10 * from_least + tenths) / (10 * ranks);
    let rung = |from_least| Rung {
        abatement: at(from_least, 0),
        onset: at(from_least, 5),
        discard: at(from_least, 9),
    };
    Rungs::new((0..ranks).rev().map(rung).collect()).ok()
}

impl ClassPlan {
    fn hold_us(&self) -> u64 {
        self.hold_for.as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentry::{Policy, SentryPlanner};
    use alloc::sync::Arc;

    fn plan(ranks: u8, hold_ms: u64) -> Plan {
        let planner = SentryPlanner::new(Arc::new(Policy::single(Duration::from_secs(1))));
        let mut plan = planner.current().clone();
        let class = ClassPlan { hold_for: Duration::from_millis(hold_ms), ..plan.classes[0] };
        plan.classes = (0..ranks).map(|rank| ClassPlan { rank, ..class }).collect();
        let costs = crate::sentry::Costs { usual_us: 5_000, ..(*plan.costs).clone() };
        plan.explanation.capacity_rps = 200.0;
        Plan { limit: 4, knee_milli: 1_000, costs: Arc::new(costs), ..plan }
    }

    #[test]
    fn one_rank_has_the_time_that_the_plan_lets_requests_wait() {
        let rungs = rungs_of_plan(&plan(1, 600)).expect("a known origin");
        // Four requests of 5 ms fill the origin.
        assert_eq!(rungs.as_slice(), [Rung { abatement: 20_000, onset: 320_000, discard: 560_000 }]);
    }

    #[test]
    fn ranks_share_the_time_by_importance() {
        let rungs = rungs_of_plan(&plan(2, 600)).expect("a known origin");
        assert_eq!(rungs.of(1), &Rung { abatement: 20_000, onset: 170_000, discard: 290_000 });
        assert_eq!(rungs.of(0), &Rung { abatement: 320_000, onset: 470_000, discard: 590_000 });
        // However little time there is, the ranks have different rungs.
        assert!(rungs_of_plan(&plan(16, 0)).is_some());
    }

    #[test]
    fn an_unknown_origin_has_no_rungs() {
        let known = plan(1, 600);
        assert_eq!(rungs_of_plan(&Plan { knee_milli: 0, ..known.clone() }), None);
        let free = Arc::new(crate::sentry::Costs { usual_us: 0, ..(*known.costs).clone() });
        assert_eq!(rungs_of_plan(&Plan { costs: free, ..known }), None);
        assert_eq!(level_us(40_000, 2_000), 20_000);
        assert_eq!(level_us(40_000, 0), 0);
    }
}

//! The limit of a planner that failed rises to the bound of every sentry; see
//! [`limit_plan`](crate::limit_plan).

use super::plan::{Decide, Plan, Rule};
use crate::limit_plan::{LimitPlan, growth};
use flashweir_core::Duration;
use flashweir_core::limits::SENTRY_IN_FLIGHT;

impl LimitPlan for Plan {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Classes keep their order and their guaranteed rates. Batches and thresholds end at once: their tests
    /// rest on estimates that no planner renews, and a limit in flight alone rests on none.
    fn decayed(&self, age: Duration) -> Self {
        if self.is_open() {
            return self.clone();
        }
        let mut plan = self.clone();
        let factor = growth(age);
        let risen = |limit: u32| (f64::from(limit.max(1)) * factor).min(f64::from(SENTRY_IN_FLIGHT)) as u32;
        plan.explanation.rule = Rule::Decay;
        plan.decide = Decide::Reservation;
        plan.limit = risen(self.limit);
        for class in &mut plan.classes {
            class.limit = risen(class.limit);
        }
        plan
    }

    fn is_open(&self) -> bool {
        self.decide == Decide::Reservation
            && self.limit >= SENTRY_IN_FLIGHT
            && self.classes.iter().all(|class| class.limit >= SENTRY_IN_FLIGHT)
    }

    /// A new planner starts at a limit that is good for most origins, not at the one that was learned for
    /// this one.
    fn held_to(self, decaying: &Self) -> Self {
        if self.limit <= decaying.limit || self.classes.len() != decaying.classes.len() {
            return self;
        }
        let mut plan = self;
        plan.explanation.rule = decaying.explanation.rule;
        plan.limit = decaying.limit;
        for (class, held) in plan.classes.iter_mut().zip(&decaying.classes) {
            class.limit = class.limit.min(held.limit);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::super::SentryPlanner;
    use super::super::plan::BatchTest;
    use super::super::policy::Policy;
    use super::*;
    use alloc::sync::Arc;

    fn limited(limit: u32) -> Plan {
        let policy = Policy::single(Duration::from_secs(1));
        let mut plan = SentryPlanner::new(Arc::new(policy)).current().clone();
        plan.limit = limit;
        plan.classes.iter_mut().for_each(|class| class.limit = limit);
        plan
    }

    /// Goal: the limit doubles each second up to the bound and never falls, for every class.
    #[test]
    fn the_limit_doubles_each_second_up_to_the_bound() {
        let at = |millis| limited(8).decayed(Duration::from_millis(millis));
        assert_eq!((at(0).limit, at(1_000).limit, at(4_000).limit), (8, 16, 128));
        assert_eq!((at(4_000).classes[0].limit, at(4_000).explanation.rule), (128, Rule::Decay));
        let limits = (0..400).map(|step| at(step * 50).limit);
        assert!(limits.is_sorted());
        assert!(!at(12_900).is_open());
        assert!(at(13_000).is_open() && at(13_000).limit == SENTRY_IN_FLIGHT);
        assert_eq!(limited(8).decayed(Duration::MAX).limit, SENTRY_IN_FLIGHT);
        assert_eq!(limited(0).decayed(Duration::from_secs(1)).limit, 2, "a plan that admits none opens too");
    }

    /// Goal: tests that rest on estimates end with the planner that made the estimates.
    #[test]
    fn batches_end_at_once() {
        let test = BatchTest { servers_milli: 1_000, quantile_milli: 1_000, is_whole: false };
        let plan = Plan { decide: Decide::Batch(test), ..limited(SENTRY_IN_FLIGHT) };
        assert!(!plan.is_open());
        assert!(plan.decayed(Duration::ZERO).is_open());
    }

    /// Goal: a restarted planner begins no wider than what it replaces, and may be tighter.
    #[test]
    fn a_new_planner_begins_no_wider() {
        let decaying = limited(2).decayed(Duration::from_secs(1));
        let held = limited(8).held_to(&decaying);
        assert_eq!((held.limit, held.classes[0].limit, held.explanation.rule), (4, 4, Rule::Decay));
        assert_eq!(limited(3).held_to(&decaying), limited(3));
    }
}

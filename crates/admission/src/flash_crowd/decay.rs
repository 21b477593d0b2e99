//! The ceiling of a planner that failed rises until it is removed; see [`limit_plan`](crate::limit_plan).

use super::{Cause, HotSpotLimit, Limit, Mode, Plan, Rule};
use crate::limit_plan::{LimitPlan, OPEN_AFTER, growth};
use flashweir_core::{Duration, Rate};

impl LimitPlan for Plan {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    fn decayed(&self, age: Duration) -> Self {
        if self.is_open() {
            return self.clone();
        }
        let mut plan = self.clone();
        plan.explanation.rule = Rule::Decay;
        if age >= OPEN_AFTER {
            plan.limit = Limit::Open;
            plan.retry_after = Duration::from_secs(1);
            plan.explanation.mode = Mode::Normal;
            plan.explanation.cause = Cause::TooFewSamples;
            plan.explanation.ceiling_rps = None;
            return plan;
        }
        let factor = growth(age);
        let risen = |rate: Rate| Rate::from_per_second(rate.per_second() * factor);
        plan.limit = match &self.limit {
            Limit::Open => Limit::Open,
            Limit::All(rate) => Limit::All(risen(*rate)),
            Limit::HotSpots(spots) => {
                let spots = spots.iter().map(|spot| HotSpotLimit { key: spot.key, rate: risen(spot.rate) });
                Limit::HotSpots(spots.collect())
            }
        };
        plan.explanation.ceiling_rps = self.explanation.ceiling_rps.map(|ceiling_rps| ceiling_rps * factor);
        plan
    }

    fn is_open(&self) -> bool {
        self.limit == Limit::Open
    }

    /// A new planner has no ceiling until it finds the crowd by itself; once it has one, that rests on its
    /// own judgement.
    fn held_to(self, decaying: &Self) -> Self {
        if decaying.is_open() || !self.is_open() {
            return self;
        }
        let (mode, cause, rule) =
            (decaying.explanation.mode, decaying.explanation.cause, decaying.explanation.rule);
        let mut plan = self;
        plan.limit = decaying.limit.clone();
        plan.retry_after = decaying.retry_after;
        plan.explanation.mode = mode;
        plan.explanation.cause = cause;
        plan.explanation.rule = rule;
        plan.explanation.ceiling_rps = decaying.explanation.ceiling_rps;
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn limited() -> Plan {
        let mut plan = Plan { epoch: 7, limit: Limit::All(Rate::from_per_second(100.0)), ..Plan::open(2) };
        plan.explanation.mode = Mode::Alarm;
        plan.explanation.rule = Rule::Cut;
        plan.explanation.ceiling_rps = Some(100.0);
        plan
    }

    fn rate(plan: &Plan) -> f64 {
        match &plan.limit {
            Limit::All(rate) => rate.per_second(),
            Limit::HotSpots(spots) => spots[0].rate.per_second(),
            Limit::Open => f64::INFINITY,
        }
    }

    /// Goal: the ceiling doubles each second, never falls, and is removed after ten.
    #[test]
    fn the_ceiling_doubles_each_second_until_it_is_removed() {
        let at = |millis| limited().decayed(Duration::from_millis(millis));
        assert_eq!(rate(&at(0)), 100.0);
        assert_eq!(rate(&at(1_000)), 200.0);
        assert_eq!(rate(&at(3_000)), 800.0);
        assert_eq!(at(3_000).explanation.ceiling_rps, Some(800.0));
        assert_eq!((at(3_000).explanation.rule, at(3_000).explanation.mode), (Rule::Decay, Mode::Alarm));
        let rates = (0..200).map(|step| rate(&at(step * 50)));
        assert!(rates.is_sorted_by(|one, next| one < next));
        assert!(!at(9_999).is_open());
        assert!(at(10_000).is_open());
        assert_eq!((at(10_000).explanation.ceiling_rps, at(10_000).explanation.mode), (None, Mode::Normal));
        assert_eq!(at(10_000).decayed(Duration::MAX), at(10_000));
        assert!(limited().decayed(Duration::MAX).is_open());
    }

    /// Goal: ceilings on hot-spots rise in the same way, each from its own rate.
    #[test]
    fn ceilings_on_hot_spots_rise_too() {
        let spot = HotSpotLimit { key: 3, rate: Rate::from_per_second(10.0) };
        let plan = Plan { limit: Limit::HotSpots(vec![spot]), ..limited() };
        assert_eq!(rate(&plan.decayed(Duration::from_secs(2))), 40.0);
    }

    /// Goal: a restarted planner neither opens the door at once nor is overruled once it has a ceiling.
    #[test]
    fn a_new_planners_open_plan_keeps_the_decaying_ceiling() {
        let decaying = limited().decayed(Duration::from_secs(1));
        let held = Plan { epoch: 9, ..Plan::open(2) }.held_to(&decaying);
        assert_eq!((held.epoch, rate(&held), held.explanation.rule), (9, 200.0, Rule::Decay));
        let own = Plan { limit: Limit::All(Rate::from_per_second(500.0)), ..limited() };
        assert_eq!(own.clone().held_to(&decaying), own);
        let open = Plan::open(2);
        assert_eq!(open.clone().held_to(&limited().decayed(OPEN_AFTER)), open);
    }
}

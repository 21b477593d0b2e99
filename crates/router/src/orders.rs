//! Converts the planner's plan to the gate's orders, place by place.

use crate::destinations::Destinations;
use crate::places::Places;
use flashweir_admission::flash_crowd::{HotSpotLimit, Limit, Plan, burst};
use flashweir_core::{Duration, Rate};
use flashweir_kernel::gate::{Ceiling, ExcessTreatment, ServicePlan, Tiers};
use std::net::SocketAddr;

/// The place whose buckets all others are charged to under one ceiling for all.
const COMMON_PLACE: usize = 0;

/// Manner in which connections are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) refusal: ExcessTreatment,
    /// Decide and count, let everything in.
    pub(crate) shadow: bool,
    /// Ranks of connections; one: all are equal.
    pub(crate) ranks: usize,
}

/// The hot-spots a plan limits, those that can be named, the hottest first.
pub(crate) fn hot_spots(plan: &Plan, destinations: &Destinations) -> Vec<(SocketAddr, Rate)> {
    let Limit::HotSpots(spots) = &plan.limit else { return Vec::new() };
    let named = |spot: &HotSpotLimit| Some((destinations.of(spot.key)?, spot.rate));
    spots.iter().filter_map(named).collect()
}

/// The gate's order for each place. Hot-spots without a separate place ([`Places::give`]) are let in.
pub(crate) fn orders(
    plan: &Plan,
    hot_spots: &[(SocketAddr, Rate)],
    places: &Places,
    manner: Manner,
) -> Vec<ServicePlan> {
    // In whole seconds, as clients read it: the kernel's answers are written again only when those change.
    let retry_after = Duration::from_secs(plan.retry_after.as_millis().div_ceil(1_000) as u64);
    let refusing = |tiers: Tiers| ServicePlan {
        tiers,
        refusal: manner.refusal,
        shadow: manner.shadow,
        retry_after,
        ..ServicePlan::default()
    };
    let tiers = |rate: Rate| Tiers::under(ceiling(rate), manner.ranks);
    let order = |place: usize| match &plan.limit {
        Limit::Open => ServicePlan::default(),
        Limit::All(rate) if place == COMMON_PLACE => refusing(tiers(*rate)),
        Limit::All(_) => ServicePlan { charged_to: Some(COMMON_PLACE), ..refusing(Tiers::OPEN) },
        Limit::HotSpots(_) => {
            let is_here = |(destination, _): &&(SocketAddr, Rate)| places.of(*destination) == Some(place);
            match hot_spots.iter().find(is_here) {
                Some((_, rate)) => refusing(tiers(*rate)),
                None => ServicePlan::default(),
            }
        }
    };
    (0..places.count()).map(order).collect()
}

fn ceiling(rate: Rate) -> Ceiling {
    Ceiling { rate, burst: u32::try_from(burst(rate)).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Hasher64;

    const MANNER: Manner = Manner { refusal: ExcessTreatment::Answer, shadow: false, ranks: 1 };

    fn numbered(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, number], 80))
    }

    fn plan(limit: Limit) -> Plan {
        Plan { epoch: 7, limit, retry_after: Duration::from_millis(2_100), ..Plan::open(1) }
    }

    fn rps(rate: f64) -> Rate {
        Rate::from_per_second(rate)
    }

    /// Ceilings of these orders: the rate and burst of each place that has one.
    fn ceilings(orders: &[ServicePlan]) -> Vec<Option<(f64, u32)>> {
        let ceiling =
            |order: &ServicePlan| order.tiers.ceilings().first().map(|it| (it.rate.per_second(), it.burst));
        orders.iter().map(ceiling).collect()
    }

    #[test]
    fn an_open_plan_lets_everything_in() {
        let places = Places::new(&[numbered(1), numbered(2)]);
        assert_eq!(orders(&plan(Limit::Open), &[], &places, MANNER), [ServicePlan::default(); 2]);
    }

    #[test]
    fn one_ceiling_for_all_is_one_bucket() {
        let places = Places::new(&[numbered(1), numbered(2), numbered(3)]);
        let orders = orders(&plan(Limit::All(rps(100.0))), &[], &places, MANNER);
        assert_eq!(ceilings(&orders), [Some((100.0, 25)), None, None]);
        assert_eq!(orders.iter().map(|order| order.charged_to).collect::<Vec<_>>(), [None, Some(0), Some(0)]);
        for order in orders {
            assert_eq!((order.refusal, order.retry_after), (ExcessTreatment::Answer, Duration::from_secs(3)));
        }
    }

    #[test]
    fn hot_spots_have_ceilings_of_their_own_and_bystanders_none() {
        let mut destinations = Destinations::new(Hasher64::new(1, 2));
        let limits = [(2, 40.0), (9, 8.0)]
            .map(|(number, rate)| HotSpotLimit { key: destinations.key(numbered(number)), rate: rps(rate) });
        let unknown = HotSpotLimit { key: 1, rate: rps(5.0) };
        let plan = plan(Limit::HotSpots([limits.as_slice(), &[unknown]].concat()));
        let hot = hot_spots(&plan, &destinations);
        assert_eq!(hot, [(numbered(2), rps(40.0)), (numbered(9), rps(8.0))]);
        let mut places = Places::new(&[numbered(1), numbered(2), "0.0.0.0:80".parse().expect("an address")]);
        places.give(&[numbered(2), numbered(9)]);
        let orders = orders(&plan, &hot, &places, MANNER);
        assert_eq!(ceilings(&orders), [None, Some((40.0, 10)), None, Some((8.0, 10))]);
        assert_eq!(orders[0], ServicePlan::default());
    }

    #[test]
    fn with_ranks_a_ceiling_is_one_in_tiers() {
        let places = Places::new(&[numbered(1), numbered(2)]);
        let ranked = Manner { ranks: 3, ..MANNER };
        let orders = orders(&plan(Limit::All(rps(100.0))), &[], &places, ranked);
        assert_eq!((orders[0].tiers.ceilings().len(), orders[0].tiers.total_rate()), (3, Some(rps(100.0))));
        assert_eq!((orders[1].charged_to, orders[1].tiers), (Some(0), Tiers::OPEN));
    }

    #[test]
    fn a_shadow_plan_refuses_nothing_but_says_what_it_would() {
        let places = Places::new(&[numbered(1)]);
        let shadow = Manner { shadow: true, ..MANNER };
        let orders = orders(&plan(Limit::All(rps(100.0))), &[], &places, shadow);
        assert!(orders[0].shadow && !orders[0].tiers.is_open());
    }
}

//! Rate that the pipeline can use, by rank: arrivals beyond it can only be refused.
//!
//! ```text
//! total = min(ceiling of NEWS on all, sum over the services of: learned capacity where its sentry refuses,
//!                                                             what is offered where it does not)
//! ```
//!
//! The ranks of a service fill its part from the most important down, so rank r can use what ranks 0…r are
//! offered, as far as it fits. The kernel's gate, an upstream node and a waiting room get this rate, each
//! with its own headroom; no other place derives it.

use super::StageName;
use crate::flash_crowd::{self, Limit};
use flashweir_core::limits::CLASSES;

/// Demand and capacity of one service.
#[derive(Clone, Debug, Default)]
pub struct ServiceDemand {
    /// Requests offered per second, at the door, by rank; what is beyond counts as the last.
    pub offered_rps: [f64; CLASSES],
    /// Of these, refused by the sentry, or in its shadow.
    pub refused_rps: f64,
    /// Requests per second that can be completed, as learned; 0 if unknown.
    pub capacity_rps: f64,
    /// The sentry only records.
    pub is_shadow: bool,
}

/// Requests per second that lead to an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissibleRate {
    /// Of all ranks.
    pub total_rps: f64,
    /// Of each rank by itself, 0 the most important; they add up to the total.
    pub by_rank_rps: [f64; CLASSES],
    /// The stage whose limit that is.
    pub stage: StageName,
}

impl ServiceDemand {
    fn refuses(&self) -> bool {
        self.refused_rps > 0.0 && self.capacity_rps > 0.0
    }
}

/// The admissible rate under the plans in force; none while no stage refuses anything. A stage in shadow
/// counts only `with_shadow`. A ceiling on hot spots counts as none: who asks for less than a request does
/// not know the host.
#[must_use]
pub fn admissible_rate(
    news: &flash_crowd::Plan,
    news_is_shadow: bool,
    services: &[ServiceDemand],
    with_shadow: bool,
) -> Option<AdmissibleRate> {
    let counts = |is_shadow: bool| with_shadow || !is_shadow;
    let ceiling_rps = match &news.limit {
        Limit::All(rate) if counts(news_is_shadow) => Some(rate.per_second()),
        Limit::All(_) | Limit::HotSpots(_) | Limit::Open => None,
    };
    let is_short = |service: &ServiceDemand| counts(service.is_shadow) && service.refuses();
    let mut by_rank_rps = [0.0; CLASSES];
    for service in services {
        let mut left_rps = if is_short(service) { service.capacity_rps } else { f64::INFINITY };
        for (all_rps, offered_rps) in by_rank_rps.iter_mut().zip(service.offered_rps) {
            let part_rps = offered_rps.min(left_rps);
            *all_rps += part_rps;
            left_rps -= part_rps;
        }
    }
    let sum_rps: f64 = by_rank_rps.iter().sum();
    let by_sentries = services.iter().any(is_short);
    match ceiling_rps {
        Some(ceiling_rps) if !by_sentries || ceiling_rps <= sum_rps => {
            let mut left_rps = ceiling_rps;
            for rate in &mut by_rank_rps {
                *rate = rate.min(left_rps);
                left_rps -= *rate;
            }
            // More may come than came: what is left is the least important's.
            by_rank_rps[CLASSES - 1] += left_rps;
            Some(AdmissibleRate { total_rps: ceiling_rps, by_rank_rps, stage: StageName::FlashCrowd })
        }
        _ if by_sentries => {
            Some(AdmissibleRate { total_rps: sum_rps, by_rank_rps, stage: StageName::Sentry })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash_crowd::Plan;
    use flashweir_core::Rate;
    use proptest::prelude::*;

    fn ceiling(rps: f64) -> Plan {
        Plan { limit: Limit::All(Rate::from_per_second(rps)), ..Plan::open(1) }
    }

    /// Ten times as many as the origin can do, a fifth of them important.
    fn crowd() -> ServiceDemand {
        let mut offered_rps = [0.0; CLASSES];
        (offered_rps[0], offered_rps[1]) = (20.0, 980.0);
        ServiceDemand { offered_rps, refused_rps: 900.0, capacity_rps: 100.0, is_shadow: false }
    }

    fn of(news: &Plan, services: &[ServiceDemand]) -> Option<(f64, StageName)> {
        admissible_rate(news, false, services, false).map(|rate| (rate.total_rps, rate.stage))
    }

    #[test]
    fn the_lower_of_ceiling_and_capacity_counts_and_says_whose_it_is() {
        let open = Plan::open(1);
        assert_eq!(of(&open, &[crowd()]), Some((100.0, StageName::Sentry)));
        assert_eq!(of(&ceiling(50.0), &[crowd()]), Some((50.0, StageName::FlashCrowd)));
        assert_eq!(of(&ceiling(150.0), &[crowd()]), Some((100.0, StageName::Sentry)));
        let content = ServiceDemand { refused_rps: 0.0, ..crowd() };
        assert_eq!(of(&open, core::slice::from_ref(&content)), None);
        assert_eq!(of(&ceiling(1_500.0), &[content]), Some((1_500.0, StageName::FlashCrowd)));
        assert_eq!(of(&open, &[ServiceDemand { capacity_rps: 0.0, ..crowd() }]), None, "nothing is known");
    }

    #[test]
    fn a_service_that_refuses_nothing_keeps_what_it_is_offered_and_the_important_go_first() {
        let mut other = ServiceDemand { capacity_rps: 500.0, ..ServiceDemand::default() };
        other.offered_rps[0] = 30.0;
        let rate = admissible_rate(&Plan::open(1), false, &[crowd(), other], false).expect("short");
        assert_eq!((rate.total_rps, rate.by_rank_rps[0], rate.by_rank_rps[1]), (130.0, 50.0, 80.0));
    }

    #[test]
    fn a_stage_in_shadow_counts_only_when_asked_for() {
        let shadow = ServiceDemand { is_shadow: true, ..crowd() };
        assert_eq!(admissible_rate(&Plan::open(1), false, core::slice::from_ref(&shadow), false), None);
        let rate = admissible_rate(&ceiling(300.0), true, &[shadow], true).expect("short");
        assert_eq!((rate.total_rps, rate.stage), (100.0, StageName::Sentry));
    }

    proptest! {
        /// The ranks add up to the total for every measurement, and an important rank gets all it asks for
        /// before a less important one of the same service gets anything more than is left.
        #[test]
        fn the_ranks_add_up(offered in proptest::array::uniform4(0.0f64..1e6), capacity_rps in 0.1f64..1e6, news in 0.1f64..1e6) {
            let mut service = ServiceDemand { refused_rps: 1.0, capacity_rps, ..ServiceDemand::default() };
            service.offered_rps[..4].copy_from_slice(&offered);
            for plan in [Plan::open(1), ceiling(news)] {
                let rate = admissible_rate(&plan, false, &[service.clone()], false).expect("short");
                let sum: f64 = rate.by_rank_rps.iter().sum();
                prop_assert!((sum - rate.total_rps).abs() <= 1e-6 * rate.total_rps.max(1.0));
                prop_assert!(rate.by_rank_rps[0] >= offered[0].min(rate.total_rps) - 1e-6);
            }
        }
    }
}

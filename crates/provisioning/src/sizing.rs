//! Number of servers that one application needs for given rates of its classes.

use crate::demand::{ClassRates, Demand};
use crate::policy::ApplicationPolicy;
use crate::queueing::{ArrivalStream, ServiceTime, WaitModel, size};
use crate::revenue::{ClassDemand, RevenueCurve};
use alloc::vec::Vec;
use flashweir_core::Duration;
use flashweir_core::limits::PROVISIONED_SERVERS;

/// Utilisation for which servers are planned where no number of them meets the target: then requests are
/// served as fast as possible.
const WORK_ALONE_UTILISATION: f64 = 0.7;

/// Servers are never planned to be busier than this (ρ_max; the paper has no bound, C-6): near 1 the wait is
/// bounded on paper, and takes minutes to shrink after any error of the rate.
const UTILISATION_MAX: f64 = 0.95;

/// Servers for a forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sized {
    pub(crate) servers: u32,
    /// None where the target is infeasible.
    pub(crate) model: Option<WaitModel>,
}

/// Servers for these rates with this target for the 95th percentile. None where no service time was measured.
///
/// Important classes go first, so a class waits only for those before it and for itself: each target is
/// tested against the load down to its class, and the most demanding decides.
pub(crate) fn sized(
    policy: &ApplicationPolicy,
    demand: &Demand,
    rates: &ClassRates,
    target: Duration,
) -> Option<Sized> {
    let (mut rate_rps, mut work, mut squares) = (0.0, 0.0, 0.0);
    let mut needed = Sized { servers: 0, model: Some(WaitModel::AllenCunneen) };
    for (class, value) in policy.classes.iter().enumerate() {
        let (mean_s, variation) = demand.service(class)?;
        rate_rps += rates[class];
        work += rates[class] * mean_s;
        squares += rates[class] * mean_s * mean_s * (1.0 + variation);
        if rate_rps <= 0.0 {
            continue;
        }
        let mean_s = work / rate_rps;
        let squared_variation = (squares / rate_rps / (mean_s * mean_s) - 1.0).max(0.0);
        let stream = ArrivalStream { rate_rps, squared_variation: demand.gap_variation() };
        let service = ServiceTime { mean_s, squared_variation };
        let target_mean_s = value.target.unwrap_or(target).as_secs_f64() / demand.quantile_factor();
        let sized = size(stream, service, target_mean_s, policy.dispatch, PROVISIONED_SERVERS);
        let is_infeasible = sized.is_none();
        let servers = sized.map_or_else(
            // `as` saturates, far above any pool.
            || libm::ceil(work / WORK_ALONE_UTILISATION) as u32,
            |sized| sized.servers.max(libm::ceil(work / UTILISATION_MAX) as u32),
        );
        if servers >= needed.servers {
            needed = Sized { servers, model: sized.map(|sized| sized.model) };
        }
        if is_infeasible {
            needed.model = None;
        }
    }
    Some(needed)
}

/// Revenue of the application by number of servers, with all of this demand served by `servers`.
pub(crate) fn revenue_curve(
    policy: &ApplicationPolicy,
    demand: &Demand,
    rates: &ClassRates,
    servers: u32,
) -> RevenueCurve {
    let class = |(class, value): (usize, &crate::policy::ClassValue)| ClassDemand {
        revenue: value.revenue,
        rate_rps: rates[class],
        guaranteed_rps: value.guaranteed_rps,
        service_s: demand.service(class).map_or(0.0, |(mean_s, _)| mean_s),
    };
    let classes: Vec<ClassDemand> = policy.classes.iter().enumerate().map(class).collect();
    let work: f64 = classes.iter().map(|class| class.rate_rps * class.service_s).sum();
    RevenueCurve::new(&classes, work / f64::from(servers.max(1)))
}

/// Revenue of a server per second while it serves this mix of classes; of no demand, while it serves the most
/// important class.
pub(crate) fn revenue_per_server_s(policy: &ApplicationPolicy, demand: &Demand, rates: &ClassRates) -> f64 {
    let (mut revenue, mut work_s) = (0.0, 0.0);
    let none = rates.iter().all(|rate| *rate <= 0.0);
    for (class, value) in policy.classes.iter().enumerate() {
        let rate = if none { f64::from(u8::from(class == 0)) } else { rates[class] };
        revenue += rate * value.revenue;
        work_s += rate * demand.service(class).map_or(0.0, |(mean_s, _)| mean_s);
    }
    // Without known service times the servers may be worth much.
    if work_s > 0.0 { revenue / work_s } else { f64::INFINITY }
}

//! Counts of the programs in the kernel, in the words of the metrics: places by their role, never by an
//! address.

use crate::places::Places;
use flashweir_config::Kernel;
use flashweir_core::kernel_counts::GateCounts;
use flashweir_kernel::gate::ServicePlan;
use flashweir_kernel::observe::Observed;
use flashweir_runtime::kernel::shown_ranks;
use flashweir_telemetry::{KernelFlows, KernelService};

/// Every place with what was counted there and its own ceiling.
pub(crate) fn services(
    places: &Places,
    counts: &[GateCounts],
    orders: &[ServicePlan],
    kernel: &Kernel,
) -> Vec<KernelService> {
    let with_orders = counts.iter().zip(orders).enumerate();
    let service = |(place, (counts, order)): (usize, (&GateCounts, &ServicePlan))| KernelService {
        name: places.name(place),
        ceiling_per_s: order.tiers.total_rate().map(|rate| rate.per_second()),
        counts: *counts,
        ranks: shown_ranks(kernel),
    };
    with_orders.map(service).collect()
}

/// All flows so far, and those of one interval more.
pub(crate) fn with_flows(so_far: KernelFlows, observed: &Observed) -> KernelFlows {
    let seen = &observed.flows;
    KernelFlows {
        tracked: seen.tracked,
        begun: so_far.begun + seen.begun,
        evicted: so_far.evicted + seen.evicted,
        expired: so_far.expired + seen.expired,
        left_out: so_far.left_out + seen.left_out,
        attempts_left_out: so_far.attempts_left_out + observed.attempts_left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::{Overrides, RouterConfig};
    use flashweir_core::Rate;
    use flashweir_kernel::gate::{Ceiling, Tiers};
    use flashweir_kernel::observe::FlowCounts;

    #[test]
    fn places_are_named_by_role_and_have_their_own_ceiling() {
        let mut places = Places::new(&["0.0.0.0:80".parse().expect("an address")]);
        places.give(&["10.0.0.1:80".parse().expect("an address")]);
        let tiers = Tiers::one(Ceiling { rate: Rate::from_per_second(9.0), burst: 10 });
        let orders = [ServicePlan::default(), ServicePlan { tiers, ..ServicePlan::default() }];
        let counts = [GateCounts { offered: 3, ..GateCounts::default() }, GateCounts::default()];
        let text = "kernel.interface = 'eth0'\nkernel.protect = ['0.0.0.0:80']\n\
                    kernel.tier = [{ rank = 0, ports = [80] }]\n";
        let config = RouterConfig::from_toml_with(text, "router.toml", &Overrides::default());
        let kernel = config.expect("a configuration").kernel;
        let services = services(&places, &counts, &orders, &kernel);
        assert_eq!(services[0].tiers().len(), 2, "what is listed, and all others");
        assert_eq!((services[0].name.as_str(), services[0].counts.offered), ("server_0", 3));
        assert_eq!((services[1].name.as_str(), services[1].ceiling_per_s), ("hot_spot_0", Some(9.0)));
    }

    #[test]
    fn flows_add_up_over_intervals_and_so_does_what_had_no_place() {
        let flows = FlowCounts { tracked: 5, begun: 4, evicted: 1, expired: 2, left_out: 3 };
        let observed = Observed { flows, attempts_left_out: 7, ..Observed::default() };
        let once = with_flows(KernelFlows::default(), &observed);
        let twice =
            KernelFlows { tracked: 5, begun: 8, evicted: 2, expired: 4, left_out: 6, attempts_left_out: 14 };
        assert_eq!(with_flows(once, &observed), twice);
    }
}

//! Revenue per server-second of the least important request that is let in.
//!
//! The most that can be earned is a fractional knapsack: classes by revenue for a second of service, each as
//! far as it is offered, until the servers are full (Cataclysm §4, the fluid model). The class that fills
//! them sets the price.

use alloc::vec::Vec;

/// One class's demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Of one request.
    pub(super) revenue: f64,
    /// Service time of one request, seconds.
    pub(super) cost_s: f64,
    pub(super) offered_rps: f64,
}

/// Revenue of a market.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Market {
    /// Revenue of the marginal server-second; 0 while there is room for all.
    pub(super) price: f64,
    /// Revenue per second of all that can be served.
    pub(super) revenue_per_s: f64,
}

/// Fills the servers with what earns most.
pub(super) fn fill(servers: f64, demands: &[Demand]) -> Market {
    let mut dearest: Vec<&Demand> = demands.iter().filter(|demand| demand.offered_rps > 0.0).collect();
    dearest.sort_by(|one, other| other.density().total_cmp(&one.density()));
    let mut market = Market { price: 0.0, revenue_per_s: 0.0 };
    let mut left = servers.max(0.0);
    for demand in dearest {
        let wanted = demand.offered_rps * demand.cost_s;
        let served = wanted.min(left);
        market.revenue_per_s += served * demand.density();
        left -= served;
        if served < wanted {
            market.price = demand.density();
            break;
        }
    }
    market
}

impl Demand {
    fn density(&self) -> f64 {
        self.revenue / self.cost_s.max(1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demands() -> impl Strategy<Value = Vec<Demand>> {
        let demand = (0.01f64..100.0, 0.0f64..2.0, 0.0f64..1e4);
        proptest::collection::vec(
            demand.prop_map(|(revenue, cost_s, offered_rps)| Demand { revenue, cost_s, offered_rps }),
            0..16,
        )
    }

    proptest! {
        /// Worth more, or with more servers, never earns less; and who could be served for more than the
        /// price, is.
        #[test]
        fn more_servers_and_dearer_requests_never_earn_less(
            demands in demands(), servers in 0.0f64..1e3, which in 0usize..16, more in 0.0f64..50.0,
        ) {
            let market = fill(servers, &demands);
            let slack = 1e-9 * market.revenue_per_s.max(1.0);
            prop_assert!(fill(servers + more, &demands).revenue_per_s >= market.revenue_per_s - slack);
            prop_assert!(fill(servers + more, &demands).price <= market.price || market.price == 0.0);
            let mut dearer = demands.clone();
            if let Some(demand) = dearer.get_mut(which) {
                demand.revenue += more;
            }
            prop_assert!(fill(servers, &dearer).revenue_per_s >= market.revenue_per_s - slack);
            let wanted: f64 = demands.iter().map(|demand| demand.offered_rps * demand.cost_s).sum();
            prop_assert!(wanted > servers * (1.0 - 1e-9) || market.price == 0.0);
        }
    }

    #[test]
    fn the_class_that_fills_the_servers_sets_the_price() {
        let gold = Demand { revenue: 10.0, cost_s: 0.1, offered_rps: 5.0 };
        let silver = Demand { revenue: 3.0, cost_s: 0.1, offered_rps: 20.0 };
        assert_eq!(fill(3.0, &[silver, gold]).price, 0.0);
        assert_eq!(fill(2.0, &[silver, gold]), Market { price: 30.0, revenue_per_s: 95.0 });
        assert_eq!(fill(0.25, &[silver, gold]).price, 100.0);
        assert_eq!(fill(0.0, &[]), Market { price: 0.0, revenue_per_s: 0.0 });
    }
}

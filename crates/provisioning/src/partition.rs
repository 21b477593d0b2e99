//! Division of a pool of servers among applications.
//!
//! **Decides** n_a for each application a, with Σ n_a ≤ pool and n_min ≤ n_a ≤ n_max. **From** each
//! application's [`RevenueCurve`], the servers that it has, and what moving one costs. **The rule:** maximise
//! Σ (H·rev_a(n_a) − move · started_a), where started_a are the servers that a would have beyond those of
//! today and H is the time for which the partition is made. Each term is concave in n_a (a started server is
//! worth less by a constant), so giving one server after another to the application that gains most is exact,
//! not a heuristic; the tests compare it with all partitions there are.
//!
//! **Published:** the paper withholds its partition. [`published`] is the reading that its experiment
//! supports: nothing is taken from an application that is not overloaded, no cost of moving, ties by order.
//!
//! **Repairs.** *P-1*: what is guaranteed is counted before the partition, as part of each minimum; minimums
//! that exceed the pool are scaled down together and the plan says so. *P-2*: a server that starts earns
//! nothing until it is up: its first H is shorter by the start-up time. So a server moves only where it earns
//! more by the factor H/(H − start-up), which is a hysteresis in the unit of revenue. *P-3*: of equal gains
//! the application that refuses the larger part of its requests goes first.
//!
//! **Cost** O(A·classes + N (classes + log A)) for A applications and N servers; 32 bytes an application.
//! **Failure:** an application whose demand is unknown keeps its minimum. Source: Cataclysm §4.1.

use crate::revenue::RevenueCurve;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Claim of one application on the pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim<'a> {
    /// Its revenue by number of servers.
    pub curve: &'a RevenueCurve,
    /// Servers that it has, those that are starting included.
    pub current: u32,
    /// Servers that it gets in any case, if the pool has them.
    pub servers_min: u32,
    /// Servers that it gets at most.
    pub servers_max: u32,
    /// The part of its requests that is refused now, 0 to 1: decides between equal gains.
    pub refused_share: f64,
    /// Seconds in which a server that it is given starts and earns nothing.
    pub start_up_s: f64,
}

/// Cost of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MoveCost {
    /// Seconds for which the partition is made (H).
    pub horizon_s: f64,
    /// Revenue that starting a server costs besides.
    pub revenue: f64,
}

/// The servers of each application, in the order of the claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Servers.
    pub servers: Vec<u32>,
    /// True if the pool is too small for all minimums and guarantees.
    pub is_short_of_minimum: bool,
}

/// The partition with the largest revenue after the cost of moves.
#[must_use]
pub fn partition(pool: u32, claims: &[Claim<'_>], cost: MoveCost) -> Partition {
    let minimums: Vec<u32> = claims.iter().map(Claim::minimum).collect();
    let (mut servers, is_short_of_minimum) = granted_minimums(pool, &minimums);
    // Holds because granted minimums never exceed the pool.
    let mut left = pool - servers.iter().sum::<u32>();
    let mut gains: BinaryHeap<Gain> =
        (0..claims.len()).filter_map(|claim| claims[claim].gain(claim, servers[claim], cost)).collect();
    while left > 0
        && let Some(Gain { claim, .. }) = gains.pop()
    {
        servers[claim] += 1;
        left -= 1;
        gains.extend(claims[claim].gain(claim, servers[claim], cost));
    }
    Partition { servers, is_short_of_minimum }
}

/// The published partition: every application keeps what it has, and free servers go one by one to where they
/// earn most.
#[must_use]
pub fn published(pool: u32, claims: &[Claim<'_>]) -> Partition {
    let kept: Vec<Claim<'_>> = claims
        .iter()
        .map(|claim| {
            let needed = claim.curve.saturating_servers().max(claim.servers_min);
            Claim {
                servers_min: claim.current.min(needed),
                refused_share: 0.0,
                start_up_s: 0.0,
                ..claim.clone()
            }
        })
        .collect();
    partition(pool, &kept, MoveCost { horizon_s: 1.0, ..MoveCost::default() })
}

impl Claim<'_> {
    fn minimum(&self) -> u32 {
        self.servers_min.max(self.curve.guaranteed_servers()).min(self.servers_max)
    }

    /// Gain from the server after `servers` in that time; none where it gains nothing.
    fn gain(&self, claim: usize, servers: u32, cost: MoveCost) -> Option<Gain> {
        if servers >= self.servers_max {
            return None;
        }
        let marginal = self.curve.marginal_per_s(servers);
        let gain = if servers < self.current {
            marginal * cost.horizon_s
        } else {
            marginal * (cost.horizon_s - self.start_up_s).max(0.0) - cost.revenue
        };
        (gain > GAIN_MIN * cost.horizon_s).then_some(Gain { gain, refused_share: self.refused_share, claim })
    }
}

/// Revenue per second below this is a rounding error of the curve.
const GAIN_MIN: f64 = 1e-9;

/// The minimums, scaled down together where the pool is too small for them: rounded down, and what is left
/// goes one by one to the largest remainders.
fn granted_minimums(pool: u32, minimums: &[u32]) -> (Vec<u32>, bool) {
    let total: u64 = minimums.iter().map(|&minimum| u64::from(minimum)).sum();
    if total <= u64::from(pool) {
        return (minimums.to_vec(), false);
    }
    let parts = |minimum: u32| u64::from(minimum) * u64::from(pool);
    // At most the minimum itself, so it fits.
    let mut granted: Vec<u32> = minimums.iter().map(|&minimum| (parts(minimum) / total) as u32).collect();
    let mut by_remainder: Vec<usize> = (0..minimums.len()).collect();
    by_remainder.sort_by_key(|&claim| core::cmp::Reverse(parts(minimums[claim]) % total));
    let left = pool - granted.iter().sum::<u32>();
    by_remainder.into_iter().take(left as usize).for_each(|claim| granted[claim] += 1);
    (granted, true)
}

/// Gain from the next server of an application.
#[derive(Clone, Copy, Debug)]
struct Gain {
    gain: f64,
    refused_share: f64,
    claim: usize,
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        let by_refused = self.refused_share.total_cmp(&other.refused_share);
        by_gain.then(by_refused).then(other.claim.cmp(&self.claim))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Gain {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revenue::ClassDemand;

    fn curve(revenue: f64, servers: f64) -> RevenueCurve {
        RevenueCurve::new(
            &[ClassDemand { revenue, rate_rps: servers, service_s: 1.0, ..ClassDemand::default() }],
            1.0,
        )
    }

    fn claim(curve: &RevenueCurve, current: u32) -> Claim<'_> {
        Claim { curve, current, servers_min: 0, servers_max: u32::MAX, refused_share: 0.0, start_up_s: 0.0 }
    }

    const FREE: MoveCost = MoveCost { horizon_s: 60.0, revenue: 0.0 };

    #[test]
    fn servers_go_where_they_earn_most_and_what_earns_nothing_stays_free() {
        let curves = [curve(1.0, 6.0), curve(2.0, 3.6)];
        let claims = curves.each_ref().map(|curve| claim(curve, 0));
        assert_eq!(partition(7, &claims, FREE).servers, [3, 4]);
        assert_eq!(partition(20, &claims, FREE).servers, [6, 4]);
        assert_eq!(partition(0, &claims, FREE).servers, [0, 0]);
    }

    #[test]
    fn a_move_has_to_earn_its_start_up() {
        let curves = [curve(1.0, 10.0), curve(1.2, 10.0)];
        let claims = [claim(&curves[0], 10), claim(&curves[1], 0)];
        assert_eq!(partition(10, &claims, FREE).servers, [0, 10]);
        let slow = claims.map(|claim| Claim { start_up_s: 20.0, ..claim });
        assert_eq!(partition(10, &slow, FREE).servers, [10, 0]);
    }

    #[test]
    fn minimums_that_exceed_the_pool_are_scaled_together_and_reported() {
        let curve = curve(0.0, 0.0);
        let claims = [6, 3, 3].map(|servers_min| Claim { servers_min, ..claim(&curve, 0) });
        let scaled = partition(6, &claims, FREE);
        assert_eq!((scaled.servers.as_slice(), scaled.is_short_of_minimum), ([3, 2, 1].as_slice(), true));
        assert!(!partition(12, &claims, FREE).is_short_of_minimum);
    }

    #[test]
    fn of_equal_gains_the_one_that_refuses_more_goes_first() {
        let curve = curve(1.0, 5.0);
        let claims = [0.1, 0.5].map(|refused_share| Claim { refused_share, ..claim(&curve, 0) });
        assert_eq!(partition(5, &claims, FREE).servers, [0, 5]);
        // The published one goes by order, and takes nothing from an application that needs it.
        assert_eq!(published(5, &claims).servers, [5, 0]);
        assert_eq!(
            published(5, &[Claim { current: 3, ..claims[0].clone() }, claims[1].clone()]).servers,
            [5, 0]
        );
    }
}

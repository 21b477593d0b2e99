//! Goal: the partition of a pool is the best there is and keeps every bound, for any claims. Method: random
//! small pools against all partitions, counted out; random large ones against the invariants alone.

use crate::partition::{Claim, MoveCost, Partition, partition, published};
use crate::revenue::{ClassDemand, RevenueCurve};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Application {
    classes: Vec<ClassDemand>,
    utilisation: f64,
    current: u32,
    servers_min: u32,
    servers_max: u32,
    refused_share: f64,
    start_up_s: f64,
}

fn applications(
    count: std::ops::Range<usize>,
    rate_max_rps: f64,
    servers: u32,
) -> impl Strategy<Value = Vec<Application>> {
    let class = (0.0f64..10.0, 0.0..rate_max_rps, prop_oneof![Just(0.0), 0.0f64..50.0], 0.001f64..0.1);
    let class = class.prop_map(|(revenue, rate_rps, guaranteed_rps, service_s)| ClassDemand {
        revenue,
        rate_rps,
        guaranteed_rps,
        service_s,
    });
    let bounds = (
        0.3f64..1.0,
        0..servers,
        0..servers / 2,
        prop_oneof![Just(u32::MAX), 1..servers],
        0.0f64..1.0,
        0.0f64..120.0,
    );
    let application = (vec(class, 1..4), bounds).prop_map(
        |(classes, (utilisation, current, servers_min, servers_max, refused_share, start_up_s))| {
            Application { classes, utilisation, current, servers_min, servers_max, refused_share, start_up_s }
        },
    );
    vec(application, count)
}

fn costs() -> impl Strategy<Value = MoveCost> {
    (10.0f64..1_800.0, prop_oneof![Just(0.0), 0.0f64..5_000.0])
        .prop_map(|(horizon_s, revenue)| MoveCost { horizon_s, revenue })
}

fn with_claims<T>(applications: &[Application], act: impl FnOnce(&[Claim<'_>]) -> T) -> T {
    let curves: Vec<RevenueCurve> =
        applications.iter().map(|it| RevenueCurve::new(&it.classes, it.utilisation)).collect();
    let claims: Vec<Claim<'_>> = applications
        .iter()
        .zip(&curves)
        .map(|(it, curve)| Claim {
            curve,
            current: it.current,
            servers_min: it.servers_min,
            servers_max: it.servers_max,
            refused_share: it.refused_share,
            start_up_s: it.start_up_s,
        })
        .collect();
    act(&claims)
}

fn minimum(claim: &Claim<'_>) -> u32 {
    claim.servers_min.max(claim.curve.guaranteed_servers()).min(claim.servers_max)
}

/// The objective, written down a second time.
fn worth(claims: &[Claim<'_>], servers: &[u32], cost: MoveCost) -> f64 {
    let one = |(claim, &servers): (&Claim<'_>, &u32)| {
        let (old, new) = (servers.min(claim.current), servers);
        let [old_revenue, new_revenue] = [old, new].map(|count| claim.curve.revenue_per_s(count));
        let started = f64::from(new - old);
        old_revenue * cost.horizon_s
            + (new_revenue - old_revenue) * (cost.horizon_s - claim.start_up_s).max(0.0)
            - started * cost.revenue
    };
    claims.iter().zip(servers).map(one).sum()
}

/// The largest worth of all partitions that keep the minimums.
fn best(pool: u32, claims: &[Claim<'_>], cost: MoveCost, chosen: &mut Vec<u32>) -> f64 {
    let Some(claim) = claims.get(chosen.len()) else { return worth(claims, chosen, cost) };
    let least = minimum(claim);
    let mut most = f64::NEG_INFINITY;
    for servers in least..=pool.min(claim.servers_max) {
        chosen.push(servers);
        most = most.max(best(pool - servers, claims, cost, chosen));
        chosen.pop();
    }
    most
}

fn check(pool: u32, claims: &[Claim<'_>], found: &Partition) {
    assert_eq!(found.servers.len(), claims.len());
    assert!(found.servers.iter().map(|&servers| u64::from(servers)).sum::<u64>() <= u64::from(pool));
    for (claim, &servers) in claims.iter().zip(&found.servers) {
        assert!(servers <= claim.servers_max, "{claim:?}: {servers}");
        assert!(found.is_short_of_minimum || servers >= minimum(claim), "{claim:?}: {servers}");
        assert!(servers <= claim.curve.saturating_servers().max(minimum(claim)), "{claim:?}: {servers} idle");
    }
    let minimums: u64 = claims.iter().map(|claim| u64::from(minimum(claim))).sum();
    assert_eq!(found.is_short_of_minimum, minimums > u64::from(pool));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn small_pools_are_divided_as_well_as_can_be(
        applications in applications(1..4, 100.0, 8), pool in 0u32..12, cost in costs()
    ) {
        with_claims(&applications, |claims| {
            let found = partition(pool, claims, cost);
            check(pool, claims, &found);
            if !found.is_short_of_minimum {
                let (ours, best) = (worth(claims, &found.servers, cost), best(pool, claims, cost, &mut Vec::new()));
                assert!(ours >= best - 1e-6 * best.abs().max(1.0), "{ours} of {best}: {found:?}");
            }
        });
    }

    #[test]
    fn large_pools_keep_every_bound(
        applications in applications(1..60, 5_000.0, 200), pool in 0u32..2_000, cost in costs()
    ) {
        with_claims(&applications, |claims| {
            check(pool, claims, &partition(pool, claims, cost));
            let kept = published(pool, claims);
            assert!(kept.servers.iter().map(|&servers| u64::from(servers)).sum::<u64>() <= u64::from(pool));
        });
    }

    /// More servers, and more revenue of one class, never earn less, where starting costs nothing.
    #[test]
    fn more_servers_and_more_revenue_never_earn_less(
        applications in applications(1..8, 500.0, 20), pool in 0u32..60, more in 0u32..20, raise in 1.0f64..4.0
    ) {
        let cost = MoveCost { horizon_s: 60.0, ..MoveCost::default() };
        let earned = |applications: &[Application], pool| with_claims(applications, |claims| {
            let found = partition(pool, claims, cost);
            let revenue: f64 =
                claims.iter().zip(&found.servers).map(|(claim, &servers)| claim.curve.revenue_per_s(servers)).sum();
            (revenue, found.is_short_of_minimum)
        });
        let applications: Vec<Application> =
            applications.into_iter().map(|it| Application { start_up_s: 0.0, ..it }).collect();
        let (few, is_short) = earned(&applications, pool);
        let mut dearer = applications.clone();
        dearer[0].classes[0].revenue *= raise;
        if !is_short {
            prop_assert!(earned(&applications, pool + more).0 >= few * (1.0 - 1e-9));
            prop_assert!(earned(&dearer, pool).0 >= few * (1.0 - 1e-9));
        }
    }
}

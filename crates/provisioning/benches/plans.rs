//! What a decision costs: a partition of 10,000 servers among 1,000 applications (bar: 50 ms).

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_core::Rng;
use flashweir_provisioning::partition::{Claim, MoveCost, partition};
use flashweir_provisioning::revenue::{ClassDemand, RevenueCurve};
use std::hint::black_box;

const APPLICATIONS: usize = 1_000;
const POOL: u32 = 10_000;
const COST: MoveCost = MoveCost { horizon_s: 600.0, revenue: 1.0 };

/// Demands of three classes each, `times` what the pool can serve.
fn curves(times: f64) -> Vec<RevenueCurve> {
    let mut rng = Rng::new(1);
    let servers = times * f64::from(POOL) / APPLICATIONS as f64;
    let mut class = |revenue| {
        let service_s = 0.001 + rng.exponential(0.02);
        let rate_rps = rng.exponential(servers / 3.0) / service_s;
        ClassDemand { revenue, rate_rps, guaranteed_rps: rate_rps * 0.05, service_s }
    };
    (0..APPLICATIONS).map(|_| RevenueCurve::new(&[3.0, 2.0, 1.0].map(&mut class), 0.8)).collect()
}

fn partitions(c: &mut Criterion) {
    for (name, times) in [("at half its load", 0.5), ("asked for ten times", 10.0)] {
        let curves = curves(times);
        let claims: Vec<Claim<'_>> = curves
            .iter()
            .zip(0..)
            .map(|(curve, place)| Claim {
                curve,
                current: place % 20,
                servers_min: 1,
                servers_max: POOL,
                refused_share: 0.0,
                start_up_s: 30.0,
            })
            .collect();
        c.bench_function(&format!("1,000 applications x 10,000 servers, {name}"), |b| {
            b.iter(|| black_box(partition(POOL, &claims, COST)));
        });
    }
}

criterion_group!(benches, partitions);
criterion_main!(benches);

//! Cost of a decision: a partition of 10,000 servers among 1,000 applications (bar: 50 ms), a whole plan for
//! them, and a tenth of a second of the gateway that divides one limit among 1,000 (bar: half of that time).

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_admission::PlannerDriver;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_provisioning::partition::{Claim, MoveCost, partition};
use flashweir_provisioning::revenue::{ClassDemand, RevenueCurve};
use flashweir_provisioning::shares::{ShareHolder, ShareLeader, ShareReport};
use flashweir_provisioning::{
    ApplicationPolicy, ApplicationSample, ClassCounts, Moments, Policy, PoolState, ProvisioningPlanner,
    Sample,
};
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

/// Samples of all applications, and a plan.
fn plan(c: &mut Criterion) {
    let policy = Policy::new(POOL, vec![ApplicationPolicy::single(Duration::from_secs(1)); APPLICATIONS]);
    let planner = ProvisioningPlanner::new(policy).expect("a right policy");
    let mut planner = PlannerDriver::new(planner, Instant::ZERO);
    let service = Moments { count: 5_000, sum_s: 75.0, squares_s2: 2.25 };
    let class = ClassCounts { offered: 5_000, admitted: 5_000, refused: 0, service };
    let pool = PoolState { ready: 9, ..PoolState::default() };
    let application =
        ApplicationSample { classes: vec![class], pool: Some(pool), ..ApplicationSample::default() };
    let sample = Sample { applications: vec![application; APPLICATIONS], ..Sample::default() };
    let mut now = Instant::ZERO;
    c.bench_function("a plan for 1,000 applications", |b| {
        b.iter(|| {
            now += Duration::from_secs(10);
            planner.observe(now, &sample);
            black_box(planner.plan(now))
        });
    });
}

/// A report of each of 1,000 gateways, and a broadcast.
fn shares(c: &mut Criterion) {
    let mut leader = ShareLeader::new(Instant::ZERO, 1, 10_000.0);
    let mut holders: Vec<ShareHolder> = (0..1_000).map(ShareHolder::new).collect();
    let mut rng = Rng::new(1);
    let mut now = Instant::from_secs(1);
    c.bench_function("100 ms of the leader of 1,000 gateways", |b| {
        b.iter(|| {
            now += Duration::from_millis(100);
            for (gateway, holder) in (0..).zip(&holders) {
                let (applied, share) = (holder.applied(), holder.share(now));
                let report = ShareReport {
                    gateway,
                    applied,
                    share,
                    offered: rng.below(40),
                    admitted: 10,
                    in_flight: 10,
                };
                leader.observe(now, &report).expect("an honest report");
            }
            let broadcast = leader.broadcast(now);
            // What gateways do with it is no cost of the leader, but only an acknowledged share is forgotten.
            for holder in &mut holders {
                broadcast.iter().for_each(|broadcast| {
                    holder.apply(now, broadcast);
                });
            }
            black_box(&broadcast);
        });
    });
}

criterion_group!(benches, partitions, plan, shares);
criterion_main!(benches);

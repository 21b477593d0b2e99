//! Cost of a choice, by policy and number of hosts; and one round of placement over the documents of a busy
//! redirector.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use flashweir_core::{Duration, Instant, Rng};
use flashweir_replication::distribution::{Distribution, Policy, ServerLoad};
use flashweir_replication::placement::Watermarks;
use flashweir_replication::servers::SHARE_ONE;
use flashweir_replication::{Balancer, Redirector, RedirectorSettings, ServerIndex, ServerReport, ServerUse};
use std::hint::black_box;

const POLICIES: [(&str, Policy); 5] = [
    ("acdn", Policy::Acdn { memory: 0.0 }),
    ("integrator", Policy::Integrator { gain: 0.6 }),
    ("water filling", Policy::WaterFilling),
    ("two choices", Policy::TwoChoices),
    ("bounded load", Policy::BoundedLoad { excess: 0.25 }),
];

fn choices(c: &mut Criterion) {
    for (name, policy) in POLICIES {
        let mut group = c.benchmark_group(format!("choose, {name}"));
        for count in [2u16, 16, 256] {
            let mut distribution = Distribution::new(policy, Watermarks::default()).expect("valid");
            (0..count).for_each(|_| distribution.add_server());
            let loads: Vec<ServerLoad> = (0..count)
                .map(|server| ServerLoad {
                    load_rps: 200.0 + f64::from(server % 50),
                    exclusive_rps: f64::from(server % 7),
                    weight: 1.0,
                })
                .collect();
            distribution.update(&loads, 1_000.0);
            let hosts: Vec<ServerIndex> = (0..count).collect();
            let shares = vec![SHARE_ONE; usize::from(count)];
            let (mut rng, mut now, mut document) = (Rng::new(1), Instant::ZERO, 0u64);
            group.bench_function(BenchmarkId::from_parameter(count), |b| {
                b.iter(|| {
                    now += Duration::from_micros(100);
                    document = (document + 1) % 500;
                    black_box(distribution.choose(now, document, &hosts, &shares, &mut rng))
                });
            });
        }
        group.finish();
    }
}

/// A worker's choice among the servers of one service, with nothing in flight (the counters decide) and with
/// requests in flight.
fn balancer(c: &mut Criterion) {
    let mut group = c.benchmark_group("choose, balancer");
    for count in [2u16, 8, 64] {
        for busy in [0u32, 20] {
            let (mut balancer, mut rng) = (Balancer::new(count.into()), Rng::new(1));
            let mut now = Instant::ZERO;
            let candidates = u64::MAX >> (64 - count);
            group.bench_function(BenchmarkId::new(format!("{busy} in flight"), count), |b| {
                b.iter(|| {
                    now += Duration::from_micros(100);
                    let load = |server: ServerIndex| ServerUse {
                        in_flight: busy + u32::from(server) % (busy + 1),
                        share: SHARE_ONE,
                    };
                    black_box(balancer.choose(now, candidates, load, &mut rng))
                });
            });
        }
    }
    group.finish();
}

/// A redirector with this many documents, all at server 0, which is overloaded.
fn overloaded(documents: u64, servers: u16) -> (Redirector, Instant) {
    let mut redirector = Redirector::new(RedirectorSettings::default()).expect("valid");
    for _ in 0..servers {
        redirector.add_server(Instant::ZERO, 1.0, false).expect("room");
    }
    let mut now = Instant::ZERO;
    for request in 0..20_000u64 {
        now += Duration::from_micros(200);
        redirector.offer(now, (request * request) % documents, 0);
    }
    for server in 0..servers {
        let load_rps = if server == 0 { 500.0 } else { 0.0 };
        redirector.report(now, server, ServerReport { load_rps, response_ms: None, utilisation: None });
    }
    (redirector, now)
}

fn placement(c: &mut Criterion) {
    for (documents, servers) in [(500, 2), (10_000, 16)] {
        let (redirector, now) = overloaded(documents, servers);
        c.bench_function(&format!("plan, up to {documents} documents and {servers} servers"), |b| {
            b.iter_batched_ref(
                || redirector.clone(),
                |redirector| black_box(redirector.plan(now)),
                BatchSize::LargeInput,
            );
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = choices, balancer, placement
}
criterion_main!(benches);

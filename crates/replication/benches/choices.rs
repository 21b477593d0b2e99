//! What a choice costs, by policy and number of hosts; and one round of placement over the documents of a busy redirector.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use flashweir_core::{Duration, Instant, Rng};
use flashweir_replication::distribution::{Distribution, Policy, ServerLoad};
use flashweir_replication::placement::Watermarks;
use flashweir_replication::servers::SHARE_ONE;
use flashweir_replication::{Redirector, RedirectorSettings, ServerIndex, ServerReport};
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
    targets = choices, placement
}
criterion_main!(benches);

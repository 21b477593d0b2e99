//! Cost of a packet: the hash of its flow, the sketch, the cache of heavy flows, the whole decision; and a
//! period's end.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_aqm::{
    Arrival, DistinctWindow, FlowHasher, FlowIdentity, HeavyFlows, MinSketch, PacketHeader, Purge,
    PurgeSettings, Rem,
};
use flashweir_core::{Duration, Instant, Rng};
use std::hint::black_box;

/// As many flows as the paper's largest table has, their hashes in a random order of packets.
fn packets() -> Vec<u64> {
    let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let mut rng = Rng::new(1);
    (0..65_536).map(|_| hasher.hash_number(rng.below(4_000))).collect()
}

fn hash(c: &mut Criterion) {
    let header = PacketHeader {
        source: "2001:db8::1".parse().expect("an address"),
        destination: "2001:db8::2".parse().expect("an address"),
        protocol: 6,
        ports: Some((50_000, 443)),
        is_fragment: false,
    };
    for (name, identity) in
        [("hash of a 5-tuple", FlowIdentity::FiveTuple), ("hash of a source", FlowIdentity::Source)]
    {
        let hasher = FlowHasher::new(1, 2, identity);
        c.bench_function(name, |b| b.iter(|| hasher.hash(black_box(&header))));
    }
}

fn sketch(c: &mut Criterion) {
    let packets = packets();
    let mut next = packets.iter().copied().cycle();
    let mut sketch = MinSketch::new();
    c.bench_function("sketch, update", |b| {
        b.iter(|| sketch.insert(next.next().unwrap_or_default()));
    });
    let mut rng = Rng::new(2);
    c.bench_function("sketch, update by a new flow", |b| b.iter(|| sketch.insert(rng.next_u64())));
    c.bench_function("sketch, estimate", |b| b.iter(|| black_box(&sketch).distinct()));
    c.bench_function("sketch, estimate as published", |b| {
        b.iter(|| black_box(&sketch).distinct_as_published());
    });
    let mut window = DistinctWindow::new(Instant::ZERO, Duration::from_secs(2));
    packets.iter().for_each(|&hash| window.insert(Instant::ZERO, hash));
    c.bench_function("window of sketches, estimate", |b| b.iter(|| window.distinct(Instant::ZERO)));
}

fn heavy_flows(c: &mut Criterion) {
    let packets = packets();
    let mut next = packets.iter().copied().cycle();
    let mut flows = HeavyFlows::new(4_096);
    c.bench_function("heavy flows, update", |b| {
        b.iter(|| black_box(flows.record(next.next().unwrap_or_default(), 1_000)));
    });
    let mut rng = Rng::new(2);
    c.bench_function("heavy flows, update by a new flow", |b| {
        b.iter(|| black_box(flows.record(rng.next_u64(), 1_000)));
    });
    c.bench_function("heavy flows, end of a period of 4096", |b| {
        b.iter(|| flows.end_period(0.78, |_, bytes| if bytes > 1e6 { 0.5 } else { 0.0 }));
    });
}

fn decision(c: &mut Criterion) {
    let packets = packets();
    let mut next = packets.iter().copied().cycle();
    let mut purge = Purge::new(&PurgeSettings::over(Rem::default()), 10_000_000_000);
    let mut rng = Rng::new(1);
    let mut now = Instant::ZERO;
    c.bench_function("Purge, a packet at 10 Gb/s", |b| {
        b.iter(|| {
            now += Duration::from_nanos(800);
            let packet = Arrival { flow: next.next().unwrap_or_default(), bytes: 1_000, is_markable: true };
            black_box(purge.arrive(now, 10, packet, &mut rng))
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = hash, sketch, heavy_flows, decision
}
criterion_main!(benches);

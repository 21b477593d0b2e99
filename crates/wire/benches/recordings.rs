//! Cost of recording and speed of a replay: a minute of two gates at 1,000 requests a second, with their
//! planner.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, CeilingPriority, FlashCrowdPlanner, Response, Settings};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_core::{Duration, Instant, Rng};
use flashweir_wire::recording::{Event, Head, Planned, Record, Segment, Stream, Writer};
use flashweir_wire::replay::Replay;
use std::hint::black_box;
use std::sync::Arc;

const TICKS: u64 = 600;
const GATES: usize = 2;

fn minute() -> Vec<Record> {
    let mut rng = Rng::new(1);
    let attempts = Arc::new(RefusedAttempts::default());
    let mut gates: Vec<_> = (0..GATES).map(|gate| ConnectionPipeline::new(gate, attempts.clone())).collect();
    let settings = Settings { gates: GATES, ..Settings::default() };
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(settings, &Baseline::default()), Instant::ZERO);
    let planned = Planned::FlashCrowd(settings, Baseline::default());
    let begin = Event::Begin { name: "bench".to_owned(), planner: planned, goes_on: false };
    let record = |at, event| Record { at, stream: Stream(0), event };
    let mut records = vec![record(Instant::ZERO, begin)];
    for tick in 1..=TICKS {
        let now = Instant::from_millis(100 * tick) + Duration::from_nanos(rng.below(100_000));
        for gate in &mut gates {
            for _ in 0..50 {
                let person_key = rng.next_u64();
                gate.arrive(now, person_key % 5, person_key, CeilingPriority::LAST);
                gate.completed();
                gate.observe_response(Response {
                    started: now - Duration::from_millis(rng.below(100)),
                    bytes: rng.below(100_000),
                    latency_s: rng.exponential(0.02) as f32,
                    rate_bytes_per_s: (rng.below(3) == 0).then(|| rng.exponential(1e6) as f32),
                    url_class: rng.below(20) as u32,
                });
            }
            let sample = gate.drain(now);
            planner.observe(now, &sample);
            records.push(record(now, Event::FlashCrowdSample(sample)));
        }
        let plan = planner.plan(now);
        gates.iter_mut().for_each(|gate| gate.apply(now, &plan));
        records.push(record(now, Event::FlashCrowdPlan(plan)));
    }
    records
}

fn written(records: &[Record]) -> Vec<u8> {
    let (mut writer, mut bytes) = (Writer::default(), Writer::begin(&Head::default()));
    for (at, record) in records.iter().enumerate() {
        writer.push(record);
        if at % 30 == 0 {
            bytes.extend(writer.take_frame());
        }
    }
    bytes.extend(writer.take_frame());
    bytes
}

fn recordings(c: &mut Criterion) {
    let records = minute();
    let bytes = written(&records);
    println!(
        "a minute of {GATES} gates: {} bytes, {:.1} MB an hour",
        bytes.len(),
        bytes.len() as f64 * 60.0 / 1e6
    );
    c.bench_function("writing a minute", |b| b.iter(|| black_box(written(&records))));
    c.bench_function("replaying a minute", |b| {
        b.iter(|| {
            let (mut segment, mut replay) = (Segment::open(&bytes).expect("a segment"), Replay::new());
            while let Some(records) = segment.records().expect("whole frames") {
                records.into_iter().for_each(|record| replay.take(record));
            }
            assert_eq!(replay.summary().different, 0);
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = recordings
}
criterion_main!(benches);

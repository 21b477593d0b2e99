//! Goal: the seeds of targets that read binary encodings are of the encoding in force. Method: they are
//! made here; a change of the encoding fails this test, and `FLASHWEIR_BLESS=1` writes them again.

use flashweir_admission::flash_crowd::{
    Baseline, CeilingPriority, FlashCrowdPlanner, Plan, Response, Sample, Settings,
};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::{PlannerDriver, sentry};
use flashweir_core::{Duration, Instant, Rng};
use flashweir_wire::encode;
use flashweir_wire::recording::{Event, Head, Planned, Record, Stream, Writer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The target skips version and kind, which it writes itself.
const VERSION_AND_KIND: usize = 2;

/// Samples and plans of a gate that some responses went through.
fn flash_crowd(ticks: u64) -> Vec<(Instant, Sample, Plan)> {
    let mut rng = Rng::new(1);
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let planner = FlashCrowdPlanner::new(Settings::default(), &Baseline::default());
    let mut planner = PlannerDriver::new(planner, Instant::ZERO);
    let of_tick = (1..=ticks).map(|tick| {
        let now = Instant::from_millis(100 * tick);
        for _ in 0..9 {
            let person_key = rng.next_u64();
            gate.arrive(now, person_key % 5, person_key, CeilingPriority::LAST);
            gate.completed();
            gate.observe_response(Response {
                started: now - Duration::from_millis(rng.below(80)),
                bytes: rng.below(100_000),
                latency_s: rng.exponential(0.02) as f32,
                rate_bytes_per_s: Some(rng.exponential(1e6) as f32),
                url_class: rng.below(30) as u32,
            });
        }
        let sample = gate.drain(now);
        planner.observe(now, &sample);
        let plan = planner.plan(now);
        gate.apply(now, &plan);
        (now, sample, plan)
    });
    of_tick.collect()
}

fn sentry_sample() -> sentry::Sample {
    let class =
        sentry::ClassCounts { offered: 7, unique_offered: 6, good: 5, ..sentry::ClassCounts::default() };
    let mut sample =
        sentry::Sample { offered: 7, in_flight: 3, classes: vec![class; 3], ..sentry::Sample::default() };
    sample.latency_us.record_many(1_500, 4);
    sample.age_us.record_many(70, 2);
    sample
}

/// All seeds: folder, name and bytes.
fn seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let ticks = flash_crowd(12);
    let (_, sample, plan) = ticks.last().expect("a tick");
    let message = |choice: u8, bytes: Vec<u8>| [&[choice], &bytes[VERSION_AND_KIND..]].concat();
    let mut writer = Writer::default();
    let stream = Stream(0);
    let planner = Planned::FlashCrowd(Settings::default(), Baseline::default());
    let begin = Event::Begin { name: "shop".to_owned(), planner, goes_on: false };
    writer.push(&Record { at: Instant::ZERO, stream, event: begin });
    for (at, sample, plan) in &ticks {
        writer.push(&Record { at: *at, stream, event: Event::FlashCrowdSample(sample.clone()) });
        writer.push(&Record { at: *at, stream, event: Event::FlashCrowdPlan(plan.clone()) });
    }
    writer.push(&Record { at: Instant::from_millis(1_300), stream, event: Event::Lost(3) });
    let about = Head { build: "test".to_owned(), configuration: "none".to_owned(), ..Head::default() };
    let file = [Writer::begin(&about), writer.take_frame()].concat();
    vec![
        ("wire", "flash_crowd_sample", message(0, encode(sample))),
        ("wire", "flash_crowd_plan", message(1, encode(plan))),
        ("wire", "flash_crowd_open_plan", message(1, encode(&Plan::open(2)))),
        ("wire", "flash_crowd_explanation", message(2, encode(&plan.explanation))),
        ("wire", "sentry_sample", message(3, encode(&sentry_sample()))),
        ("recording", "flash_crowd", file),
    ]
}

#[test]
fn binary_seeds_are_of_the_encoding_in_force() {
    let is_blessed = std::env::var_os("FLASHWEIR_BLESS").is_some();
    for (target, name, bytes) in seeds() {
        let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target).join(name);
        if is_blessed {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, &bytes).expect("a writable seed");
        }
        let committed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(
            committed == bytes,
            "{} is old: FLASHWEIR_BLESS=1 cargo test -p flashweir-fuzz",
            path.display()
        );
    }
}

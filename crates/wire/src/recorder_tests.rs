//! A crowd at one gate and its planner, and a sentry, recorded and read back.

use super::*;
use crate::recording::{FLASH_CROWD_CANDIDATE, RecordingError, Segment};
use crate::replay::{OtherPolicy, Replay};
use flashweir_admission::flash_crowd::{Baseline, CeilingPriority, FlashCrowdPlanner, Response, Settings};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_admission::sentry::{Policing, Policy, SentryPlanner};
use flashweir_admission::{Flow, PlannerDriver};
use flashweir_core::Rng;
use flashweir_core::limits::RECORDING_FRAME_BYTES;

const SEED: u64 = 7;

fn head() -> Head {
    Head { run: 9, segment: 0, build: "1.2.3".to_owned(), configuration: "interval 100 ms".to_owned() }
}

/// Half a minute, with a crowd in its last third. `name` is that of the planner of flash crowds.
fn record(recorder: &Recorder, name: &str) {
    let mut rng = Rng::new(SEED);
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    let settings = Settings::default();
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(settings, &Baseline::default()), Instant::ZERO);
    let policy = Policy { policing: Policing::Auto, ..Policy::single(Duration::from_millis(200)) };
    let mut sentry = PlannerDriver::new(SentryPlanner::new(Arc::new(policy.clone())), Instant::ZERO);
    let crowd = recorder.begin(Instant::ZERO, name, Planned::FlashCrowd(settings, Baseline::default()));
    let of_sentry = recorder.begin(Instant::ZERO, "web", Planned::Sentry(policy));
    for tick in 1..=300 {
        let now = Instant::from_millis(100 * tick) + Duration::from_nanos(rng.below(1_000_000));
        let (count, slow) = if tick > 200 { (200, 20.0) } else { (40, 1.0) };
        for _ in 0..count {
            let person_key = rng.next_u64();
            gate.arrive(now, person_key % 5, person_key, CeilingPriority::LAST);
            gate.completed();
            gate.observe_response(Response {
                started: now - Duration::from_millis(rng.below(200)),
                bytes: rng.below(100_000),
                latency_s: (rng.exponential(0.02) * slow) as f32,
                rate_bytes_per_s: (rng.below(3) == 0).then(|| rng.exponential(1e6) as f32),
                url_class: rng.below(30) as u32,
            });
        }
        let sample = gate.drain(now);
        planner.observe(now, &sample);
        recorder.record_sample(now, crowd, &sample);
        let plan = planner.plan(now);
        recorder.record_plan(now, crowd, &plan);
        gate.apply(now, &plan);
        let deciding_milli = (1_000.0 * rng.unit_f64()) as u32;
        for gate in 0..2 {
            let mut sample = sentry_sample(&mut rng, now);
            sample.offered += gate;
            sample.flow.offered += gate;
            sample.deciding_milli = deciding_milli;
            sentry.observe(now, &sample);
            recorder.record_sample(now, of_sentry, &sample);
        }
        recorder.record_plan(now, of_sentry, &sentry.plan(now));
    }
    assert_eq!(recorder.lost(), 0);
}

fn sentry_sample(rng: &mut Rng, now: Instant) -> sentry::Sample {
    let mut sample = sentry::Sample {
        from: now - Duration::from_millis(100),
        to: now,
        flow: Flow { offered: 20, admitted: 20, ..Flow::default() },
        offered: 20,
        admitted: 20,
        completed: 20,
        in_flight: 3,
        in_flight_nanos: 300_000_000,
        classes: vec![sentry::ClassCounts { offered: 20, admitted: 20, completed: 20, ..Default::default() }],
        levels: vec![sentry::LevelSum {
            level: 3,
            nanos: 100_000_000,
            in_flight_nanos: 300_000_000,
            completed: 20,
        }],
        ..sentry::Sample::default()
    };
    (0..20).for_each(|_| sample.latency_us.record(10_000 + rng.below(9_000)));
    sample
}

fn replay(mut replay: Replay, segments: &[Vec<u8>]) -> (Replay, Option<RecordingError>) {
    for bytes in segments {
        let mut segment = Segment::open(bytes).expect("a segment");
        loop {
            match segment.records() {
                Ok(Some(records)) => records.into_iter().for_each(|record| replay.take(record)),
                Ok(None) => break,
                Err(error) => return (replay, Some(error)),
            }
        }
    }
    (replay, None)
}

fn recorded(segment_bytes: u64) -> (tempfile::TempDir, Vec<Vec<u8>>) {
    recorded_as("flash crowd", segment_bytes)
}

fn recorded_as(name: &str, segment_bytes: u64) -> (tempfile::TempDir, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("recording");
    let segments = Segments::create(&file, head(), segment_bytes).expect("a file");
    record(&Recorder::of(segments, 10_000, |error| panic!("{error}")).expect("a thread"), name);
    let mut segments: Vec<Vec<u8>> =
        (0..).map_while(|number| std::fs::read(segment_path(&file, number)).ok()).collect();
    segments.push(std::fs::read(&file).expect("the last segment"));
    (directory, segments)
}

/// Reads all of it, and whether it has an end.
fn is_ended(bytes: &[u8]) -> bool {
    let mut segment = Segment::open(bytes).expect("a segment");
    while segment.records().expect("whole frames").is_some() {}
    segment.is_ended()
}

#[test]
fn the_same_samples_give_the_same_plans_bit_for_bit() {
    let (_directory, segments) = recorded(RECORDING_SEGMENT_BYTES);
    assert_eq!(Segment::open(&segments[0]).expect("a segment").head(), &head());
    let (replayed, error) = replay(Replay::new(), &segments);
    let summary = replayed.summary();
    assert_eq!((error, summary.planners, summary.plans, summary.samples), (None, 2, 600, 600));
    assert_eq!((summary.different, summary.lost, summary.stray), (0, 0, 0), "{:?}", summary.partings);
    assert!(is_ended(&segments[0]));
    println!("{} bytes for half a minute", segments[0].len());
}

#[test]
fn a_replay_with_another_policy_says_where_and_why_plans_part() {
    let (_directory, segments) = recorded(RECORDING_SEGMENT_BYTES);
    let settings = Settings { margin: 0.49, ..Settings::default() };
    let other = OtherPolicy { flash_crowd: Some(settings), ..OtherPolicy::default() };
    let (replayed, _) = replay(Replay::with(other), &segments);
    let summary = replayed.summary();
    assert!(summary.different > 0 && !summary.partings.is_empty());
    let first = &summary.partings[0];
    assert!(first.at > Instant::from_secs(20) && first.name == "flash crowd", "{first}");
    assert!(
        first.differences.iter().any(|found| found.field == "explanation.margin"),
        "{:?}",
        first.differences
    );
}

/// The candidate's planner was made from other settings than the one in force, and so it is in another
/// policy.
#[test]
fn a_candidate_is_judged_by_the_candidate_of_the_other_policy_alone() {
    let (_directory, segments) = recorded_as(FLASH_CROWD_CANDIDATE, RECORDING_SEGMENT_BYTES);
    let settings = Some(Settings { margin: 0.49, ..Settings::default() });
    let different = |other| replay(Replay::with(other), &segments).0.summary().different;
    assert_eq!(different(OtherPolicy { flash_crowd: settings, ..OtherPolicy::default() }), 0);
    assert!(different(OtherPolicy { flash_crowd_candidate: settings, ..OtherPolicy::default() }) > 0);
}

#[test]
fn full_segments_are_kept_beside_and_read_in_turn() {
    let (_directory, segments) = recorded(8 << 10);
    assert!(segments.len() > 2, "{}", segments.len());
    let (replayed, error) = replay(Replay::new(), &segments);
    let summary = replayed.summary();
    assert_eq!(
        (error, summary.plans, summary.different, summary.begins_in_the_middle),
        (None, 600, 0, false)
    );
    let (replayed, error) = replay(Replay::new(), &segments[1..]);
    let summary = replayed.summary();
    assert_eq!((error, summary.stray, summary.begins_in_the_middle), (None, 0, true));
}

#[test]
fn a_recording_cut_off_anywhere_is_read_until_there_and_says_so() {
    let (_directory, segments) = recorded(RECORDING_SEGMENT_BYTES);
    let (bytes, mut rng) = (&segments[0], Rng::new(1));
    let mut ends = 0;
    for end in (0..200).chain((0..200).map(|_| rng.below(bytes.len() as u64) as usize)) {
        let error = match Segment::open(&bytes[..end]) {
            Err(error) => error,
            Ok(_) => match replay(Replay::new(), &[bytes[..end].to_vec()]) {
                (replayed, Some(error)) => {
                    assert_eq!(replayed.summary().different, 0);
                    error
                }
                (_, None) => {
                    assert!(!is_ended(&bytes[..end]), "{end}");
                    ends += 1;
                    continue;
                }
            },
        };
        let is_said = matches!(error, RecordingError::Truncated { .. } | RecordingError::NoRecording);
        assert!(is_said, "{end}: {error}");
    }
    assert!(ends < 10);
}

#[test]
fn a_recording_damaged_anywhere_says_so() {
    let (_directory, segments) = recorded(RECORDING_SEGMENT_BYTES);
    let (bytes, mut rng) = (&segments[0], Rng::new(2));
    for _ in 0..200 {
        let mut damaged = bytes.clone();
        let at = rng.below(bytes.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        let error = match Segment::open(&damaged) {
            Err(error) => Some(error),
            Ok(_) => replay(Replay::new(), &[damaged]).1,
        };
        assert!(error.is_some(), "byte {at}");
    }
}

#[test]
fn what_does_not_fit_the_queue_is_lost_counted_and_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("recording");
    let recorder = Recorder::start(&file, head(), |error| panic!("{error}")).expect("a recorder");
    let stream =
        recorder.begin(Instant::ZERO, "web", Planned::Sentry(Policy::single(Duration::from_secs(1))));
    let mut rng = Rng::new(1);
    let sample = sentry_sample(&mut rng, Instant::from_secs(1));
    while recorder.lost() == 0 {
        recorder.record_sample(Instant::from_secs(1), stream, &sample);
    }
    let lost = recorder.lost();
    drop(recorder);
    let bytes = std::fs::read(&file).expect("a recording");
    let (replayed, error) = replay(Replay::new(), &[bytes]);
    assert_eq!((error, replayed.summary().lost), (None, lost));
}

/// Goal: a planner that decides otherwise by one bit is found, with its fields. Method: the recording says
/// of a planner that it was made with a margin that is a hair wider.
#[test]
fn a_plan_that_differs_is_shown_field_by_field() {
    let (_directory, segments) = recorded(RECORDING_SEGMENT_BYTES);
    let mut segment = Segment::open(&segments[0]).expect("a segment");
    let mut replay = Replay::new();
    while let Some(records) = segment.records().expect("whole frames") {
        for mut record in records {
            if let Event::Begin { planner: Planned::FlashCrowd(settings, _), .. } = &mut record.event {
                settings.margin = 0.100_000_1;
            }
            replay.take(record);
        }
    }
    let summary = replay.summary();
    assert!(summary.different > 0 && summary.partings.iter().all(|parting| parting.name == "flash crowd"));
    let first = &summary.partings[0];
    let margin =
        first.differences.iter().find(|found| found.field == "explanation.margin").expect("the margin");
    assert_eq!((margin.first.as_str(), margin.second.as_str()), ("0.1", "0.1000001"));
}

/// A segment's head and one more frame of these packed bytes, with the right checksum.
fn with_frame(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Writer::begin(&head());
    bytes.extend((packed.len() as u32).to_le_bytes());
    bytes.extend(crate::recording::crc32(packed).to_le_bytes());
    bytes.extend(packed);
    bytes
}

#[test]
fn a_frame_that_cannot_be_unpacked_or_would_fill_the_memory_ends_the_recording() {
    let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; RECORDING_FRAME_BYTES + 1], 9);
    assert!(bomb.len() < RECORDING_FRAME_BYTES / 500, "{}", bomb.len());
    for packed in [&[0xFF; 40][..], &bomb] {
        let bytes = with_frame(packed);
        let at = (bytes.len() - packed.len() - 8) as u64;
        let mut segment = Segment::open(&bytes).expect("a segment");
        let error = segment.records().expect_err("no records");
        assert_eq!(error, RecordingError::Packed { at });
        assert_eq!(error.to_string(), format!("the frame at byte {at} cannot be unpacked"));
        assert!(segment.records().is_err(), "nothing after it can be read");
    }
}

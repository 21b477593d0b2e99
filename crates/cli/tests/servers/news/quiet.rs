//! With no overload Flashweir is invisible.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `calm_stretches_of_real_days_raise_no_alarm_and_refuse_nobody`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flashweir_testkit::{require_program, skip};

use crate::news::scene::{Scene, count};
use crate::news::watch::{Seen, story};

/// Tuesday 11 July 1995, 10:00 to 11:00 in Florida: an ordinary busy day, two days before the launch.
const DAY: usize = 10;
const HOUR: usize = 10;
/// Length of the run that replays the hour. `make bench-composition` replays nine traces for longer.
const SQUEEZED: Duration = Duration::from_secs(30);
/// Mean utilisation of the origin.
const UTILISATION: f64 = 0.5;

/// After which the gateway knows what is usual.
const LEARNING: Duration = Duration::from_secs(5);

/// No request may have been refused, and nothing alarmed.
fn check_invisible(scene: &Scene, result: &serde_json::Value, seen: &[Seen]) {
    let summary = || format!("capacity {:.0}/s, {result}\n{}", scene.capacity_rps, story(seen));
    assert_eq!(count(result, "refused"), 0, "{}", summary());
    assert!(seen.iter().all(|look| look.mode == "normal" && look.ceiling_rps.is_none()), "{}", summary());
    let metrics = scene.gateway.metrics();
    // Looks come every 50 ms; what happened between two of them is in the counters.
    assert_eq!(
        metrics.value("flashweir_plans_total{rule=\"raise\"}"),
        0.0,
        "an alarm was raised: {}",
        summary()
    );
    assert_eq!(metrics.sum("flashweir_requests_shed_total"), 0.0, "{}", summary());
    assert!(count(result, "completed") > 0, "{}", summary());
}

#[test]
#[ignore = "real load: make test-load"]
fn steady_traffic_is_left_alone_under_load() {
    let scene = Scene::new(&[]);
    let rate = scene.times_capacity(UTILISATION);
    let arguments = ["--rate", &rate, "--duration", "8s", "--sources", "2000"];
    let (result, seen) = scene.send("/work", Duration::from_secs(8), &arguments);
    check_invisible(&scene, &result, &seen);
}

/// Goal: with nothing configured a calm service is left alone too, and its verdict stays. Method: the first
/// seconds, in which the gateway learns what is usual, do not count for the verdict.
#[test]
#[ignore = "real load: make test-load"]
fn the_default_composition_leaves_steady_traffic_alone_and_does_not_change_its_mind_under_load() {
    let scene = Scene::with_the_sentry(&[]);
    let rate = scene.times_capacity(UTILISATION);
    let arguments = ["--rate", &rate, "--duration", "12s", "--sources", "2000"];
    let (result, seen) = scene.send("/work", Duration::from_secs(12), &arguments);
    check_invisible(&scene, &result, &seen);
    let learned = seen[0].at + LEARNING;
    let mut verdicts: Vec<&str> =
        seen.iter().filter(|look| look.at >= learned).map(|look| look.verdict.as_str()).collect();
    verdicts.dedup();
    // One change a minute: of 7 s.
    assert!(verdicts.len() <= 2, "{verdicts:?}: {}", story(&seen));
}

#[test]
#[ignore = "real load: make test-load"]
fn a_busy_hour_of_real_traffic_raises_no_alarm_under_load() {
    let test = "a_busy_hour_of_real_traffic_raises_no_alarm_under_load";
    let Some(counts) = busy_hour(test) else { return };
    let scene = Scene::new(&[]);
    let profile = scene.gateway.directory().join("requests_per_second.csv");
    let lines: String = counts.iter().map(|count| format!("{count}\n")).collect();
    std::fs::write(&profile, lines).expect("a writable directory");
    let squeeze = counts.len() as f64 / SQUEEZED.as_secs_f64();
    let people = counts.iter().sum::<u64>() as f64;
    let scale = UTILISATION * scene.capacity_rps * SQUEEZED.as_secs_f64() / people;
    let (profile, squeeze, scale) = (profile.display().to_string(), squeeze.to_string(), scale.to_string());
    let arguments = [
        "--profile",
        &profile,
        "--column",
        "1",
        "--bin",
        "1s",
        "--squeeze",
        &squeeze,
        "--scale",
        &scale,
        "--sources",
        "4000",
    ];
    let (result, seen) = scene.send("/work", SQUEEZED, &arguments);
    check_invisible(&scene, &result, &seen);
}

/// Requests in each second of the hour, or `None` after a loud line.
fn busy_hour(test: &str) -> Option<Vec<u64>> {
    const SECONDS: usize = 3_600;
    let trace = trace();
    if !trace.exists() {
        skip(test, "../shared/traces/nasa_jul95_requests_per_second.txt.gz is missing");
        return None;
    }
    let gzip = require_program("gzip", test)?;
    let output = Command::new(gzip).arg("-dc").arg(&trace).output().expect("gzip");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let counts = text.lines().filter(|line| !line.starts_with('#'));
    let wanted = counts.skip((DAY * 24 + HOUR) * SECONDS).take(SECONDS);
    let counts: Vec<u64> = wanted.map(|line| line.trim().parse().expect("a count")).collect();
    assert_eq!(counts.len(), SECONDS, "the trace is too short");
    Some(counts)
}

fn trace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace");
    root.join("../shared/traces/nasa_jul95_requests_per_second.txt.gz")
}

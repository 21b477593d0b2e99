//! Goal: the repaired planner finds a crowd by transfer rates alone, at intervals of a few seconds, where
//! the fastest tenth are few in quiet times and chance moves their mean. Method: a router's view, some
//! responses each interval whose rates differ widely and fall a little in the crowd; no latency, as a
//! router knows none.

use crate::common::drained_rates;

use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Mode, Sample, Settings};
use flashweir_admission::{Flow, PlannerDriver};
use flashweir_core::{Duration, Instant, Rng};

const QUIET_RPS: f64 = 35.0;

/// State at a time in seconds: requests per second, and the part that is left of every rate.
type Course = fn(f64) -> (f64, f64);

/// Time of the first ceiling, in seconds.
fn first_alarm_s(seed: u64, interval_s: u64, end_s: u64, course: Course) -> Option<u64> {
    run(seed, interval_s, end_s, &Baseline::default(), course).0
}

/// The same of a planner that starts from a baseline, and the baseline that it ends with.
fn run(
    seed: u64,
    interval_s: u64,
    end_s: u64,
    baseline: &Baseline,
    course: Course,
) -> (Option<u64>, Baseline) {
    let interval = Duration::from_secs(interval_s);
    let settings = Settings { interval, hot_spots: false, ..Settings::default() };
    let mut planner = PlannerDriver::new(FlashCrowdPlanner::new(settings, baseline), Instant::ZERO);
    let mut rng = Rng::new(seed);
    let alarm = (1..=end_s / interval_s).map(|tick| tick * interval_s).find(|&second| {
        let (from, now) = (Instant::from_secs(second - interval_s), Instant::from_secs(second));
        let (rate_rps, left) = course(second as f64);
        let mean = rate_rps * interval_s as f64;
        // Near enough to Poisson: its variance is the mean.
        let count = (mean + mean.sqrt() * (0..12).map(|_| rng.unit_f64() - 0.5).sum::<f64>()) as u64;
        // From 1 kB/s to 10 MB/s, every factor alike likely.
        let rates = (0..count).map(|_| (1_000.0 * left * libm::pow(10_000.0, rng.unit_f64())) as f32);
        let rates = drained_rates::of_rates(rates).rates;
        let (offered, unique_offered, admitted, completed) = (count, count, count, count);
        let sample = Sample {
            from,
            to: now,
            evidence_from: from,
            flow: Flow { offered, admitted, ..Flow::default() },
            unique_offered,
            entered: admitted,
            handed_over: 0,
            completed,
            rates,
            ..Sample::default()
        };
        planner.observe(now, &sample);
        planner.plan(now).explanation.mode != Mode::Normal
    });
    (alarm, planner.planner().baseline())
}

#[test]
fn what_an_earlier_run_learned_is_a_prior_and_no_fact() {
    let usual: Course = |_| (60.0, 1.0);
    for seed in 1..=20 {
        let (alarm, learned) = run(seed, 1, 300, &Baseline::default(), usual);
        assert_eq!(alarm, None, "seed {seed}");
        // Restarted into two thirds more, on a machine that is a third slower.
        let (alarm, _) = run(seed, 1, 120, &learned, |_| (100.0, 0.7));
        assert_eq!(alarm, None, "seed {seed}: no crowd");
        // Restarted inside a crowd.
        let (alarm, _) = run(seed, 1, 120, &learned, |_| (360.0, 0.3));
        assert!(alarm.is_some_and(|alarm_s| alarm_s <= 5), "seed {seed}: {alarm:?}");
    }
}

#[test]
fn a_crowd_that_slows_the_fastest_by_a_quarter_is_found_whatever_the_interval() {
    // A fifth is what chance lets through once in two hundred at ten seconds, and a sixth once in twenty.
    let course: Course = |t| if t <= 600.0 { (QUIET_RPS, 1.0) } else { (6.0 * QUIET_RPS, 0.75) };
    for interval_s in [10, 15, 20, 30, 60, 90] {
        let delays_s = (1..=40).map(|seed| {
            let found_s = first_alarm_s(seed, interval_s, 720, course);
            let found_s = found_s.unwrap_or_else(|| panic!("T = {interval_s} s, seed {seed}: not found"));
            found_s.checked_sub(600).filter(|&delay_s| delay_s > 0).unwrap_or_else(|| {
                panic!("T = {interval_s} s, seed {seed}: alarm at {found_s} s, before the crowd")
            })
        });
        let delays_s: Vec<u64> = delays_s.collect();
        println!("T = {interval_s} s: {delays_s:?}");
    }
}

#[test]
fn a_crowd_that_comes_slowly_does_not_become_its_own_baseline() {
    // In two hundred seconds from usual to six times that, and responses by a quarter slower.
    let course: Course = |t| {
        let part = ((t - 600.0) / 200.0).clamp(0.0, 1.0);
        (QUIET_RPS * (1.0 + 5.0 * part), 1.0 - 0.25 * part)
    };
    for seed in 1..=40 {
        let found_s = first_alarm_s(seed, 10, 900, course);
        assert!(found_s.is_some_and(|at| (610..=800).contains(&at)), "seed {seed}: {found_s:?}");
    }
}

#[test]
fn chance_is_no_crowd() {
    // Demand doubles and responses stay as they are: ten times four hours of ten-second intervals.
    let course: Course = |t| (if t % 3_600.0 < 600.0 { 2.0 * QUIET_RPS } else { QUIET_RPS }, 1.0);
    for seed in 1..=10 {
        assert_eq!(first_alarm_s(seed, 10, 14_400, course), None, "seed {seed}");
    }
}

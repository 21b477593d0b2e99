//! Goal: the server that refuses at a cost behaves as the closed form says and reproduces INTEL-T1 (paper
//! 004, Table 1). Method: five minutes of evenly spaced requests at each of the paper's four rates,
//! beginning with an empty server as the paper's runs did, six seeds for the work.
//!
//! The server's five parameters are fitted to this very table, so its rows check the simulator, not the
//! model; the critical rate 43.97/s is missed by the model and only printed.

use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, NetworkModel, Overflow, RunOutcome, Scenario, ServerModel, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

const WORK_S: f64 = 0.0226;
const REFUSAL_S: f64 = 0.004;
const LENGTH_S: usize = 300;

#[derive(Clone, Copy, Debug)]
struct Row {
    ok_rps: f64,
    busy: f64,
    waiting: f64,
    response_s: f64,
}

fn simulated(rate_rps: f64, seed: u64) -> RunOutcome {
    let profile = RateProfile::constant(rate_rps, Duration::from_secs(LENGTH_S as u64)).unwrap();
    let schedule = Schedule::one(ArrivalProcess::Constant(profile), seed);
    let work = Work::Exponential { mean: Duration::from_secs_f64(WORK_S) };
    let class = ClassModel { timeout: Duration::from_secs(600), ..ClassModel::new("all", work) };
    let overflow = Overflow::Refuse { cost: Duration::from_secs_f64(REFUSAL_S) };
    let server = ServerModel { queue: Some(256), overflow, ..ServerModel::first_come(1, 30) };
    let network = NetworkModel::Delay(Duration::from_millis(60));
    run(&Scenario { seed, network, ..Scenario::new(schedule, class, server) }).unwrap()
}

fn row(outcome: &RunOutcome) -> Row {
    let bins = 0..LENGTH_S;
    let (counts, level) = (outcome.began_within(bins.clone()), outcome.mean_level(bins));
    assert_eq!(counts.offered, counts.completed + counts.server_refused);
    Row {
        ok_rps: level.served_rps,
        busy: level.busy,
        waiting: level.waiting,
        response_s: counts.mean_latency_s().unwrap(),
    }
}

fn rows(rate_rps: f64) -> Vec<Row> {
    let rows: Vec<Row> = (1..=6).map(|seed| row(&simulated(rate_rps, seed))).collect();
    println!("{rate_rps}/s: {rows:.3?}");
    rows
}

fn mean(rows: &[Row], part: impl Fn(&Row) -> f64) -> f64 {
    rows.iter().map(part).sum::<f64>() / rows.len() as f64
}

fn assert_within(what: &str, ours: f64, expected: f64, tolerance: f64) {
    assert!((ours - expected).abs() <= tolerance, "{what}: {ours}, expected {expected} ± {tolerance}");
}

#[test]
fn below_saturation_everybody_is_served_at_once() {
    let rows = rows(32.58);
    assert_within("OK/s", mean(&rows, |row| row.ok_rps), 32.6, 0.03 * 32.6);
    assert_within("CPU", mean(&rows, |row| row.busy), 0.737, 0.01);
    assert_within("queue", mean(&rows, |row| row.waiting), 0.0, 0.05);
    assert_within("response time", mean(&rows, |row| row.response_s), 0.17, 0.01);
}

#[test]
fn above_saturation_every_refusal_costs_goodput() {
    // The paper's OK/s, queue and response time; the closed form (1 − λ·c_stb)/(c_ok − c_stb) beside them.
    for (rate_rps, paper_rps, queue, response_s) in [(71.42, 39.0, 249.5, 7.3), (99.55, 32.0, 252.7, 8.8)] {
        let rows = rows(rate_rps);
        let closed_form_rps = (1.0 - rate_rps * REFUSAL_S) / (WORK_S - REFUSAL_S);
        let ok_rps = mean(&rows, |row| row.ok_rps);
        assert_within("OK/s, closed form", ok_rps, closed_form_rps, 0.01 * closed_form_rps);
        assert_within("OK/s, paper", ok_rps, paper_rps, 0.03 * paper_rps);
        assert_within("CPU", mean(&rows, |row| row.busy), 0.998, 0.003);
        assert_within("queue", mean(&rows, |row| row.waiting), queue, 0.01 * queue);
        assert_within("response time", mean(&rows, |row| row.response_s), response_s, 0.03 * response_s);
    }
}

/// At ρ = 0.994 the queue is a transient that differs from seed to seed: the band is printed and nothing is
/// claimed but that there is one.
#[test]
fn at_the_critical_rate_there_is_no_single_answer() {
    let rows = rows(43.97);
    let band = |part: fn(&Row) -> f64| {
        rows.iter()
            .map(part)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (queue, response_s) = (band(|row| row.waiting), band(|row| row.response_s));
    println!("43.97/s: queue {queue:.1?} (paper 105), response time {response_s:.2?} s (paper 3.3 s)");
    assert_within("OK/s", mean(&rows, |row| row.ok_rps), 44.0, 0.03 * 44.0);
    assert!(queue.1 > 1.5 * queue.0, "{queue:?}");
}

/// A refusal that costs nothing takes nothing from those who are served.
#[test]
fn early_drops_make_the_slope_flat() {
    let rate_rps = 99.55;
    let scenario_work = Work::Exponential { mean: Duration::from_secs_f64(WORK_S) };
    let profile = RateProfile::constant(rate_rps, Duration::from_secs(LENGTH_S as u64)).unwrap();
    let class = ClassModel { timeout: Duration::from_secs(600), ..ClassModel::new("all", scenario_work) };
    let server = ServerModel { queue: Some(256), ..ServerModel::first_come(1, 30) };
    let outcome =
        run(&Scenario::new(Schedule::one(ArrivalProcess::Constant(profile), 1), class, server)).unwrap();
    let counts = outcome.began_within(0..LENGTH_S);
    assert_within("OK/s", outcome.mean_level(0..LENGTH_S).served_rps, 1.0 / WORK_S, 0.02 / WORK_S);
    // Dropped clients get no answer: their time limit ends the wait.
    assert_eq!((counts.timed_out, counts.refused), (counts.offered - counts.completed, 0));
}

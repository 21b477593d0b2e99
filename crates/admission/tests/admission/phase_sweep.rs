//! Goal: with the paper's own Table I as the plant, the published controller's result depends on the phase of
//! its tick (flaw N-7) and the repaired one's does not. Method: 50 phases of T = 60 s.
//!
//! The plant is static: the fastest responses' rate as a function of the admitted rate, 50 requests a second
//! before the crowd and 210 offered during it, the base rate that fits the paper's own result.

use crate::common::drained_rates;

use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Limit, PlannerMode, Sample, Settings};
use flashweir_core::{Duration, Instant};

/// NEWS Table I: admitted requests/s and the rate of the fastest tenth in kb/s (with the quiet point).
const TABLE_I: [(f64, f64); 7] = [
    (0.0, 101.4),
    (50.0, 101.4),
    (60.0, 101.36),
    (80.0, 100.2),
    (100.0, 93.95),
    (120.0, 90.8),
    (209.7, 58.2),
];
const QUIET_RPS: f64 = 50.0;
const CROWD_RPS: f64 = 210.0;
const ONSET_S: u64 = 1_200;
const END_S: u64 = 4_200;
const T_S: u64 = 60;

fn fast_rate_kbps(admitted_rps: f64) -> f64 {
    let mut last = TABLE_I[0];
    for point in TABLE_I {
        if admitted_rps <= point.0 {
            let part = (admitted_rps - last.0) / (point.0 - last.0).max(1e-9);
            return last.1 + part * (point.1 - last.1);
        }
        last = point;
    }
    last.1
}

/// Mean admitted rate during the crowd when ticks fall `phase_s` seconds after its onset.
fn admitted_over_crowd_rps(mode: PlannerMode, phase_s: u64) -> f64 {
    let settings =
        Settings { mode, interval: Duration::from_secs(T_S), hot_spots: false, ..Settings::default() };
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(settings, &Baseline::default()), Instant::ZERO);
    let mut ceiling_rps = f64::INFINITY;
    let (mut sample, mut rates) = (Sample::default(), Vec::new());
    let mut in_crowd = Vec::new();
    for second in (phase_s + ONSET_S % T_S)..END_S {
        let now = Instant::from_secs(second + 1);
        let crowd = second >= ONSET_S;
        let offered_rps = if crowd { CROWD_RPS } else { QUIET_RPS };
        let admitted_rps = offered_rps.min(ceiling_rps);
        if crowd {
            in_crowd.push(admitted_rps);
        }
        record(&mut sample, &mut rates, offered_rps, admitted_rps);
        if (second + 1) % T_S == phase_s % T_S {
            // Every response in the window carries the window's mean rate, so that the fastest tenth reads
            // the mean.
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            sample.rates = drained_rates::of_rates(rates.drain(..).map(|_| mean as f32)).rates;
            sample.to = now;
            planner.observe(now, &sample);
            let plan = planner.plan(now);
            ceiling_rps = match plan.limit {
                Limit::All(rate) => rate.per_second(),
                _ => f64::INFINITY,
            };
            sample = Sample { from: now, evidence_from: now, ..Sample::default() };
        }
    }
    in_crowd.iter().sum::<f64>() / in_crowd.len() as f64
}

/// One second of the plant. A window's aggregate is the mean over its requests, as in a static plant it must
/// be.
fn record(sample: &mut Sample, rates: &mut Vec<f64>, offered_rps: f64, admitted_rps: f64) {
    sample.flow.offered += offered_rps.round() as u64;
    sample.unique_offered += offered_rps.round() as u64;
    sample.flow.admitted += admitted_rps.round() as u64;
    sample.entered += admitted_rps.round() as u64;
    sample.completed += admitted_rps.round() as u64;
    let rate = fast_rate_kbps(admitted_rps) * 125.0;
    rates.extend(std::iter::repeat_n(rate, admitted_rps.round() as usize));
}

fn sweep(mode: PlannerMode) -> Vec<f64> {
    (0..50).map(|n| admitted_over_crowd_rps(mode, 1 + n * (T_S - 2) / 49)).collect()
}

#[test]
fn repaired_is_indifferent_to_the_phase_of_its_tick() {
    let admitted = sweep(PlannerMode::Repaired);
    let mean = admitted.iter().sum::<f64>() / admitted.len() as f64;
    println!("repaired: mean {mean:.1} req/s over 50 phases, {admitted:.1?}");
    for rps in &admitted {
        assert!((rps / mean - 1.0).abs() <= 0.10, "{rps:.1} against a mean of {mean:.1}: {admitted:.1?}");
    }
    // And it is where the margin says: about nine tenths of the usual rate, near NEWS's own 107.
    assert!((95.0..125.0).contains(&mean), "{mean}");
}

#[test]
fn scoreboard_depends_on_the_phase_of_its_tick() {
    let admitted = sweep(PlannerMode::Scoreboard);
    println!("scoreboard: {admitted:.1?}");
    // A tick soon after the onset averages mostly quiet traffic into the ceiling, a late one mostly crowd,
    // and the ±20 % scoreboard has no force that would correct either (flaw N-6). A plant with noise gave 112
    // to 186 req/s; this one, without, spreads wider.
    let (early, late) = (admitted[8], admitted[45]);
    assert!(late > 1.5 * early, "{admitted:.1?}");
    let mean = admitted.iter().sum::<f64>() / admitted.len() as f64;
    let outside = admitted.iter().filter(|rps| (*rps / mean - 1.0).abs() > 0.10).count();
    assert!(outside > 25, "most phases miss the mean by more than a tenth: {admitted:.1?}");
}

//! Goal: a ceiling that does not bind, because another stage refuses what it would let in, is left where it is; and what
//! never reached the service is not taken for admitted. Method: a crowd that slows the service raises the ceiling; then
//! the other stage takes over and responses are fine again.

#[path = "common/drained.rs"]
mod drained;

use flashweir_admission::flash_crowd::{
    Baseline, FlashCrowdGate, FlashCrowdPlanner, GateRequest, Limit, Mode, Plan, RefusedAttempts, Response,
    Rule, Sample, Settings,
};
use flashweir_admission::{Gate, PlannerDriver};
use flashweir_core::{Duration, Instant, Rate, Verdict};
use std::sync::Arc;

const TICK: Duration = Duration::from_millis(100);
const USUAL_S: f32 = 0.01;

/// What arrives and what becomes of it in one second.
#[derive(Clone, Copy)]
struct Second {
    offered: u64,
    admitted: u64,
    withdrawn: u64,
    completed: u64,
    latency_s: f32,
}

/// Goes on for so many seconds, and gives the plans.
fn go_on(
    planner: &mut PlannerDriver<FlashCrowdPlanner>,
    now: &mut Instant,
    seconds: u64,
    rates: Second,
) -> Vec<Plan> {
    let ticks = (0..seconds * 10).map(|_| {
        let from = *now;
        *now += TICK;
        let tenth = |count: u64| count / 10;
        let responses = (0..tenth(rates.completed)).map(|n| Response {
            started: from,
            bytes: 1_000,
            latency_s: rates.latency_s * (1.0 + 0.01 * (n % 7) as f32),
            rate_bytes_per_s: None,
            url_class: 1,
        });
        let sample = Sample {
            from,
            to: *now,
            // Each plan reaches the gate before the next request.
            evidence_from: from,
            offered: tenth(rates.offered),
            unique_offered: tenth(rates.offered),
            admitted: tenth(rates.admitted),
            withdrawn: tenth(rates.withdrawn),
            completed: tenth(rates.completed),
            ..drained::of_responses(responses)
        };
        planner.observe(*now, &sample);
        planner.plan(*now)
    });
    ticks.collect()
}

fn ceiling_rps(plan: &Plan) -> f64 {
    plan.explanation.ceiling_rps.expect("a ceiling")
}

/// A planner in alarm, with a ceiling of its own.
fn alarmed(now: &mut Instant) -> PlannerDriver<FlashCrowdPlanner> {
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(Settings::default(), &Baseline::default()), Instant::ZERO);
    let quiet = Second { offered: 200, admitted: 200, withdrawn: 0, completed: 200, latency_s: USUAL_S };
    go_on(&mut planner, now, 60, quiet);
    let crowd = Second { offered: 2_000, admitted: 2_000, completed: 500, latency_s: 0.5, ..quiet };
    let plans = go_on(&mut planner, now, 3, crowd);
    assert_ne!(plans.last().expect("plans").explanation.mode, Mode::Normal, "the crowd is found");
    planner
}

#[test]
fn a_ceiling_that_does_not_bind_stays_where_it_is_while_another_stage_refuses() {
    let mut now = Instant::ZERO;
    let mut planner = alarmed(&mut now);
    let before_rps = ceiling_rps(&planner.plan(now));
    let passed = before_rps as u64;
    let held_back = Second {
        offered: 2_000,
        admitted: passed,
        withdrawn: passed / 2,
        completed: passed / 2,
        latency_s: USUAL_S,
    };
    // The counts cover a second: after that they are those of this stretch alone.
    let settled_rps = ceiling_rps(go_on(&mut planner, &mut now, 2, held_back).last().expect("plans"));
    for plan in go_on(&mut planner, &mut now, 30, held_back) {
        assert_eq!((plan.explanation.rule, ceiling_rps(&plan)), (Rule::Yield, settled_rps));
        assert!(
            plan.explanation.admitted_rps < 0.6 * before_rps,
            "only what reached the service is admitted"
        );
    }
    // The other stage lets go: the ceiling is what binds, and is felt out again.
    let passed = settled_rps as u64;
    let alone = Second { admitted: passed, withdrawn: 0, completed: passed, ..held_back };
    let after_rps = ceiling_rps(go_on(&mut planner, &mut now, 5, alone).last().expect("plans"));
    assert!(after_rps > 1.05 * settled_rps, "{after_rps} after {settled_rps}");
}

#[test]
fn a_withdrawn_request_gives_its_token_back_and_its_person_is_known_again() {
    let mut gate = FlashCrowdGate::new(0, Arc::new(RefusedAttempts::default()));
    gate.apply(
        Instant::ZERO,
        &Plan { epoch: 1, limit: Limit::All(Rate::from_per_second(0.001)), ..Plan::open(1) },
    );
    // A burst of ten takes long to earn at this rate.
    let now = Instant::from_secs(100_000);
    let person = |n: u64| GateRequest { host_key: 1, person_key: n << 32 };
    let admitted = (1..=50).filter(|&n| gate.admit(now, &person(n)) == Verdict::Admit).count();
    assert_eq!(admitted, 10);
    for _ in 0..25 {
        gate.withdraw(now, &person(1), true);
        assert_eq!(
            gate.admit(now, &person(1)),
            Verdict::Admit,
            "the token is there again, and only that one"
        );
    }
    assert!(matches!(gate.admit(now, &person(60)), Verdict::Shed(_)));
    let sample = gate.drain(now);
    assert_eq!((sample.offered, sample.unique_offered), (76, 51), "a person who comes back is one person");
    assert_eq!((sample.admitted, sample.withdrawn), (35, 25));
}

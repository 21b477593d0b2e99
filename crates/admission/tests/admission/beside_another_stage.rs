//! Goal: a ceiling that does not bind, because another stage refuses what it would let in, is left where it
//! is; and what never reached the service is not taken for admitted. Method: a crowd that slows the service
//! raises the ceiling; then the other stage takes over and responses are fine again.

use crate::common::drained_responses;

use flashweir_admission::Flow;
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::flash_crowd::{
    Baseline, FlashCrowdPlanner, Limit, Mode, Plan, Response, Rule, Sample, Settings,
};
use flashweir_admission::pipeline::{
    AdmissionRequest, Arrival, Pipeline, ServiceSettings, SharedByWorkers, StageName,
};
use flashweir_admission::sentry::{
    Common, Explanation, LadderStep, Plan as SentryPlan, Policy, SentryPlanner,
};
use flashweir_core::{Duration, Instant, Rate};
use std::sync::Arc;

const TICK: Duration = Duration::from_millis(100);
const USUAL_S: f32 = 0.01;

/// Arrivals of one second, and their outcomes.
#[derive(Clone, Copy)]
struct Second {
    offered: u64,
    admitted: u64,
    refused_by_later: u64,
    completed: u64,
    latency_s: f32,
}

/// Goes on for `seconds`, and returns the plans.
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
            flow: Flow {
                offered: tenth(rates.offered),
                admitted: tenth(rates.admitted),
                refused_by_later: tenth(rates.refused_by_later),
                ..Flow::default()
            },
            unique_offered: tenth(rates.offered),
            entered: tenth(rates.admitted),
            handed_over: 0,
            completed: tenth(rates.completed),
            ..drained_responses::of_responses(responses)
        };
        planner.observe(*now, &sample);
        planner.plan(*now)
    });
    ticks.collect()
}

fn ceiling_rps(plan: &Plan) -> f64 {
    plan.explanation.ceiling_rps.expect("a ceiling")
}

/// A planner in alarm, with its own ceiling.
fn alarmed(now: &mut Instant) -> PlannerDriver<FlashCrowdPlanner> {
    let mut planner =
        PlannerDriver::new(FlashCrowdPlanner::new(Settings::default(), &Baseline::default()), Instant::ZERO);
    let quiet =
        Second { offered: 200, admitted: 200, refused_by_later: 0, completed: 200, latency_s: USUAL_S };
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
        admitted: passed / 2,
        refused_by_later: passed / 2,
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
    let alone = Second { admitted: passed, refused_by_later: 0, completed: passed, ..held_back };
    let after_rps = ceiling_rps(go_on(&mut planner, &mut now, 5, alone).last().expect("plans"));
    assert!(after_rps > 1.05 * settled_rps, "{after_rps} after {settled_rps}");
}

/// Goal: what a later stage refuses has taken no token, and its client is recognised when it comes again.
/// Method: a ceiling with a burst of ten and next to no rate; connections to the upstreams for no request,
/// then for all.
#[test]
fn a_request_that_a_later_stage_refuses_takes_no_token() {
    let mut pipeline = Pipeline::<()>::new(0, &SharedByWorkers::default());
    let service = pipeline.add_service(ServiceSettings { sentry: None, upstream_capacity: 0 });
    let limit = Limit::All(Rate::from_per_second(0.001));
    pipeline.apply_flash_crowd(Instant::ZERO, &Plan { epoch: 1, limit, ..Plan::open(1) });
    // A burst of ten takes long to earn at this rate.
    let now = Instant::from_secs(100_000);
    let request = |n: u64| AdmissionRequest {
        service,
        class: 0,
        ceiling_priority: CeilingPriority::LAST,
        client_key: n,
        url_class: 0,
        host_key: 1,
        person_key: n << 32,
        candidate: None,
        is_beyond_sender_share: false,
        deadline: None,
        closed: None,
        signs: Default::default(),
        asking: Default::default(),
    };
    for _ in 0..25 {
        let Arrival::Refused(refusal) = pipeline.arrive(now, request(1), ()) else { panic!("no connection") };
        assert_eq!(refusal.stage, StageName::Upstream);
    }
    pipeline.set_upstream_capacity(service, usize::MAX);
    let arrivals: Vec<_> = (1..=50).map(|n| pipeline.arrive(now, request(n), ())).collect();
    let refused: Vec<StageName> = arrivals
        .iter()
        .filter_map(
            |arrival| if let Arrival::Refused(refusal) = arrival { Some(refusal.stage) } else { None },
        )
        .collect();
    assert_eq!(refused, [StageName::FlashCrowd; 40], "all ten tokens were still there");
    let sample = pipeline.drain_flash_crowd(now);
    let flow =
        Flow { offered: 75, admitted: 10, refused_by_self: 40, refused_by_earlier: 0, refused_by_later: 25 };
    assert_eq!((sample.flow, sample.unique_offered), (flow, 50), "one client came 26 times");
}

/// Goal: a target that a ladder has moved is no worse quality to the other stages. Method: a ladder of one
/// and two seconds, before and after the step.
#[test]
fn a_planned_slower_target_stretches_what_responses_may_take() {
    let step = |below_rps, seconds| LadderStep { below_rps, target: Duration::from_secs(seconds) };
    let ladder = vec![step(100.0, 1), step(f64::INFINITY, 2)];
    let policy = Arc::new(Policy { ladder, ..Policy::single(Duration::from_secs(9)) });
    let plan = SentryPlanner::new(policy.clone()).current().clone();
    let mut pipeline = Pipeline::<()>::new(0, &SharedByWorkers::default());
    let sentry = Some((&Arc::new(Common::new(1)), &*policy, &plan, false));
    let service = pipeline.add_service(ServiceSettings { sentry, upstream_capacity: 1 });
    assert_eq!(pipeline.target_stretch(service), 1.0);
    let explanation = Explanation { target: Duration::from_secs(2), ..plan.explanation };
    pipeline.apply_sentry(service, &SentryPlan { epoch: 1, explanation, ..plan });
    assert_eq!(pipeline.target_stretch(service), 2.0);
}

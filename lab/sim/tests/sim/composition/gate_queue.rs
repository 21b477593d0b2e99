//! NEWS and the sentry together, as in the gateway.

use flashweir_admission::flash_crowd::Settings;
use flashweir_admission::sentry;
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{
    ClassModel, FlashCrowdPolicy, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work, run,
};
use flashweir_workload::profile::Segment;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

/// Half of the origin's 200 requests a second, then 1.25 times as many as it can serve. As many are at the
/// origin as it has workers, so its responses take no longer than before; the crowd waits at the gate.
fn crowd_that_waits_at_the_gate() -> RunOutcome {
    let calm = Segment::constant(Duration::from_secs(10), 100.0);
    let crowd = Segment::constant(Duration::from_secs(10), 250.0);
    let schedule =
        Schedule::one(ArrivalProcess::Poisson(RateProfile::new([calm, crowd]).expect("a profile")), 7);
    let class = ClassModel::new("all", Work::Constant(Duration::from_millis(100)));
    let sentry = SentryPolicy {
        known_limits: vec![(Instant::ZERO, 20)],
        ..SentryPolicy::new(sentry::Policy::single(Duration::from_secs(1)))
    };
    let news = FlashCrowdPolicy { settings: Settings::default(), ..FlashCrowdPolicy::default() };
    let policy = Policy::default_composition(news, sentry);
    run(&Scenario { policy, ..Scenario::new(schedule, class, ServerModel::first_come(20, 20)) })
        .expect("a run")
}

#[test]
fn time_in_the_gates_own_queue_is_no_symptom_for_news() {
    let outcome = crowd_that_waits_at_the_gate();
    let waited = outcome.classes[0].latency_us.quantile(0.9);
    assert!(waited.is_some_and(|us| us > 200_000), "none waited: {waited:?}");
    let qualities = outcome.plans.iter().filter_map(|plan| plan.explanation.quality);
    let worst = qualities.fold(f64::INFINITY, f64::min);
    assert!(worst > 0.99, "responses of {worst} of the usual quality");
}

//! Goal: automatic policing goes from rounds to a threshold when deciding keeps the worker busy, and not
//! while it does not. Method: a crowd at a sentry whose decisions take next to no time, and at one whose
//! decisions fill its worker's time.

use flashweir_admission::sentry::{Decide, Policing, Policy as Classes};
use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

/// A thousand requests a second, twenty times what the processor carries.
fn outcome(decision_time: Duration) -> RunOutcome {
    let policy = Classes { policing: Policing::Auto, ..Classes::single(Duration::from_secs(1)) };
    let sentry = SentryPolicy { decision_time, ..SentryPolicy::new(policy) };
    let profile = RateProfile::constant(1_000.0, Duration::from_secs(20)).unwrap();
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), 5);
    let class = ClassModel::new("all", Work::Exponential { mean: Duration::from_millis(20) });
    let policy = Policy::sentry(sentry);
    run(&Scenario { policy, ..Scenario::new(schedule, class, ServerModel::processor_sharing(1)) }).unwrap()
}

fn uses_threshold(outcome: &RunOutcome) -> bool {
    outcome.limits.iter().any(|taken| taken.plan.decide == Decide::Threshold)
}

#[test]
fn automatic_policing_changes_to_a_threshold_when_deciding_keeps_the_worker_busy() {
    assert!(uses_threshold(&outcome(Duration::from_millis(2))), "twice the worker's time");
    assert!(!uses_threshold(&outcome(Duration::from_micros(1))), "a thousandth of it");
}

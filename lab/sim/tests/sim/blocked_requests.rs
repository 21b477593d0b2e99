//! Goal: a request that waits for something elsewhere holds its place in service and no processor. Method:
//! waits before work, with and without workers, clients that leave and crashes; the simulator's checkers
//! run after every step.

use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{
    ClassModel, Departed, Fault, FaultKind, RunOutcome, Scenario, ServerModel, WarmUp, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::num::NonZeroU32;

const MS: Duration = Duration::from_millis(1);

fn class(wait: Work, work_ms: u32) -> ClassModel {
    let timeout = Duration::from_secs(60);
    ClassModel { wait, timeout, ..ClassModel::new("all", Work::Constant(work_ms * MS)) }
}

fn outcome(rate_rps: f64, class: ClassModel, server: ServerModel, faults: Vec<Fault>) -> RunOutcome {
    let profile = RateProfile::constant(rate_rps, Duration::from_secs(60)).expect("a rate");
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), 5);
    run(&Scenario { faults, ..Scenario::new(schedule, class, server) }).expect("a run")
}

/// Method: 50 requests a second wait 1 s and work 10 ms on one processor: by Little's law 50 are in flight,
/// and the processor is half busy.
#[test]
fn waits_take_no_processor() {
    let server = ServerModel::processor_sharing(1);
    let outcome = outcome(50.0, class(Work::Constant(1_000 * MS), 10), server, Vec::new());
    let level = outcome.mean_level(5..60);
    println!("{level:?}");
    assert!((level.busy - 0.5).abs() < 0.03, "{level:?}");
    assert!((level.in_service - 50.75).abs() < 3.0 && level.waiting == 0.0, "{level:?}");
    let latency_us = &outcome.classes[0].latency_us;
    // Without work of others: 1.01 s.
    assert!(latency_us.quantile(0.01).is_some_and(|us| (980_000..1_030_000).contains(&us)));
}

/// Method: ten workers, each blocked for 100 ms a request, are offered twice the 100 requests a second that
/// they can take in.
#[test]
fn a_blocked_request_keeps_its_worker() {
    let server = ServerModel { workers: NonZeroU32::new(10), ..ServerModel::processor_sharing(4) };
    let outcome = outcome(200.0, class(Work::Constant(100 * MS), 0), server, Vec::new());
    let level = outcome.mean_level(5..60);
    println!("{level:?}");
    assert!((level.served_rps - 100.0).abs() < 0.5, "{level:?}");
    assert!(
        (level.in_service - 10.0).abs() < 0.01 && level.busy == 0.0 && level.waiting > 100.0,
        "{level:?}"
    );
}

/// Method: waits of 2 s in the mean, clients that give up after 1 s, and a crash: each request that the
/// server took in is accounted for once.
#[test]
fn blocked_requests_leave_with_their_clients_and_are_lost_in_a_crash() {
    for departed in [Departed::Stops, Departed::WorksOn] {
        let class = ClassModel {
            timeout: Duration::from_secs(1),
            ..class(Work::Exponential { mean: 2_000 * MS }, 5)
        };
        let server =
            ServerModel { departed, workers: NonZeroU32::new(40), ..ServerModel::processor_sharing(2) };
        let during = Instant::from_secs(20)..Instant::from_secs(25);
        let outcome = outcome(30.0, class, server, vec![Fault { kind: FaultKind::Crash, during }]);
        let counts = outcome.server;
        println!("{departed:?}: {counts:?}");
        let ended = counts.completed + counts.stopped + counts.crashed;
        // A server that works on for clients that left is not empty when the last of them has.
        assert!(ended == counts.accepted || departed == Departed::WorksOn && ended < counts.accepted);
        assert!(counts.completed > 200 && counts.crashed >= 10);
        assert_eq!(counts.stopped > 500, departed == Departed::Stops);
    }
}

/// Method: the first twenty requests that the server takes in wait 2 s more, whenever they come.
#[test]
fn the_first_requests_wait_longer_until_the_server_is_warm() {
    let warm_up = Some(WarmUp { from: Instant::ZERO, requests: 20, wait: Duration::from_secs(2) });
    let class = ClassModel { warm_up, ..class(Work::Constant(Duration::ZERO), 5) };
    let outcome = outcome(30.0, class, ServerModel::processor_sharing(4), Vec::new());
    let totals = outcome.totals();
    println!("{totals:?}");
    assert_eq!(totals.completed - totals.goodput, 20);
}

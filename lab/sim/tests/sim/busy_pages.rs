//! Goal: a crowd is seen however busy its pages are, however many, and however far away its people. Method:
//! a step to
//! 2.8 times what the server can do, the gateway's own planner and gate; goodput of the crowd's later seconds
//! over capacity.
//!
//! Regressions: a page's usual latency was learned from every response, so that on a busy page it had
//! followed the crowd before the tick that was to judge it ended; and pages seen fewer than eight times said
//! nothing, so that a crowd hid among ten thousand of them. No alarm ever came, and goodput was 0.

use flashweir_core::{Duration, Reason};
use flashweir_sim::request::{
    ClassModel, Departed, FlashCrowdPolicy, NetworkModel, Policy, Scenario, ServerModel, ShedReason, Work,
    run,
};
use flashweir_workload::documents::Popularity;
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_busy_page_far_away_is_protected() {
    for (capacity_rps, round_trip_ms) in [(200.0, 40), (714.0, 40), (714.0, 2), (2_857.0, 40), (2_857.0, 2)] {
        let share = goodput_share(capacity_rps, round_trip_ms, 1);
        println!("capacity {capacity_rps}/s, round trip {round_trip_ms} ms: goodput {share:.2} of capacity");
        assert!(share > 0.75, "capacity {capacity_rps}/s, round trip {round_trip_ms} ms: {share:.2}");
    }
}

#[test]
fn a_crowd_among_ten_thousand_pages_is_seen() {
    for (capacity_rps, round_trip_ms) in [(143.0, 40), (286.0, 40), (286.0, 2)] {
        let share = goodput_share(capacity_rps, round_trip_ms, 10_000);
        println!(
            "10,000 pages, capacity {capacity_rps}/s, round trip {round_trip_ms} ms: goodput {share:.2}"
        );
        assert!(share > 0.75, "capacity {capacity_rps}/s, round trip {round_trip_ms} ms: {share:.2}");
    }
}

/// Goodput of the last ten seconds of a crowd of twenty, over capacity.
fn goodput_share(capacity_rps: f64, round_trip_ms: u64, pages: u32) -> f64 {
    let quiet = 0.5 * capacity_rps;
    let crowd = RateProfile::step(quiet, 2.8 * capacity_rps, 20 * SECOND, 40 * SECOND).unwrap();
    let schedule = Schedule::one(ArrivalProcess::Poisson(crowd), 5);
    let work = Work::Constant(Duration::from_secs_f64(1.0 / capacity_rps));
    let popularity = Popularity::zipf(0.0, pages).unwrap();
    let class = ClassModel { popularity, ..ClassModel::new("pages", work) };
    let outcome = run(&Scenario {
        network: NetworkModel::Delay(Duration::from_millis(round_trip_ms) / 2),
        policy: Policy::flash_crowd(FlashCrowdPolicy::default()),
        ..Scenario::new(schedule, class, ServerModel::first_come(1, 1))
    })
    .unwrap();
    assert!(outcome.totals().shed[ShedReason::Gateway(Reason::FlashCrowd).index()] > 0, "no alarm");
    outcome.began_within(30..40).goodput as f64 / (10.0 * capacity_rps)
}

/// Regression: under processor sharing a step to five times the capacity gives no request a whole answer
/// before its client gives up. The last responses, all from before the crowd, were then judged for a minute
/// to be as usual, no alarm came, and goodput was 0.
#[test]
fn a_crowd_that_lets_nothing_complete_is_seen() {
    for (departed, in_flight) in
        [(Departed::Stops, 4_096), (Departed::Stops, 256), (Departed::WorksOn, 1_024)]
    {
        let crowd = RateProfile::step(60.0, 1_000.0, 20 * SECOND, 60 * SECOND).unwrap();
        let schedule = Schedule::one(ArrivalProcess::Poisson(crowd), 5);
        let class = ClassModel::new("all", Work::Constant(Duration::from_millis(5)));
        let server = ServerModel { departed, ..ServerModel::processor_sharing(1) };
        let outcome = run(&Scenario {
            policy: Policy::flash_crowd(FlashCrowdPolicy::default()),
            requests_in_flight: Some(in_flight),
            ..Scenario::new(schedule, class, server)
        })
        .unwrap();
        let capacity_in_ten_seconds = 2_000.0;
        let shares = [20..30, 30..40, 40..50]
            .map(|bins| outcome.began_within(bins).goodput as f64 / capacity_in_ten_seconds);
        println!("{departed:?}, {in_flight} in flight: {shares:.2?} of capacity");
        assert!(shares[1] > 0.85 && shares[2] > 0.95, "{departed:?}, {in_flight} in flight: {shares:.2?}");
    }
}

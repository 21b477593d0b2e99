//! Goal: several workers share one limit as if they were one, however small it is; what one gives back is
//! found by another, the most important first. Method: limits known beforehand, a crowd, and the simulator's
//! own checks (which fail when a request is forgotten).

use flashweir_admission::sentry::{ClassPolicy, Policy as Classes};
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{
    ClassModel, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

const LENGTH_S: u64 = 20;

/// Two classes with the given rates a second, before two processors that carry 200 a second together.
fn outcome(workers: usize, limit: u32, rates: [f64; 2]) -> RunOutcome {
    let class = |revenue| ClassPolicy { revenue, ..ClassPolicy::default() };
    let classes = vec![class(2.0), class(1.0)];
    let policy = Classes { classes, ..Classes::single(Duration::from_secs(1)) };
    let sentry =
        SentryPolicy { workers, known_limits: vec![(Instant::ZERO, limit)], ..SentryPolicy::new(policy) };
    let stream = |(class, rate): (u16, f64)| {
        let profile = RateProfile::constant(rate, Duration::from_secs(LENGTH_S)).unwrap();
        Stream { arrivals: ArrivalProcess::Poisson(profile), classes: vec![Share { class, weight: 1.0 }] }
    };
    let schedule = Schedule::new((0..).zip(rates).map(stream).collect(), 3).unwrap();
    let work = Work::Exponential { mean: Duration::from_millis(10) };
    let class = |(name, policy_class)| ClassModel { policy_class, ..ClassModel::new(name, work) };
    let scenario = Scenario {
        classes: [("gold", 0), ("bronze", 1)].map(class).to_vec(),
        policy: Policy::sentry(sentry),
        ..Scenario::new(schedule, class(("replaced", 0)), ServerModel::processor_sharing(2))
    };
    run(&scenario).unwrap()
}

#[test]
fn eight_workers_keep_a_limit_of_two_as_busy_as_one_does() {
    let goodput = |workers| {
        let outcome = outcome(workers, 2, [150.0, 300.0]);
        let level = outcome.mean_level(0..LENGTH_S as usize);
        assert!(level.in_service <= 2.0, "{level:?}");
        outcome.totals().goodput as f64
    };
    let (one, eight) = (goodput(1), goodput(8));
    assert!(one >= 0.95 * 200.0 * LENGTH_S as f64, "{one}");
    // A place is empty for about 100 µs of 5 ms while another worker gets the notice.
    assert!(eight >= 0.96 * one, "{eight} of {one}");
}

#[test]
fn gold_goes_first_wherever_it_waits() {
    for workers in [1, 2, 8] {
        let outcome = outcome(workers, 3, [150.0, 600.0]);
        let [gold, bronze] = [0, 1].map(|class: usize| outcome.classes[class].totals);
        assert!(gold.goodput as f64 >= 0.99 * gold.offered as f64, "{workers} workers: {gold:?}");
        // Gold is 75 % of what the processors carry; bronze gets nearly all that is left. Few wait when the
        // last has come.
        let left_over = 200.0 * LENGTH_S as f64 - gold.goodput as f64;
        let part = bronze.goodput as f64 / left_over;
        assert!((0.95..1.15).contains(&part), "{workers} workers: {part} {bronze:?}");
        let counted = outcome.classes.iter().map(|class| class.gate.admitted).collect::<Vec<_>>();
        assert_eq!(counted, [gold.admitted, bronze.admitted]);
    }
}

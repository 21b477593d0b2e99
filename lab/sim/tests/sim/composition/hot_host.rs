//! Goal: with the origin short, a crowd at one host leaves the others their usual demand. Method: two hosts
//! at one origin of 100 requests a second, 20 each; then one of them gets many times what the origin can
//! do.

use super::plant::{CALM_S, CROWD_S, Composition};
use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, Policy, RunOutcome, Scenario, SentryPolicy, ServerModel, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

const CAPACITY_RPS: f64 = 100.0;
const USUAL_RPS: f64 = 20.0;

fn outcome(times: f64, seed: u64) -> RunOutcome {
    let seconds = Duration::from_secs;
    let crowd =
        RateProfile::step(USUAL_RPS, times * CAPACITY_RPS, seconds(CALM_S), seconds(CALM_S + CROWD_S));
    let usual = RateProfile::constant(USUAL_RPS, seconds(CALM_S + CROWD_S));
    let streams = [crowd, usual].into_iter().zip(0..).map(|(profile, class)| Stream {
        arrivals: ArrivalProcess::Poisson(profile.expect("a profile")),
        classes: vec![Share { class, weight: 1.0 }],
    });
    let schedule = Schedule::new(streams.collect(), seed).expect("a schedule");
    let work = Work::Exponential { mean: Duration::from_secs_f64(1.0 / CAPACITY_RPS) };
    let class = |(name, host)| ClassModel { host, ..ClassModel::new(name, work) };
    let mut policy = Composition::Default.policy();
    if let Policy::Pipeline(pipeline) = &mut policy {
        pipeline.sentry = pipeline.sentry.take().map(|sentry| SentryPolicy { workers: 2, ..sentry });
    }
    let scenario = Scenario {
        policy,
        seed,
        classes: [("hot", 0), ("other", 1)].map(class).to_vec(),
        ..Scenario::new(schedule, class(("replaced", 0)), ServerModel::processor_sharing(1))
    };
    run(&scenario).expect("a run")
}

#[test]
fn a_crowd_at_one_host_leaves_the_others_their_usual_demand() {
    for times in [1.5, 3.0, 10.0] {
        for seed in 1..=3 {
            let outcome = outcome(times, seed);
            let seconds = (CALM_S + 2) as usize..(CALM_S + CROWD_S) as usize - 1;
            let bins = &outcome.classes[1].bins[seconds.clone()];
            let (good, offered) =
                bins.iter().fold((0, 0), |(good, offered), bin| (good + bin.goodput, offered + bin.offered));
            let in_time = good as f64 / offered as f64;
            let counts = outcome.began_within(seconds.clone());
            let useful = outcome.mean_level(seconds).busy * counts.goodput as f64 / counts.completed as f64;
            println!("{times} times, seed {seed}: others in time {in_time:.3}, useful {useful:.3}");
            assert!(
                in_time >= 0.98 && useful >= 0.98,
                "{times} times, seed {seed}: {in_time}, useful {useful}"
            );
        }
    }
}

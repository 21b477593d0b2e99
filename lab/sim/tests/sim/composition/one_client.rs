//! Goal: no client takes the others' room. Method: people who ask for three fifths of what an origin can
//! do, each once, beside one client with many connections, which asks again 20 ms after each answer and
//! each refusal; the share of people who are answered in time, with the seconds in which the client is
//! found out.

use super::plant::{CALM_S, CROWD_S, Composition};
use flashweir_core::Duration;
use flashweir_sim::request::{
    ClassModel, NetworkModel, Policy, Scenario, SentryPolicy, ServerModel, Work, run,
};
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::{Habits, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

/// One client.
#[derive(Clone, Copy, Debug)]
struct Greedy {
    connections: u32,
    work_ms: u64,
    /// Time that it waits for each answer.
    patience: &'static str,
}

/// Requests of 10 ms each are shared among them, or taken as they come.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Sharing(u32),
    InOrder(u32),
}

impl Origin {
    fn model(self) -> (u32, ServerModel) {
        match self {
            Self::Sharing(processors) => (processors, ServerModel::processor_sharing(processors)),
            Self::InOrder(processors) => (processors, ServerModel::first_come(processors, 10_000)),
        }
    }
}

fn honest_in_time(origin: Origin, greedy: Greedy, seed: u64) -> f64 {
    let seconds = Duration::from_secs;
    let (processors, server) = origin.model();
    let people = RateProfile::constant(60.0 * f64::from(processors), seconds(CALM_S + CROWD_S));
    // All its connections within a second.
    let opened = RateProfile::step(0.001, greedy.connections.into(), seconds(CALM_S), seconds(CALM_S + 1));
    let streams = [people, opened].into_iter().zip(0..).map(|(profile, class)| Stream {
        arrivals: ArrivalProcess::Poisson(profile.expect("a profile")),
        classes: vec![Share { class, weight: 1.0 }],
    });
    let schedule = Schedule::new(streams.collect(), seed).expect("a schedule");
    let people = ClassModel::new("people", Work::Exponential { mean: Duration::from_millis(10) });
    let session =
        Session { requests: "endless".parse().expect("a length"), think: "20ms".parse().expect("a wait") };
    let habits = Habits { session, patience: Some(greedy.patience.parse().expect("a wait")), retry: None };
    let one_client = ClassModel {
        is_one_client: true,
        goes_on_unserved: true,
        habits,
        // Another page of the same site.
        popularity: Popularity::Recorded([7].into()),
        ..ClassModel::new("one client", Work::Constant(Duration::from_millis(greedy.work_ms)))
    };
    let mut policy = Composition::Default.policy();
    if let Policy::Pipeline(pipeline) = &mut policy {
        pipeline.sentry = pipeline.sentry.take().map(|sentry| SentryPolicy { workers: 2, ..sentry });
    }
    let scenario = Scenario {
        policy,
        seed,
        classes: vec![people.clone(), one_client],
        network: NetworkModel::Delay(Duration::from_millis(1)),
        ..Scenario::new(schedule, people, server)
    };
    let outcome = run(&scenario).expect("a run");
    let bins = outcome.classes[0].bins.iter().skip(CALM_S as usize + 1).take(CROWD_S as usize - 2);
    let (good, offered) =
        bins.fold((0, 0), |(good, offered), bin| (good + bin.goodput, offered + bin.offered));
    good as f64 / offered as f64
}

#[test]
fn people_are_answered_beside_one_greedy_client() {
    let flood = |connections, patience| Greedy { connections, work_ms: 10, patience };
    let dear = |connections| Greedy { connections, work_ms: 400, patience: "10s" };
    let both = [Origin::Sharing(1), Origin::Sharing(4)];
    let in_order = [Origin::InOrder(1), Origin::InOrder(4)];
    let cases = [
        (flood(64, "10s"), &both[..], 0.95),
        (flood(500, "10s"), &both, 0.95),
        (flood(64, "3ms"), &both, 0.95),
        (flood(64, "10s"), &in_order, 0.95),
        (dear(4), &both[1..], 0.95),
    ];
    for (greedy, origins, least) in cases {
        for &origin in origins {
            let found = [1, 2, 3].map(|seed| honest_in_time(origin, greedy, seed));
            println!("{greedy:?} at {origin:?}: {found:.3?} of the people in time");
            assert!(found.iter().all(|&found| found >= least), "{greedy:?} at {origin:?}: {found:.3?}");
        }
    }
    // Costly pages are there before their cost is known, 1.6 or 6.4 s of a processor's work, and on an origin
    // that takes one request after the other each is in the way of 24 people. The worst of sixteen seeds is
    // far below the mean under any rule of shares: a page that is admitted cannot be taken back.
    const SEEDS: u64 = 16;
    let cases = [
        // Not the mean of 0.975 that an earlier rule had: 0.969 is measured. Seven seeds serve every client;
        // four have 0.899 to 0.933.
        (dear(4), Origin::Sharing(1), 0.965, 0.88),
        (dear(16), Origin::Sharing(1), 0.92, 0.82),
        (dear(16), Origin::Sharing(4), 0.96, 0.88),
        (dear(4), Origin::InOrder(1), 0.95, 0.85),
        (dear(4), Origin::InOrder(4), 0.97, 0.78),
    ];
    for (greedy, origin, least_mean, least) in cases {
        let found: Vec<f64> = (1..=SEEDS).map(|seed| honest_in_time(origin, greedy, seed)).collect();
        let mean = found.iter().sum::<f64>() / SEEDS as f64;
        println!("{greedy:?} at {origin:?}: {found:.2?}, mean {mean:.3}");
        let is_each_served = found.iter().all(|&found| found >= least);
        assert!(mean >= least_mean && is_each_served, "{greedy:?} at {origin:?}: {mean:.3} of {found:.2?}");
    }
}

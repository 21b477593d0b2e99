//! Request-level events a second: plain queues, the gateway's own gate and planner before them, and people
//! with sessions, patience and retries. Prints one line each; the best of three runs, as others use the
//! machine, too. A word on the command line runs only those that contain it.

use flashweir_core::{Duration, Rate};
use flashweir_sim::network::{Buffer, LinkSettings};
use flashweir_sim::request::{
    ClassModel, ClassPath, ClientGroup, FlashCrowdPolicy, NetworkModel, PacketNetwork, Policy, Scenario,
    ServerModel, Wire, Work, run,
};
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::{Habits, Retry, Session};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
use std::time::Instant as Clock;

const RATE_RPS: f64 = 10_000.0;

fn main() {
    let work = Work::Exponential { mean: Duration::from_micros(70) };
    let plain = |server| Scenario::new(poisson(RATE_RPS), ClassModel::new("all", work), server);
    let first_come = plain(ServerModel::first_come(1, 1));
    report("first come, first served", &first_come);
    report("processor sharing", &plain(ServerModel::processor_sharing(1)));
    let delayed = Scenario { network: NetworkModel::Delay(Duration::from_millis(20)), ..first_come.clone() };
    report("with a network delay", &delayed);
    let policy = Policy::flash_crowd(FlashCrowdPolicy::default());
    report("with NEWS, quiet", &Scenario { policy: policy.clone(), ..delayed.clone() });
    report("with NEWS, three times the capacity", &Scenario { policy, ..crowd(work) });
    report("no control, three times the capacity", &crowd(work));
    let policy = Policy::StaticRate { rate: Rate::from_per_second(RATE_RPS), burst: 100 };
    report("with a token bucket, three times the capacity", &Scenario { policy, ..crowd(work) });
    report("people with sessions, patience and retries", &people(work));
    report("the same over packets", &over_packets(people(work)));
}

fn poisson(rate_rps: f64) -> Schedule {
    let profile = RateProfile::constant(rate_rps, Duration::from_secs(100)).expect("a rate");
    Schedule::one(ArrivalProcess::Poisson(profile), 1)
}

fn crowd(work: Work) -> Scenario {
    let (start, length) = (Duration::from_secs(10), Duration::from_secs(60));
    let profile = RateProfile::step(0.4 * RATE_RPS, 4.0 * RATE_RPS, start, length).expect("a step");
    let schedule = Schedule::one(ArrivalProcess::Poisson(profile), 1);
    // Pages enough that each is asked for at a rate of which the gate can learn what is usual.
    let popularity = Popularity::zipf(0.6, 10_000).expect("a popularity");
    let class = ClassModel { popularity, ..ClassModel::new("all", work) };
    let delay = Duration::from_millis(20);
    Scenario {
        network: NetworkModel::Delay(delay),
        ..Scenario::new(schedule, class, ServerModel::first_come(1, 1))
    }
}

fn people(work: Work) -> Scenario {
    let session = Session {
        requests: "geometric:5".parse().expect("a length"),
        think: "exp:2s".parse().expect("a wait"),
    };
    let habits =
        Habits { patience: Some("exp:4s".parse().expect("a wait")), session, retry: Some(Retry::default()) };
    let class = ClassModel { habits, ..ClassModel::new("all", work) };
    let delay = Duration::from_millis(20);
    let server = ServerModel::processor_sharing(1);
    Scenario { network: NetworkModel::Delay(delay), ..Scenario::new(poisson(RATE_RPS / 4.0), class, server) }
}

/// Behind 1,000 access links, and a wire that carries what the server makes.
fn over_packets(scenario: Scenario) -> Scenario {
    let delay = Duration::from_millis(10);
    let link = LinkSettings::drop_tail(1_000_000_000, delay, Buffer::Packets(1_000));
    let network = PacketNetwork {
        nodes: 2,
        wires: vec![Wire { ends: [0, 1], there: link.clone(), back: link }],
        clients: vec![ClientGroup::alike(0, 1_000, 10_000_000, delay)],
        paths: vec![ClassPath::new(0, 1)],
        ..PacketNetwork::default()
    };
    Scenario { network: NetworkModel::Packets(Box::new(network)), ..scenario }
}

fn report(what: &str, scenario: &Scenario) {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    if words.peek().is_some() && !words.any(|word| what.contains(&word)) {
        return;
    }
    let mut best_s = f64::INFINITY;
    let mut events = 0;
    for _ in 0..3 {
        let start = Clock::now();
        events = run(scenario).expect("a run").events;
        best_s = best_s.min(start.elapsed().as_secs_f64());
    }
    let millions = events as f64 / 1e6;
    println!("{what:<46} {millions:>6.1} M events  {:>6.2} M events/s", millions / best_s);
}

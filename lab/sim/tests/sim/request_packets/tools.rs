//! Small networks and crowds.

use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{Buffer, LinkSettings};
use flashweir_sim::request::{
    ClassModel, ClassPath, ClientGroup, Fault, FaultKind, NetworkModel, PacketNetwork, RunOutcome, Scenario,
    ServerModel, Wire, Work, run,
};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn link(bits_per_s: u64, delay: Duration, packets: u32) -> LinkSettings {
    LinkSettings::drop_tail(bits_per_s, delay, Buffer::Packets(packets))
}

pub(crate) fn wire(ends: [u32; 2], settings: &LinkSettings) -> Wire {
    Wire { ends, there: settings.clone(), back: settings.clone() }
}

/// Clients at node 0, the gate at node 1, one wire between them; a path for each class.
pub(crate) fn network(bottleneck: &LinkSettings, classes: usize) -> PacketNetwork {
    PacketNetwork {
        nodes: 2,
        wires: vec![wire([0, 1], bottleneck)],
        clients: vec![ClientGroup::alike(0, 50, 100_000_000, MS)],
        paths: vec![ClassPath::new(0, 1); classes],
        ..PacketNetwork::default()
    }
}

/// A wire too wide to have any effect.
pub(crate) fn wide() -> LinkSettings {
    link(1_000_000_000, MS, 10_000)
}

pub(crate) fn steady(rate_rps: f64, length_s: u64) -> ArrivalProcess {
    ArrivalProcess::Poisson(RateProfile::constant(rate_rps, Duration::from_secs(length_s)).unwrap())
}

pub(crate) fn crowd(quiet_rps: f64, crowd_rps: f64, from_s: u64, length_s: u64) -> ArrivalProcess {
    let (from, length) = (Duration::from_secs(from_s), Duration::from_secs(length_s));
    ArrivalProcess::Poisson(RateProfile::step(quiet_rps, crowd_rps, from, length).unwrap())
}

/// One stream of people for each class.
pub(crate) fn streams(arrivals: Vec<ArrivalProcess>, seed: u64) -> Schedule {
    let streams = arrivals.into_iter().zip(0..).map(|(arrivals, class)| {
        let classes = vec![Share { class, weight: 1.0 }];
        Stream { arrivals, classes }
    });
    Schedule::new(streams.collect(), seed).unwrap()
}

/// A service of 200 requests a second.
pub(crate) fn class() -> ClassModel {
    ClassModel::new("all", Work::Constant(5 * MS))
}

pub(crate) fn over(packets: PacketNetwork, arrivals: ArrivalProcess, class: ClassModel) -> Scenario {
    let network = NetworkModel::Packets(Box::new(packets));
    Scenario { network, ..Scenario::new(Schedule::one(arrivals, 3), class, ServerModel::first_come(1, 1)) }
}

pub(crate) fn during(kind: FaultKind, from_s: u64, to_s: u64) -> Vec<Fault> {
    vec![Fault { kind, during: Instant::from_secs(from_s)..Instant::from_secs(to_s) }]
}

pub(crate) fn done(scenario: &Scenario) -> RunOutcome {
    run(scenario).expect("a scenario within its bounds")
}

pub(crate) fn mean_latency_s(outcome: &RunOutcome) -> f64 {
    outcome.totals().mean_latency_s().expect("one was served")
}

pub(crate) fn scenario_server() -> ServerModel {
    ServerModel::first_come(1, 1)
}

//! A flash crowd as the request level knows it: one class over packets.

use super::{Links, Scenario, Server};
use crate::network::{Buffer, LinkSettings};
use crate::request::{
    self, ClassModel, ClassPath, ClientGroup, NetworkModel, Overflow, PacketNetwork, RouterPlace,
    ScenarioError, ServerModel, Transfer, Wire, Work,
};
use flashweir_core::Duration;
use flashweir_workload::documents::Popularity;
use flashweir_workload::people::Habits;
use flashweir_workload::{ArrivalProcess, Schedule};

/// The scenario in the words of the request level.
pub(super) fn described(scenario: &Scenario) -> Result<request::Scenario, ScenarioError> {
    let (work, server) = served_by(scenario.server)?;
    let crowd = ClassModel {
        // Each request is for a different page.
        popularity: Popularity::EachNew,
        sizes: scenario.pages,
        habits: Habits { patience: scenario.patience, ..Habits::default() },
        timeout: LONGER_THAN_TCP,
        ..ClassModel::new("crowd", work)
    };
    let arrivals = ArrivalProcess::Poisson(scenario.arrivals.clone());
    Ok(request::Scenario {
        seed: scenario.seed,
        network: NetworkModel::Packets(Box::new(network(scenario))),
        bin: super::NewsOutcome::BIN,
        ..request::Scenario::new(Schedule::one(arrivals, scenario.seed), crowd, server)
    })
}

/// Clients – access links – router – bottleneck – router with the servers behind it.
///
/// The paper's routers between the clients and the bottleneck and its separate servers have links without
/// queues; they are left out, as they would cost events and change nothing.
fn network(scenario: &Scenario) -> PacketNetwork {
    let Links { clients: count, access_bits_per_s, access_delay, access_buffer_packets, .. } = scenario.links;
    let links = &scenario.links;
    let buffer = Buffer::Packets(links.bottleneck_buffer_packets);
    let bottleneck = LinkSettings::drop_tail(links.bottleneck_bits_per_s, links.bottleneck_delay, buffer);
    let mut network = PacketNetwork {
        nodes: 2,
        wires: vec![wire([CLIENTS, SERVERS], bottleneck)],
        clients: vec![ClientGroup {
            at: CLIENTS,
            count,
            access_bits_per_s,
            access_delay,
            access_buffer_packets,
        }],
        paths: vec![ClassPath { tcp: scenario.tcp.clone(), ..ClassPath::new(0, SERVERS) }],
        router: Some(RouterPlace {
            wire: BOTTLENECK,
            settings: scenario.router,
            first_tick: scenario.first_tick,
            guarded: vec![true],
        }),
        ..PacketNetwork::default()
    };
    if let Some(bulk) = &scenario.bulk {
        let buffer = Buffer::Packets(access_buffer_packets);
        let access = LinkSettings::drop_tail(bulk.access_bits_per_s, bulk.access_delay, buffer);
        network.nodes = 3;
        network.wires.push(wire([BULK, CLIENTS], access));
        network.transfers.push(Transfer {
            name: "bulk".to_owned(),
            from: SERVERS,
            to: BULK,
            tcp: bulk.tcp.clone(),
            starts: Duration::ZERO,
            bytes: None,
        });
    }
    network
}

fn wire(ends: [u32; 2], settings: LinkSettings) -> Wire {
    Wire { ends, there: settings.clone(), back: settings }
}

fn served_by(server: Server) -> Result<(Work, ServerModel), ScenarioError> {
    let Server::FirstComeFirstServed { bytes_per_s, requests_most } = server else {
        return Ok((Work::Constant(Duration::ZERO), ServerModel::processor_sharing(1)));
    };
    // One of the requests that there is room for is being served.
    let queue = requests_most.map(|most| most.checked_sub(1).and_then(|queue| u32::try_from(queue).ok()));
    if queue == Some(None) {
        let problem = format!("expected 1 to {}", u32::MAX);
        return Err(ScenarioError { key: "server.requests_most".to_owned(), problem });
    }
    let model =
        ServerModel { queue: queue.flatten(), overflow: Overflow::Reset, ..ServerModel::first_come(1, 1) };
    Ok((Work::PerByte { bytes_per_s }, ServerModel { departed: request::Departed::WorksOn, ..model }))
}

/// The nodes: the clients' router, the servers' router, and the client of the bulk transfer.
const CLIENTS: u32 = 0;
const SERVERS: u32 = 1;
const BULK: u32 = 2;
/// The wire between the two routers.
pub(super) const BOTTLENECK: usize = 0;
/// People have their own patience, or TCP's: an hour is beyond every run but the longest.
const LONGER_THAN_TCP: Duration = Duration::from_secs(3_600);

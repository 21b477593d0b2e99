//! Clients – access links – router – bottleneck – router with the servers behind it.
//!
//! The paper's routers between the clients and the bottleneck and its separate servers have links without queues; they
//! are left out, as they would cost events and change nothing.

use super::{NewsError, Scenario};
use crate::network::{Buffer, LinkId, LinkSettings, Network, NodeId, RouteId, TcpId, Watch};
use flashweir_core::{Duration, Rng};

/// The network with what its owner needs to name.
pub(super) struct Topology {
    pub(super) network: Network,
    /// From each client.
    pub(super) routes: Vec<RouteId>,
    pub(super) tcp: TcpId,
    /// The bottleneck toward the clients, where responses queue.
    pub(super) responses: LinkId,
    pub(super) bulk: Option<(RouteId, TcpId)>,
}

pub(super) fn build(scenario: &Scenario) -> Result<Topology, NewsError> {
    let links = &scenario.links;
    let mut network = Network::new(scenario.seed);
    let (router, servers) = (network.add_node()?, network.add_node()?);
    let buffer = Buffer::Packets(links.bottleneck_buffer_packets);
    let bottleneck = LinkSettings::drop_tail(links.bottleneck_bits_per_s, links.bottleneck_delay, buffer);
    let [requests, responses] = network.add_wire(router, servers, &bottleneck)?;
    // The servers' router sees requests as they come to it, and responses before they queue for the bottleneck.
    network.watch(requests, Watch::Leaving)?;
    network.watch(responses, Watch::Entering)?;
    let draws = Rng::new(scenario.seed).fork(LINKS);
    let routes = (0..links.clients)
        .map(|client| {
            let mut rng = draws.fork(u64::from(client));
            let (slowest, fastest) = links.access_bits_per_s;
            let rate = log_uniform(&mut rng, slowest as f64, fastest as f64);
            let (shortest, longest) = links.access_delay;
            let delay_s = log_uniform(&mut rng, shortest.as_secs_f64(), longest.as_secs_f64());
            // Rounded to whole bits per second and nanoseconds here, once; no float is left in an event's time.
            let rate = libm::round(rate) as u64;
            let delay = Duration::from_nanos(libm::round(delay_s * 1e9) as u64);
            add_client(&mut network, scenario, (router, servers), rate, delay)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let tcp = network.add_tcp(scenario.tcp.clone())?;
    let bulk = match &scenario.bulk {
        None => None,
        Some(bulk) => {
            let ends = (router, servers);
            let route = add_client(&mut network, scenario, ends, bulk.access_bits_per_s, bulk.access_delay)?;
            Some((route, network.add_tcp(bulk.tcp.clone())?))
        }
    };
    Ok(Topology { network, routes, tcp, responses, bulk })
}

fn add_client(
    network: &mut Network,
    scenario: &Scenario,
    (router, servers): (NodeId, NodeId),
    rate_bits_per_s: u64,
    delay: Duration,
) -> Result<RouteId, NewsError> {
    let client = network.add_node()?;
    let buffer = Buffer::Packets(scenario.links.access_buffer_packets);
    network.add_wire(client, router, &LinkSettings::drop_tail(rate_bits_per_s, delay, buffer))?;
    Ok(network.add_route(client, servers)?)
}

/// Between two bounds, every factor alike likely.
fn log_uniform(rng: &mut Rng, least: f64, most: f64) -> f64 {
    (least * libm::pow(most / least, rng.unit_f64())).clamp(least, most)
}

/// Names the fork that links are drawn from: "link" in ASCII.
const LINKS: u64 = 0x6C69_6E6B;

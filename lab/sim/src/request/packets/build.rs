//! Makes a network of its description.

use super::error::{at, wrong};
use super::{ClientGroup, DatagramSource, PacketNetwork, Transfer, Wire};
use crate::network::{
    Buffer, DatagramSettings, LinkId, LinkSettings, Network, NetworkError, NodeId, RouteId, SourceId, TcpId,
    TcpSettings, Watch,
};
use crate::request::ScenarioError;
use flashweir_core::{Duration, Instant, Rng};

/// The network with what its owner needs to name.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) network: Network,
    nodes: Vec<NodeId>,
    /// Both directions of each wire, in the order of the description.
    pub(super) wires: Vec<[LinkId; 2]>,
    /// Each class's way, in its order.
    pub(super) paths: Vec<Path>,
    pub(super) transfers: Vec<(RouteId, TcpId)>,
    pub(super) datagrams: Vec<SourceId>,
}

/// Path of the tries of one class.
#[derive(Debug)]
pub(super) struct Path {
    /// From each of its clients.
    pub(super) routes: Vec<RouteId>,
    pub(super) tcp: TcpId,
    /// Draws which client a person sits at.
    seats: Rng,
}

impl Built {
    /// Everything, with the clients' links drawn from `seed`. O((nodes + clients) · clients).
    pub(super) fn new(described: &PacketNetwork, seed: u64) -> Result<Self, ScenarioError> {
        let mut built = Self::of_nodes_and_wires(described, seed)?;
        let mut groups = Vec::with_capacity(described.clients.len());
        for (index, group) in described.clients.iter().enumerate() {
            let draws = Rng::new(seed).fork(LINKS | (index as u64) << 32);
            groups.push(built.add_clients(group, &draws).map_err(at(format_args!("clients[{index}]")))?);
        }
        built.add_paths(described, &groups, seed)?;
        built.add_transfers(&described.transfers)?;
        built.add_datagrams(&described.datagrams)?;
        Ok(built)
    }

    /// The same without clients: whether the rest makes a network.
    pub(super) fn without_clients(described: &PacketNetwork) -> Result<Self, ScenarioError> {
        let mut built = Self::of_nodes_and_wires(described, 0)?;
        for (index, group) in described.clients.iter().enumerate() {
            built.node(group.at).map_err(at(format_args!("clients[{index}].at")))?;
        }
        let groups = vec![Vec::new(); described.clients.len()];
        built.add_paths(described, &groups, 0)?;
        built.add_transfers(&described.transfers)?;
        built.add_datagrams(&described.datagrams)?;
        Ok(built)
    }

    fn of_nodes_and_wires(described: &PacketNetwork, seed: u64) -> Result<Self, ScenarioError> {
        let mut network = Network::new(seed);
        let nodes = (0..described.nodes).map(|_| network.add_node()).collect::<Result<Vec<_>, _>>();
        let nodes = nodes.map_err(at("nodes"))?;
        let mut built = Self {
            network,
            nodes,
            wires: Vec::new(),
            paths: Vec::new(),
            transfers: Vec::new(),
            datagrams: Vec::new(),
        };
        for (index, wire) in described.wires.iter().enumerate() {
            if wire.ends[0] == wire.ends[1] {
                return wrong(format_args!("wires[{index}]"), "it leads from a node to itself");
            }
            built.add_wire(wire).map_err(at(format_args!("wires[{index}]")))?;
        }
        if let Some(router) = &described.router
            && let Some(&[requests, responses]) = built.wires.get(router.wire)
        {
            // It sees requests as they come to it, and responses before they queue for the wire.
            built.network.watch(requests, Watch::Leaving).map_err(at("router"))?;
            built.network.watch(responses, Watch::Entering).map_err(at("router"))?;
        }
        Ok(built)
    }

    fn add_wire(&mut self, wire: &Wire) -> Result<(), NetworkError> {
        let [one, other] = [self.node(wire.ends[0])?, self.node(wire.ends[1])?];
        let there = self.network.add_link(one, other, &wire.there)?;
        let back = self.network.add_link(other, one, &wire.back)?;
        self.wires.push([there, back]);
        Ok(())
    }

    /// The nodes of a group's clients.
    fn add_clients(&mut self, group: &ClientGroup, draws: &Rng) -> Result<Vec<NodeId>, NetworkError> {
        let at = self.node(group.at)?;
        let client = |number| {
            let client = self.network.add_node()?;
            self.network.add_wire(client, at, &access_link(group, draws.fork(number)))?;
            Ok(client)
        };
        (0..u64::from(group.count)).map(client).collect()
    }

    fn add_paths(
        &mut self,
        described: &PacketNetwork,
        groups: &[Vec<NodeId>],
        seed: u64,
    ) -> Result<(), ScenarioError> {
        for (index, path) in described.paths.iter().enumerate() {
            let key = || format!("paths[{index}]");
            let server = self.node(path.server).map_err(at(key()))?;
            let clients_at = self.node(described.clients[path.clients].at).map_err(at(key()))?;
            if clients_at != server {
                // Reports a missing route by nodes of the description; the clients' own routes only begin one
                // link earlier.
                self.network.add_route(clients_at, server).map_err(at(key()))?;
            }
            let clients = groups[path.clients].iter();
            let routes = clients.map(|client| self.network.add_route(*client, server));
            let routes = routes.collect::<Result<Vec<_>, _>>().map_err(at(key()))?;
            let tcp = self.add_tcp(&path.tcp).map_err(at(key()))?;
            let seats = Rng::new(seed).fork(SEATS | (index as u64) << 32);
            self.paths.push(Path { routes, tcp, seats });
        }
        Ok(())
    }

    fn add_transfers(&mut self, transfers: &[Transfer]) -> Result<(), ScenarioError> {
        for (index, transfer) in transfers.iter().enumerate() {
            let mut add = || {
                let (receiver, sender) = (self.node(transfer.to)?, self.node(transfer.from)?);
                Ok((self.network.add_route(receiver, sender)?, self.add_tcp(&transfer.tcp)?))
            };
            let added = add().map_err(at(format_args!("transfers[{index}]")))?;
            self.transfers.push(added);
        }
        Ok(())
    }

    fn add_datagrams(&mut self, sources: &[DatagramSource]) -> Result<(), ScenarioError> {
        for (index, source) in sources.iter().enumerate() {
            let mut add = || {
                let (from, to) = (self.node(source.from)?, self.node(source.to)?);
                let route = self.network.add_route(from, to)?;
                self.network.add_datagrams(DatagramSettings {
                    route,
                    packet_bytes: source.packet_bytes,
                    rate_bits_per_s: source.rate_bits_per_s,
                    from: Instant::from_duration(source.starts),
                    until: source.ends.map_or(Instant::MAX, Instant::from_duration),
                })
            };
            let added = add().map_err(at(format_args!("datagrams[{index}]")))?;
            self.datagrams.push(added);
        }
        Ok(())
    }

    fn add_tcp(&mut self, settings: &TcpSettings) -> Result<TcpId, NetworkError> {
        self.network.add_tcp(settings.clone())
    }

    fn node(&self, number: u32) -> Result<NodeId, NetworkError> {
        let index = number as usize;
        self.nodes.get(index).copied().ok_or(NetworkError::Unknown { what: "node", index })
    }
}

impl Path {
    /// The route of a person's packets: people of one class keep their clients when other parts of a scenario
    /// change.
    pub(super) fn route_of(&self, person: u64) -> RouteId {
        self.routes[self.seats.fork(person).below(self.routes.len() as u64) as usize]
    }
}

fn access_link(group: &ClientGroup, mut rng: Rng) -> LinkSettings {
    let (slowest, fastest) = group.access_bits_per_s;
    let rate = log_uniform(&mut rng, slowest as f64, fastest as f64);
    let (shortest, longest) = group.access_delay;
    let delay_s = log_uniform(&mut rng, shortest.as_secs_f64(), longest.as_secs_f64());
    // Rounded to whole bits per second and nanoseconds here, once; no float is left in an event's time.
    let rate = libm::round(rate) as u64;
    let delay = Duration::from_nanos(libm::round(delay_s * 1e9) as u64);
    LinkSettings::drop_tail(rate, delay, Buffer::Packets(group.access_buffer_packets))
}

/// Between two bounds, every factor alike likely; zero if both are.
fn log_uniform(rng: &mut Rng, least: f64, most: f64) -> f64 {
    let unit = rng.unit_f64();
    if most == 0.0 { 0.0 } else { (least * libm::pow(most / least, unit)).clamp(least, most) }
}

/// Names the fork that access links are drawn from, for each group: "link" in ASCII.
const LINKS: u64 = 0x6C69_6E6B;
/// Names the fork that people's clients are drawn from, for each class: "clie" in ASCII.
const SEATS: u64 = 0x636C_6965;

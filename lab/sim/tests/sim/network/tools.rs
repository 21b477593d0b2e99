//! Small networks for the tests of the packet level.

use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{
    Buffer, FlowId, FlowRecord, FlowSettings, Happening, LinkId, LinkSettings, Network, NoStage, Response,
    RouteId, TcpSettings,
};

/// A client and a server with one wire between them.
pub(crate) struct Pair {
    pub(crate) network: Network,
    pub(crate) route: RouteId,
    pub(crate) up: LinkId,
    pub(crate) down: LinkId,
}

impl Pair {
    pub(crate) fn new(seed: u64, up: &LinkSettings, down: &LinkSettings) -> Self {
        let mut network = Network::new(seed);
        let client = network.add_node().unwrap();
        let server = network.add_node().unwrap();
        let up = network.add_link(client, server, up).unwrap();
        let down = network.add_link(server, client, down).unwrap();
        let route = network.add_route(client, server).unwrap();
        Self { network, route, up, down }
    }

    pub(crate) fn open(&mut self, at: Instant, tcp: &TcpSettings, response_bytes: u64) -> FlowId {
        let tcp = self.network.add_tcp(tcp.clone()).unwrap();
        let response = Response::Bytes(response_bytes);
        let settings = FlowSettings { route: self.route, tcp, request_bytes: 300, response, token: 0 };
        self.network.open(at, settings).unwrap()
    }

    /// Runs to `until` without a stage; the flows that ended.
    pub(crate) fn run(&mut self, until: Instant) -> Vec<FlowRecord> {
        let mut ended = Vec::new();
        while let Some((_, happening)) = self.network.next(&mut NoStage, until).unwrap() {
            if let Happening::Ended(record) = happening {
                ended.push(record);
            }
        }
        self.network.check().unwrap();
        ended
    }
}

/// A wire without losses and with room for everything.
pub(crate) fn wide(rate_bits_per_s: u64, delay: Duration) -> LinkSettings {
    LinkSettings::drop_tail(rate_bits_per_s, delay, Buffer::Packets(100_000))
}

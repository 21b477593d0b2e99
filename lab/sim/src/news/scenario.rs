//! Scenarios: the crowd, the links, the server and the controller.

use crate::network::TcpSettings;
use crate::router::RouterSettings;
use flashweir_core::Duration;
use flashweir_workload::RateProfile;
use flashweir_workload::documents::Sizes;
use flashweir_workload::people::Wait;

/// A flash crowd at a router with NEWS. The default is a quiet hour at the paper's topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Draws everything: links, people, pages.
    pub seed: u64,
    /// People per second over time, each with one request; the run ends with it.
    pub arrivals: RateProfile,
    /// Bytes of each person's page.
    pub pages: Sizes,
    /// Time that a person waits for the whole page before leaving for good; none: as long as TCP does (an
    /// hour at most).
    pub patience: Option<Wait>,
    /// The network.
    pub links: Links,
    /// TCP of the people and the server.
    pub tcp: TcpSettings,
    /// The server of the crowd's pages.
    pub server: Server,
    /// Controller of new connections; its interval is 1 s to an hour.
    pub router: RouterSettings,
    /// Time of its first decision; above zero and at most one interval. Which part of it a crowd meets makes
    /// a difference.
    pub first_tick: Duration,
    /// A long transfer from another server through the same bottleneck, which the router does not limit.
    pub bulk: Option<BulkTransfer>,
}

/// Links between the clients, the router on their side, and the router on the servers' side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// Clients, each with an access link; people are drawn to them uniformly.
    pub clients: u32,
    /// Slowest and fastest access link, bits per second: log-uniform between, each way alike.
    pub access_bits_per_s: (u64, u64),
    /// Shortest and longest one-way delay of access links: log-uniform between, drawn independently of the
    /// rate.
    pub access_delay: (Duration, Duration),
    /// Room before each access link, packets.
    pub access_buffer_packets: u32,
    /// Rate of the bottleneck, bits per second, each way.
    pub bottleneck_bits_per_s: u64,
    /// One-way delay of the bottleneck.
    pub bottleneck_delay: Duration,
    /// Room before the bottleneck, packets.
    pub bottleneck_buffer_packets: u32,
}

/// Model of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Infinitely fast: only the network limits.
    Immediate,
    /// First come, first served, at a rate in bytes of pages (§7.6.2).
    FirstComeFirstServed {
        /// Bytes of pages made in a second; at least 1.
        bytes_per_s: u64,
        /// Requests that may wait or be served at once, at least 1; the connections of more are reset. None:
        /// no bound.
        requests_most: Option<usize>,
    },
}

/// A transfer without end by another server (§7.5).
#[derive(Clone, Debug, PartialEq)]
pub struct BulkTransfer {
    /// Its TCP.
    pub tcp: TcpSettings,
    /// Rate of its client's access link, bits per second.
    pub access_bits_per_s: u64,
    /// One-way delay of that link.
    pub access_delay: Duration,
}

impl Default for Scenario {
    fn default() -> Self {
        // Holds because the rate and the length are valid constants.
        let arrivals =
            RateProfile::constant(35.0, Duration::from_secs(3_600)).expect("a valid constant rate");
        Self {
            seed: 1,
            arrivals,
            pages: Sizes::Constant(4_000),
            patience: None,
            links: Links::default(),
            tcp: TcpSettings::of_2003(),
            server: Server::Immediate,
            router: RouterSettings::default(),
            first_tick: Duration::from_secs(60),
            bulk: None,
        }
    }
}

impl Default for Links {
    /// The paper's clients and the ends of their link properties (§7.1); a bottleneck of 4 Mb/s with ns-2's
    /// usual buffer of 50 packets, neither of which the paper gives.
    fn default() -> Self {
        Self {
            clients: 1_000,
            access_bits_per_s: (21_000, 10_000_000),
            access_delay: (Duration::from_micros(500), Duration::from_millis(1_800)),
            access_buffer_packets: 50,
            bottleneck_bits_per_s: 4_000_000,
            bottleneck_delay: Duration::from_millis(10),
            bottleneck_buffer_packets: 50,
        }
    }
}

impl Scenario {
    /// Length of the run.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.arrivals.length()
    }
}

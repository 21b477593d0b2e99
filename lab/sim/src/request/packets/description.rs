//! A network of links and packets, as a scenario describes it.

use crate::network::{LinkSettings, TcpSettings};
use crate::router::RouterSettings;
use flashweir_core::Duration;

/// Connection between clients and gate.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkModel {
    /// Every message takes this long, at most 10 s, and none is lost.
    Delay(Duration),
    /// Links with buffers, and TCP over them.
    Packets(Box<PacketNetwork>),
}

/// Links with buffers between clients, routers and servers, and who sends over them.
///
/// Each try is its own connection: a SYN, the request, the answer, by TCP. Gate and server of all classes are
/// one; a class's node says where it is reached. Nodes are numbers from 0 on; each client is a further node
/// with its own access link, and needs no number here. Packets take the way with the fewest links.
///
/// TCP ends at the gate, which is next to the server, as at the level of delays:
///
/// - A whole answer is the document's bytes; a refusal, the gate's or the server's, is 600.
/// - SYNs that TCP sends again belong to the same try. A connection that is never made, or that TCP gives up, has broken.
/// - While the server is down, and when it goes down, connections whose request is there are reset. Answers under way
///   arrive: the gate has them.
/// - A client that gives up resets the connection; the gate hears of it when that reset arrives, or, should it be lost, when
///   TCP has forgotten the connection ([`TcpSettings::timeout_max`] later).
/// - An answer counts as received when the gate has the last acknowledgement. Beyond the first window, bytes over the time
///   from the first one sent to that are the transfer rate that the gate's planner learns from.
/// - While the link is cut, every link loses what is offered to it, and TCP sends it again.
///
/// Memory: about 800 bytes for each connection that exists and 40 for each packet. A try for a small document
/// is 30 to 100 events of 0.1 to 0.5 µs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketNetwork {
    /// Number of nodes, clients not counted.
    pub nodes: u32,
    /// Wires between the nodes.
    pub wires: Vec<Wire>,
    /// Groups of clients.
    pub clients: Vec<ClientGroup>,
    /// For each class of the scenario, in its order: from where to where, and how.
    pub paths: Vec<ClassPath>,
    /// NEWS at a router, which drops SYNs.
    pub router: Option<RouterPlace>,
    /// Long transfers besides the people's, which no gate or router limits.
    pub transfers: Vec<Transfer>,
    /// Sources of datagrams at a constant rate.
    pub datagrams: Vec<DatagramSource>,
}

/// Two links between two nodes, one each way.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// The nodes it connects.
    pub ends: [u32; 2],
    /// From the first end to the second.
    pub there: LinkSettings,
    /// From the second end to the first.
    pub back: LinkSettings,
}

/// Clients at one node, each behind its own access link, alike both ways. People are drawn to them uniformly.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientGroup {
    /// The node that their access links lead to.
    pub at: u32,
    /// Number of clients.
    pub count: u32,
    /// Slowest and fastest access link, bits per second: log-uniform between.
    pub access_bits_per_s: (u64, u64),
    /// Shortest and longest one-way delay of access links: log-uniform between, drawn independently of the
    /// rate.
    pub access_delay: (Duration, Duration),
    /// Room before each access link, packets.
    pub access_buffer_packets: u32,
}

/// Path of the tries of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPath {
    /// Index of the group of clients its people sit at.
    pub clients: usize,
    /// The node at which they reach the gate.
    pub server: u32,
    /// TCP of both ends.
    pub tcp: TcpSettings,
    /// Bytes of a request, headers of HTTP included.
    pub request_bytes: u64,
}

/// A router at the second end of a wire, where requests arrive and responses leave; it sees what passes that
/// wire.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterPlace {
    /// Index of the wire.
    pub wire: usize,
    /// Settings of the decisions on new connections, one each interval of 1 s to an hour.
    pub settings: RouterSettings,
    /// Time of the first decision; above zero and at most one interval. The part of it that a crowd meets
    /// makes a difference.
    pub first_tick: Duration,
    /// For each class of the scenario, in its order, whether it is limited and measured. The classes' hosts
    /// distinguish hot spots.
    pub guarded: Vec<bool>,
}

/// A long transfer over one TCP connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Its name in reports.
    pub name: String,
    /// The node that sends the bytes.
    pub from: u32,
    /// The node that asks for them and receives them.
    pub to: u32,
    /// TCP of both ends.
    pub tcp: TcpSettings,
    /// Time at which it begins.
    pub starts: Duration,
    /// Bytes to send; none: without end.
    pub bytes: Option<u64>,
}

/// Datagrams of one size at a constant rate, regardless of loss.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSource {
    /// Its name in reports.
    pub name: String,
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Size of each packet, bytes, headers included; at least 1.
    pub packet_bytes: u16,
    /// Bits sent in a second, headers included; 1 to 10^12.
    pub rate_bits_per_s: u64,
    /// Departure of the first packet.
    pub starts: Duration,
    /// No packet leaves at or after this time; none: without end.
    pub ends: Option<Duration>,
}

impl ClientGroup {
    /// Clients behind access links that are all alike, with room for 50 packets each.
    #[must_use]
    pub fn alike(at: u32, count: u32, access_bits_per_s: u64, access_delay: Duration) -> Self {
        Self {
            at,
            count,
            access_bits_per_s: (access_bits_per_s, access_bits_per_s),
            access_delay: (access_delay, access_delay),
            access_buffer_packets: 50,
        }
    }
}

impl ClassPath {
    /// From a group of clients to a server by today's TCP, with requests of 300 bytes.
    #[must_use]
    pub fn new(clients: usize, server: u32) -> Self {
        Self { clients, server, tcp: TcpSettings::modern(), request_bytes: 300 }
    }
}

//! Outcome of a run at the packet level.

use crate::network::{DatagramBooks, FlowEnd, LinkBooks, PacketBooks};
use crate::router::{GateCounts, Tick};

/// Results of the packet level, bin after bin of the run; the last bin reaches to the run's end.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketOutcome {
    /// The wires, in the order of the description.
    pub wires: Vec<WireOutcome>,
    /// Measurements and decisions of the router, if there is one.
    pub router: Option<RouterOutcome>,
    /// The long transfers, in the order of the description.
    pub transfers: Vec<TransferOutcome>,
    /// The sources of datagrams, in the order of the description.
    pub datagrams: Vec<DatagramOutcome>,
    /// Ends of the tries' connections, each in the bin in which it happened.
    pub connections: Vec<ConnectionBin>,
    /// Location of all packets of the network in the end.
    pub packets: PacketBooks,
}

/// Packets of a simulated wire, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireOutcome {
    /// From its first end to its second.
    pub there: Vec<LinkBin>,
    /// From its second end to its first.
    pub back: Vec<LinkBin>,
}

/// One direction of a wire within one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBin {
    /// Packets that came to it.
    pub offered: u64,
    /// Of those, dropped: by its buffer, its discipline, the router, or on the way.
    pub dropped: u64,
    /// Packets marked instead of dropped.
    pub marked: u64,
    /// Bytes that arrived at the far end, headers included.
    pub delivered_bytes: u64,
}

/// The router.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterOutcome {
    /// SYNs of connections that were not let in yet, over the whole run.
    pub totals: GateCounts,
    /// The same, bin after bin.
    pub bins: Vec<GateCounts>,
    /// Measurements and decisions, interval after interval.
    pub ticks: Vec<Tick>,
    /// Ticks beyond the bound on those kept.
    pub ticks_left_out: u64,
}

/// One long transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOutcome {
    /// Its name.
    pub name: String,
    /// Bytes that its receiver got in order, bin after bin.
    pub received_bytes: Vec<u64>,
}

/// One source of datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramOutcome {
    /// Its name.
    pub name: String,
    /// Bin after bin.
    pub bins: Vec<DatagramBin>,
}

/// One source of datagrams within one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramBin {
    /// Packets sent.
    pub sent: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
}

/// Ends of the connections of people's tries within one bin, whenever they began. Connections that clients
/// gave up are with the classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionBin {
    /// With an answer of any kind, which the client has.
    pub answered: u64,
    /// No SYN was answered.
    pub not_connected: u64,
    /// One end repeated a segment without an acknowledgement until it gave up.
    pub given_up: u64,
    /// The server's end broke.
    pub reset: u64,
}

impl ConnectionBin {
    /// A connection ended.
    pub(super) fn count(&mut self, end: FlowEnd) {
        match end {
            FlowEnd::Completed => self.answered += 1,
            FlowEnd::NotConnected => self.not_connected += 1,
            FlowEnd::GivenUp => self.given_up += 1,
            FlowEnd::Reset => self.reset += 1,
            FlowEnd::Abandoned => {}
        }
    }
}

impl From<LinkBooks> for LinkBin {
    fn from(books: LinkBooks) -> Self {
        Self {
            offered: books.offered,
            dropped: books.dropped(),
            marked: books.marked,
            delivered_bytes: books.delivered_bytes,
        }
    }
}

impl From<DatagramBooks> for DatagramBin {
    fn from(books: DatagramBooks) -> Self {
        Self { sent: books.sent, delivered: books.delivered }
    }
}

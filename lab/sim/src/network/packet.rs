//! Packets: a few numbers, copied freely.

/// Names a flow; a slot that is used again gets another generation, so late packets and timers never reach a
/// stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl FlowId {
    /// The slot and the generation in one number, as a key for an owner's table.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        ((self.generation as u64) << 32) | self.slot as u64
    }
}

/// Direction of a packet along its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client (or the source of datagrams) to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketKind {
    /// The client asks for a connection.
    Syn,
    /// The server agrees.
    SynAck,
    /// A segment with data; it acknowledges too.
    Data,
    /// An acknowledgement without data.
    Ack,
    /// Its sender has left.
    Reset,
    /// One packet of a constant-rate source; it is not acknowledged.
    Datagram,
    /// One packet of a source with feedback.
    Reported,
    /// Its receiver's report.
    Report,
}

/// The four marks of explicit congestion notification (RFC 3168 §5 and §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ecn {
    /// The sender understands marks (ECT): a router may mark instead of dropping.
    pub capable: bool,
    /// A router marked this packet (CE).
    pub marked: bool,
    /// The receiver reports a mark to the sender (ECE).
    pub echo: bool,
    /// The sender reports to the receiver that it has slowed down (CWR).
    pub reduced: bool,
}

/// One packet on the wire. Data is counted in whole segments, as are acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Flow of the packet; for a packet of a source, the slot is the number of its source.
    pub flow: FlowId,
    /// Number of the segment (data), or of the packet of its source.
    pub sequence: u32,
    /// The first segment that the sender of this packet has not received yet; of a source with feedback, when
    /// the packet was sent, microseconds.
    pub acknowledgement: u32,
    /// The link it takes next, as an index into the topology's hops.
    pub(super) hop: u32,
    /// Bytes on the wire, headers included.
    pub bytes: u16,
    /// Its purpose.
    pub kind: PacketKind,
    /// Its direction.
    pub direction: Direction,
    /// True if this is the last segment of the request or the response; of a source with feedback, if it is a
    /// repetition.
    pub last: bool,
    /// Congestion marks.
    pub ecn: Ecn,
}

impl Packet {
    /// A number that all packets of a flow have in common, and those of no other flow.
    #[must_use]
    pub const fn flow_number(&self) -> u64 {
        // Sources and connections count their slots separately; no run has 2^30 generations of one slot.
        let kind = match self.kind {
            PacketKind::Datagram => 1,
            PacketKind::Reported | PacketKind::Report => 2,
            PacketKind::Syn | PacketKind::SynAck | PacketKind::Data | PacketKind::Ack | PacketKind::Reset => {
                0
            }
        };
        (kind << 62) ^ self.flow.as_u64()
    }
}

//! A segment, before it is a packet.

use crate::network::packet::{Direction, Ecn, FlowId, Packet, PacketKind};

/// A segment that an end sends; the network turns it into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) struct Segment {
    pub(in crate::network) kind: PacketKind,
    pub(in crate::network) sequence: u32,
    pub(in crate::network) acknowledgement: u32,
    pub(in crate::network) payload_bytes: u16,
    pub(in crate::network) last: bool,
    pub(in crate::network) ecn: Ecn,
}

impl Segment {
    /// A segment that carries nothing but its kind.
    pub(in crate::network) fn bare(kind: PacketKind) -> Self {
        Self { kind, sequence: 0, acknowledgement: 0, payload_bytes: 0, last: false, ecn: Ecn::default() }
    }

    /// As it goes out, at the first hop of its way.
    pub(in crate::network) fn into_packet(
        self,
        flow: FlowId,
        hop: u32,
        direction: Direction,
        header_bytes: u16,
    ) -> Packet {
        let Self { kind, sequence, acknowledgement, payload_bytes, last, ecn } = self;
        // Fits: the settings keep a full segment and its header within 65 535 bytes.
        let bytes = header_bytes + payload_bytes;
        Packet { flow, sequence, acknowledgement, hop, bytes, kind, direction, last, ecn }
    }
}

//! TCP segments as frames on a wire, byte by byte: written with right checksums, read back only if they are
//! right.
//!
//! [`Segment`] says everything by name and [`Segment::frame`] writes it; what must not be (a truncated frame,
//! a length that lies) is made from a written frame by changing bytes.

mod glance;
mod read;
mod sum;
mod write;

use std::net::{IpAddr, SocketAddr};

pub use glance::{UnverifiedSegment, glance};
pub use read::NotASegment;

/// Flags of a segment (RFC 9293 §3.1).
pub mod flag {
    /// The sender has said all it has to say.
    pub const FIN: u8 = 0x01;
    /// A connection is opened.
    pub const SYN: u8 = 0x02;
    /// The connection is over.
    pub const RST: u8 = 0x04;
    /// The receiver should read the data at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement counts.
    pub const ACK: u8 = 0x10;
}

/// The maximum-segment-size option (RFC 9293 §3.2), 1,460 bytes.
pub const MSS_OPTION: [u8; 4] = [2, 4, 0x05, 0xb4];

/// Bytes of an Ethernet header without VLAN tags.
pub const ETHERNET_BYTES: usize = 14;

/// A TCP segment and what is around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Ethernet addresses: of the receiver, of the sender.
    pub stations: [[u8; 6]; 2],
    /// VLAN tags, the outer first: each the two bytes behind its protocol number.
    pub vlan_tags: Vec<u16>,
    /// The sender. Both addresses are of one family, which is the packet's.
    pub source: SocketAddr,
    /// To whom.
    pub destination: SocketAddr,
    /// IPv4's type of service, IPv6's traffic class: six bits of differentiated services and two of
    /// congestion.
    pub traffic_class: u8,
    /// IPv4 options, a multiple of four bytes.
    pub ip_options: Vec<u8>,
    /// IPv6 extension headers by kind, each with what follows its first byte (the kind of the next): the
    /// length it claims, and the rest.
    pub extension_headers: Vec<(u8, Vec<u8>)>,
    /// IPv4's flags and fragment offset.
    pub fragment: u16,
    /// Number of the first byte.
    pub sequence: u32,
    /// Number of the next byte expected from the other side.
    pub acknowledgement: u32,
    /// See [`flag`].
    pub flags: u8,
    /// Bytes the sender has room for.
    pub window: u16,
    /// TCP options, a multiple of four bytes.
    pub tcp_options: Vec<u8>,
    /// Data that it carries.
    pub payload: Vec<u8>,
}

impl Segment {
    /// A bare segment with an acknowledgement of 0 and no flags.
    ///
    /// # Panics
    /// When the addresses are of different families.
    #[must_use]
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        assert_eq!(source.is_ipv4(), destination.is_ipv4(), "{source} and {destination}");
        Self {
            stations: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            vlan_tags: Vec::new(),
            source,
            destination,
            traffic_class: 0,
            ip_options: Vec::new(),
            extension_headers: Vec::new(),
            fragment: 0x4000,
            sequence: 1_000,
            acknowledgement: 0,
            flags: 0,
            window: 64_240,
            tcp_options: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Opens a connection, with the option that every client sends.
    #[must_use]
    pub fn syn(source: SocketAddr, destination: SocketAddr) -> Self {
        Self { flags: flag::SYN, tcp_options: MSS_OPTION.to_vec(), ..Self::new(source, destination) }
    }

    /// The next segment of a client that got `reply` to `self`: from the number it must use, acknowledging
    /// all it got.
    #[must_use]
    pub fn after(&self, reply: &Self) -> Self {
        Self {
            sequence: reply.acknowledgement,
            acknowledgement: reply.next_sequence(),
            flags: flag::ACK,
            tcp_options: Vec::new(),
            payload: Vec::new(),
            ..self.clone()
        }
    }

    /// The same with a payload.
    #[must_use]
    pub fn carrying(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self.flags |= flag::PSH;
        self
    }

    /// The same with further flags.
    #[must_use]
    pub fn flagged(mut self, flags: u8) -> Self {
        self.flags |= flags;
        self
    }

    /// The number after all that this segment takes up.
    #[must_use]
    pub fn next_sequence(&self) -> u32 {
        let counted = u32::from(self.flags & flag::SYN != 0) + u32::from(self.flags & flag::FIN != 0);
        self.sequence.wrapping_add(self.payload.len() as u32).wrapping_add(counted)
    }
}

/// The bytes of an address as they are on the wire.
fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ipv6: bool) -> (SocketAddr, SocketAddr) {
        let [source, destination] = if ipv6 {
            ["[2001:db8::1]:4000", "[2001:db8::2]:80"]
        } else {
            ["192.0.2.1:4000", "192.0.2.2:80"]
        };
        (source.parse().expect("an address"), destination.parse().expect("an address"))
    }

    #[test]
    fn what_is_written_is_read_back() {
        for ipv6 in [false, true] {
            let (source, destination) = pair(ipv6);
            let syn = Segment::syn(source, destination);
            let tagged = Segment { vlan_tags: vec![5, 0x2007], traffic_class: 0xb9, ..syn.clone() };
            let data = syn.clone().carrying(b"odd").flagged(flag::ACK | flag::FIN);
            for segment in [syn, tagged, data] {
                let mut expected = segment.clone();
                expected.fragment = if ipv6 { 0 } else { segment.fragment };
                assert_eq!(Segment::read(&segment.frame()), Ok(expected));
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let (source, destination) = pair(false);
        let frame = Segment::syn(source, destination).carrying(b"abc").frame();
        for at in 14..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 0x10;
            assert!(Segment::read(&changed).is_err(), "byte {at}");
        }
    }
}

//! Definition of a flow, and its keyed hash.
//!
//! The paper hashes with "modular arithmetic", which a sender can invert: with chosen ports it could hide in
//! one bucket of the sketch, or push a victim out of the cache. All tables here are indexed by SipHash under
//! a key drawn at start.
//!
//! A share per 5-tuple rewards a sender that splits its traffic into many flows, so a share per source or per
//! source prefix can be chosen. Cost: one SipHash-1-3 of 4 to 38 bytes, 20 to 30 ns.

use core::net::IpAddr;
use flashweir_core::Hasher64;

/// Fields that make two packets one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowIdentity {
    /// Source, destination, protocol and ports. All fragments of a datagram share the key without ports, as
    /// only the first carries them.
    #[default]
    FiveTuple,
    /// The source address; of IPv6 its /64, as one host may use all of it.
    Source,
    /// The source's network: /24 of IPv4, /48 of IPv6 (what one site gets).
    SourcePrefix,
}

/// The fields of a packet that identify its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number (IPv4) or next header (IPv6).
    pub protocol: u8,
    /// Source and destination port; none for protocols without ports.
    pub ports: Option<(u16, u16)>,
    /// True if the packet is a fragment, the first included.
    pub is_fragment: bool,
}

/// Hashes flows under a key.
///
/// ```
/// use flashweir_aqm::{FlowHasher, FlowIdentity, PacketHeader};
/// let hasher = FlowHasher::new(1, 2, FlowIdentity::Source);
/// let packet = |source: &str| PacketHeader {
///     source: source.parse().unwrap(),
///     destination: "2001:db8::1".parse().unwrap(),
///     protocol: 17,
///     ports: Some((5_000, 53)),
///     is_fragment: false,
/// };
/// // Addresses of one /64 are one source.
/// assert_eq!(hasher.hash(&packet("2001:db8:1:2::3")), hasher.hash(&packet("2001:db8:1:2:9:9:9:9")));
/// assert_ne!(hasher.hash(&packet("2001:db8:1:2::3")), hasher.hash(&packet("2001:db8:1:3::3")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FlowHasher {
    hasher: Hasher64,
    identity: FlowIdentity,
}

impl FlowHasher {
    /// A hasher under the key (`key0`, `key1`), which must be drawn from a secure source and kept secret.
    #[must_use]
    pub fn new(key0: u64, key1: u64, identity: FlowIdentity) -> Self {
        Self { hasher: Hasher64::new(key0, key1), identity }
    }

    /// The flow of a packet.
    #[must_use]
    pub fn hash(&self, header: &PacketHeader) -> u64 {
        match self.identity {
            FlowIdentity::FiveTuple => self.hash_five_tuple(header),
            FlowIdentity::Source => self.hash_prefix(header.source, 32, 64),
            FlowIdentity::SourcePrefix => self.hash_prefix(header.source, 24, 48),
        }
    }

    /// The flow of a packet whose flow is known by a number, as in a simulation.
    #[must_use]
    pub fn hash_number(&self, flow: u64) -> u64 {
        self.hasher.hash(&[&flow.to_le_bytes()])
    }

    fn hash_five_tuple(&self, header: &PacketHeader) -> u64 {
        let mut bytes = [0; 37];
        let source_len = write_address(&mut bytes, header.source);
        let len = source_len + write_address(&mut bytes[source_len..], header.destination);
        bytes[len] = header.protocol;
        let mut end = len + 1;
        if let Some((source_port, destination_port)) = header.ports.filter(|_| !header.is_fragment) {
            bytes[end..end + 2].copy_from_slice(&source_port.to_be_bytes());
            bytes[end + 2..end + 4].copy_from_slice(&destination_port.to_be_bytes());
            end += 4;
        }
        self.hasher.hash(&[&bytes[..end]])
    }

    fn hash_prefix(&self, address: IpAddr, bits_v4: u32, bits_v6: u32) -> u64 {
        match address {
            IpAddr::V4(address) => self.hasher.hash(&[&(address.to_bits() >> (32 - bits_v4)).to_be_bytes()]),
            IpAddr::V6(address) => self.hasher.hash(&[&(address.to_bits() >> (128 - bits_v6)).to_be_bytes()]),
        }
    }
}

/// Writes an address at the front of `bytes`; its length.
fn write_address(bytes: &mut [u8], address: IpAddr) -> usize {
    match address {
        IpAddr::V4(address) => {
            bytes[..4].copy_from_slice(&address.octets());
            4
        }
        IpAddr::V6(address) => {
            bytes[..16].copy_from_slice(&address.octets());
            16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, port: u16) -> PacketHeader {
        PacketHeader {
            source: source.parse().unwrap(),
            destination: "192.0.2.1".parse().unwrap(),
            protocol: 6,
            ports: Some((port, 443)),
            is_fragment: false,
        }
    }

    #[test]
    fn fragments_are_one_flow_whether_they_carry_ports_or_not() {
        let hasher = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
        let first = PacketHeader { is_fragment: true, ..packet("198.51.100.1", 1_000) };
        let later = PacketHeader { ports: None, ..first };
        assert_eq!(hasher.hash(&first), hasher.hash(&later));
        assert_ne!(hasher.hash(&first), hasher.hash(&packet("198.51.100.1", 1_000)));
        assert_ne!(hasher.hash(&packet("198.51.100.1", 1_000)), hasher.hash(&packet("198.51.100.1", 1_001)));
    }

    #[test]
    fn a_source_gains_nothing_by_more_ports_or_more_addresses_of_its_network() {
        let source = FlowHasher::new(1, 2, FlowIdentity::Source);
        assert_eq!(source.hash(&packet("198.51.100.1", 1)), source.hash(&packet("198.51.100.1", 2)));
        assert_ne!(source.hash(&packet("198.51.100.1", 1)), source.hash(&packet("198.51.100.2", 1)));
        let network = FlowHasher::new(1, 2, FlowIdentity::SourcePrefix);
        assert_eq!(network.hash(&packet("198.51.100.1", 1)), network.hash(&packet("198.51.100.2", 1)));
        assert_eq!(network.hash(&packet("2001:db8:1:2::3", 1)), network.hash(&packet("2001:db8:1:9::3", 1)));
        assert_ne!(network.hash(&packet("2001:db8:1::3", 1)), network.hash(&packet("2001:db8:2::3", 1)));
    }
}

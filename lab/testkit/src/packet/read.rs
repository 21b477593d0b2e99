//! From a frame to its segment.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::sum::{TCP, checksum, pseudo_header};
use super::write::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::{ETHERNET_BYTES, Segment, octets};

/// Fault of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASegment(&'static str);

impl fmt::Display for NotASegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The IP header as far as a segment needs it, and where the segment is.
struct Network {
    addresses: [IpAddr; 2],
    traffic_class: u8,
    ip_options: Vec<u8>,
    fragment: u16,
    transport: std::ops::Range<usize>,
}

impl Segment {
    /// Reads a frame of TCP over IPv4 or IPv6 (without extension headers), whose lengths and checksums must
    /// all be right, padding included: there may be none.
    ///
    /// # Errors
    /// Says what is not right.
    pub fn read(frame: &[u8]) -> Result<Self, NotASegment> {
        let mut at = ETHERNET_BYTES - 2;
        let mut vlan_tags = Vec::new();
        while matches!(u16_at(frame, at)?, 0x8100 | 0x88a8) {
            vlan_tags.push(u16_at(frame, at + 2)?);
            at += 4;
        }
        let network = match u16_at(frame, at)? {
            ETHERTYPE_IPV4 => ipv4(frame, at + 2)?,
            ETHERTYPE_IPV6 => ipv6(frame, at + 2)?,
            _ => return Err(NotASegment("neither IPv4 nor IPv6")),
        };
        let tcp = frame.get(network.transport.clone()).ok_or(NotASegment("shorter than IP says"))?;
        check(network.transport.end == frame.len(), "longer than IP says")?;
        let header_bytes = usize::from(*tcp.get(12).ok_or(NotASegment("no TCP header"))? >> 4) * 4;
        check((20..=tcp.len()).contains(&header_bytes), "a TCP header of no possible length")?;
        let [source, destination] = network.addresses;
        let pseudo = pseudo_header(&octets(source), &octets(destination), tcp.len());
        check(checksum(&[&pseudo, tcp]) == 0, "a wrong TCP checksum")?;
        Ok(Self {
            stations: [station(frame, 0), station(frame, 6)],
            vlan_tags,
            source: SocketAddr::new(source, u16_at(tcp, 0)?),
            destination: SocketAddr::new(destination, u16_at(tcp, 2)?),
            traffic_class: network.traffic_class,
            ip_options: network.ip_options,
            extension_headers: Vec::new(),
            fragment: network.fragment,
            sequence: u32_at(tcp, 4)?,
            acknowledgement: u32_at(tcp, 8)?,
            flags: tcp[13],
            window: u16_at(tcp, 14)?,
            tcp_options: tcp[20..header_bytes].to_vec(),
            payload: tcp[header_bytes..].to_vec(),
        })
    }
}

fn ipv4(frame: &[u8], at: usize) -> Result<Network, NotASegment> {
    let first = *frame.get(at).ok_or(NotASegment("no IP header"))?;
    let header_bytes = usize::from(first & 15) * 4;
    check(first >> 4 == 4 && header_bytes >= 20, "not IPv4")?;
    let header = frame.get(at..at + header_bytes).ok_or(NotASegment("no IP header"))?;
    check(checksum(&[header]) == 0, "a wrong IP checksum")?;
    check(header[9] == TCP, "not TCP")?;
    let address = |at: usize| IpAddr::V4(Ipv4Addr::from(u32_at(header, at).unwrap_or_default()));
    Ok(Network {
        addresses: [address(12), address(16)],
        traffic_class: header[1],
        ip_options: header[20..].to_vec(),
        fragment: u16_at(header, 6)?,
        transport: at + header_bytes..at + usize::from(u16_at(header, 2)?),
    })
}

fn ipv6(frame: &[u8], at: usize) -> Result<Network, NotASegment> {
    let header = frame.get(at..at + 40).ok_or(NotASegment("no IP header"))?;
    check(header[0] >> 4 == 6, "not IPv6")?;
    check(header[6] == TCP, "not TCP, or behind extension headers")?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    Ok(Network {
        addresses: [address(8), address(24)],
        traffic_class: header[0] << 4 | header[1] >> 4,
        ip_options: Vec::new(),
        fragment: 0,
        transport: at + 40..at + 40 + usize::from(u16_at(header, 4)?),
    })
}

fn check(right: bool, wrong: &'static str) -> Result<(), NotASegment> {
    if right { Ok(()) } else { Err(NotASegment(wrong)) }
}

fn station(frame: &[u8], at: usize) -> [u8; 6] {
    frame[at..at + 6].try_into().expect("six bytes of a frame that has more")
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, NotASegment> {
    let two = bytes.get(at..at + 2).ok_or(NotASegment("too short"))?;
    Ok(u16::from_be_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, NotASegment> {
    Ok(u32::from(u16_at(bytes, at)?) << 16 | u32::from(u16_at(bytes, at + 2)?))
}

//! A frame as a gate in front of a receiver must see it: lengths count only as far as there are bytes, and
//! sums are not checked.
//!
//! Says the same as `crates/kernel/bpf/parse.h`, written by itself from the RFCs, so that the two can be
//! compared.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use super::sum::TCP;
use super::write::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// VLAN tags, and IPv6 extension headers, that are looked through.
const VLAN_TAGS: usize = 2;
const EXTENSION_HEADERS: usize = 6;

/// Fields of a TCP segment that can be read without believing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedSegment {
    /// The sender that it names.
    pub source: SocketAddr,
    /// To whom.
    pub destination: SocketAddr,
    /// IPv4's type of service, IPv6's traffic class.
    pub traffic_class: u8,
    /// Number of the first byte.
    pub sequence: u32,
    /// Number of the next byte expected from the other side.
    pub acknowledgement: u32,
    /// See [`super::flag`].
    pub flags: u8,
    /// Position of its payload in the frame; Ethernet's padding comes after it.
    pub payload: Range<usize>,
}

/// The segment in a frame, or `None` where there is none that a receiver could read: another protocol, a
/// later fragment, a length that goes beyond the frame, more headers than senders use, a group as receiver.
#[must_use]
pub fn glance(frame: &[u8]) -> Option<UnverifiedSegment> {
    let is_to_a_group = frame.first()? & 1 == 1;
    let tags = (0..VLAN_TAGS).take_while(|tag| matches!(u16_at(frame, 12 + tag * 4), Some(0x8100 | 0x88a8)));
    let kind_at = 12 + tags.count() * 4;
    let packet_at = kind_at + 2;
    match u16_at(frame, kind_at)? {
        _ if is_to_a_group => None,
        ETHERTYPE_IPV4 => in_ipv4(frame, packet_at),
        ETHERTYPE_IPV6 => in_ipv6(frame, packet_at),
        _ => None,
    }
}

/// RFC 791 §3.1.
fn in_ipv4(frame: &[u8], at: usize) -> Option<UnverifiedSegment> {
    let header = frame.get(at..at + 20)?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let end = at + usize::from(u16_at(header, 2)?);
    let is_later_fragment = u16_at(header, 6)? & 0x1fff != 0;
    if header[0] >> 4 != 4 || header_bytes < 20 || end > frame.len() || is_later_fragment || header[9] != TCP
    {
        return None;
    }
    let address = |at| Some(IpAddr::from(Ipv4Addr::from(u32_at(header, at)?)));
    in_tcp(frame, at + header_bytes..end, header[1], [address(12)?, address(16)?])
}

/// RFC 8200 §3 and §4; RFC 4302 §2.2 for the length of an authentication header.
fn in_ipv6(frame: &[u8], at: usize) -> Option<UnverifiedSegment> {
    let header = frame.get(at..at + 40)?;
    let end = at + 40 + usize::from(u16_at(header, 4)?);
    if header[0] >> 4 != 6 || end > frame.len() {
        return None;
    }
    let address =
        |at: usize| IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).expect("16")));
    let (mut kind, mut at) = (header[6], at + 40);
    let mut left = EXTENSION_HEADERS;
    while kind != TCP {
        let begin = frame.get(at..at + 4)?;
        let bytes = match kind {
            0 | 43 | 60 => (usize::from(begin[1]) + 1) * 8,
            44 if u16_at(begin, 2)? & 0xfff8 == 0 => 8,
            51 => (usize::from(begin[1]) + 2) * 4,
            _ => return None,
        };
        (kind, at) = (begin[0], at + bytes);
        left = left.checked_sub(1)?;
    }
    in_tcp(frame, at..end, header[0] << 4 | header[1] >> 4, [address(8), address(24)])
}

/// RFC 9293 §3.1.
fn in_tcp(
    frame: &[u8],
    segment: Range<usize>,
    traffic_class: u8,
    [source, destination]: [IpAddr; 2],
) -> Option<UnverifiedSegment> {
    let header = frame.get(segment.start..segment.start + 20)?;
    let payload_at = segment.start + usize::from(header[12] >> 4) * 4;
    if payload_at < segment.start + 20 || payload_at > segment.end {
        return None;
    }
    Some(UnverifiedSegment {
        source: SocketAddr::new(source, u16_at(header, 0)?),
        destination: SocketAddr::new(destination, u16_at(header, 2)?),
        traffic_class,
        sequence: u32_at(header, 4)?,
        acknowledgement: u32_at(header, 8)?,
        flags: header[13],
        payload: payload_at..segment.end,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16_at(bytes, at)?) << 16 | u32::from(u16_at(bytes, at + 2)?))
}

#[cfg(test)]
mod tests {
    use super::super::{Segment, flag};
    use super::*;

    #[test]
    fn a_glance_sees_what_was_written_and_nothing_in_what_is_cut_off() {
        let [one, other] = ["192.0.2.1:4000", "192.0.2.2:80"].map(|text| text.parse().expect("an address"));
        let plain =
            Segment { traffic_class: 0xb9, ..Segment::syn(one, other).carrying(b"abc").flagged(flag::ACK) };
        let [one, other] = ["[2001:db8::1]:4000", "[::2]:80"].map(|text| text.parse().expect("an address"));
        let extended = Segment {
            vlan_tags: vec![1, 2],
            traffic_class: 0x2a,
            extension_headers: vec![(60, vec![0; 7]), (44, vec![0; 7])],
            ..Segment::syn(one, other).carrying(b"abc")
        };
        for segment in [plain, extended] {
            let frame = segment.frame();
            let seen = glance(&frame).expect("a segment");
            assert_eq!((seen.source, seen.destination), (segment.source, segment.destination));
            assert_eq!(seen.traffic_class, segment.traffic_class);
            assert_eq!((seen.sequence, seen.acknowledgement), (segment.sequence, segment.acknowledgement));
            assert_eq!((seen.flags, &frame[seen.payload.clone()]), (segment.flags, &b"abc"[..]));
            let padded = [&frame[..], &[0; 9]].concat();
            assert_eq!(glance(&padded), Some(seen));
            for length in 0..frame.len() {
                assert_eq!(glance(&frame[..length]), None, "{length}");
            }
        }
    }
}

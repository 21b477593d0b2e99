//! From a segment to its frame.

use super::sum::{TCP, checksum, pseudo_header};
use super::{Segment, octets};

const ETHERTYPE_VLAN: u16 = 0x8100;
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
const HOPS: u8 = 64;

impl Segment {
    /// The frame, without padding or Ethernet's own checksum.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.stations.concat();
        for tag in &self.vlan_tags {
            frame.extend(ETHERTYPE_VLAN.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        let transport = self.transport();
        if self.source.is_ipv4() {
            frame.extend(ETHERTYPE_IPV4.to_be_bytes());
            frame.extend(self.ipv4_header(transport.len()));
        } else {
            frame.extend(ETHERTYPE_IPV6.to_be_bytes());
            frame.extend(self.ipv6_headers(transport.len()));
        }
        frame.extend(transport);
        frame
    }

    fn transport(&self) -> Vec<u8> {
        let header_bytes = 20 + self.tcp_options.len();
        let mut tcp = Vec::new();
        tcp.extend(self.source.port().to_be_bytes());
        tcp.extend(self.destination.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        tcp.extend([(header_bytes as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&self.tcp_options);
        tcp.extend(&self.payload);
        let pseudo = pseudo_header(&octets(self.source.ip()), &octets(self.destination.ip()), tcp.len());
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    }

    fn ipv4_header(&self, transport_bytes: usize) -> Vec<u8> {
        let header_bytes = 20 + self.ip_options.len();
        let mut ip = vec![0x40 | (header_bytes as u8 / 4), self.traffic_class];
        ip.extend(((header_bytes + transport_bytes) as u16).to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(self.fragment.to_be_bytes());
        ip.extend([HOPS, TCP, 0, 0]);
        ip.extend(octets(self.source.ip()));
        ip.extend(octets(self.destination.ip()));
        ip.extend(&self.ip_options);
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    }

    fn ipv6_headers(&self, transport_bytes: usize) -> Vec<u8> {
        let kinds = self.extension_headers.iter().map(|(kind, _)| *kind).chain([TCP]);
        let mut kinds = kinds.collect::<Vec<_>>().into_iter();
        let first = kinds.next().unwrap_or(TCP);
        let mut extensions = Vec::new();
        for ((_, rest), next) in self.extension_headers.iter().zip(kinds) {
            extensions.push(next);
            extensions.extend(rest);
        }
        let mut ip = vec![0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 0];
        ip.extend(((extensions.len() + transport_bytes) as u16).to_be_bytes());
        ip.extend([first, HOPS]);
        ip.extend(octets(self.source.ip()));
        ip.extend(octets(self.destination.ip()));
        ip.extend(extensions);
        ip
    }
}

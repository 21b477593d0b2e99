//! Sources that send at a constant rate, without feedback.

use super::NetworkError;
use super::packet::{Direction, Ecn, FlowId, Packet, PacketKind};
use super::topology::RouteId;
use flashweir_core::{Duration, Instant};

/// Names a constant-rate source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceId(pub(super) u32);

/// A source of datagrams of one size at a constant rate, up its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramSettings {
    /// Sent along its way up.
    pub route: RouteId,
    /// Size of each packet on the wire, bytes, headers included; at least 1.
    pub packet_bytes: u16,
    /// Bits sent in a second, headers included; 1 to 10^12.
    pub rate_bits_per_s: u64,
    /// Departure of the first packet.
    pub from: Instant,
    /// No packet leaves at or after this time; [`Instant::MAX`] for a source without end.
    pub until: Instant,
}

/// Counts of a source's datagrams so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramBooks {
    /// Packets sent.
    pub sent: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Bytes that reached the far end, headers included.
    pub delivered_bytes: u64,
}

/// Rates of sources, bits a second: beyond them the time between two packets has no precision.
pub(super) const INTERVAL_RATES: std::ops::RangeInclusive<u64> = 1..=1_000_000_000_000;

#[derive(Debug)]
pub(super) struct Source {
    settings: DatagramSettings,
    /// Between two packets; rounded to the nearest nanosecond, at least one.
    interval: Duration,
    first_hop: u32,
    pub(super) books: DatagramBooks,
}

impl Source {
    pub(super) fn new(settings: DatagramSettings, first_hop: u32) -> Result<Self, NetworkError> {
        let (bytes, rate) = (settings.packet_bytes, settings.rate_bits_per_s);
        NetworkError::unless(bytes >= 1, "datagram packet_bytes", bytes, "at least 1")?;
        let rate_ok = INTERVAL_RATES.contains(&rate);
        NetworkError::unless(rate_ok, "datagram rate", rate, "1 to 1000000000000 bit/s")?;
        let nanos = (u64::from(bytes) * 8_000_000_000 + rate / 2) / rate;
        let interval = Duration::from_nanos(nanos.max(1));
        Ok(Self { settings, interval, first_hop, books: DatagramBooks::default() })
    }

    /// The next packet of source `slot`, and when the one after it is due.
    pub(super) fn send(&mut self, now: Instant, slot: u32) -> Option<(Packet, Instant)> {
        if now >= self.settings.until {
            return None;
        }
        let packet = Packet {
            flow: FlowId { slot, generation: 0 },
            // Wraps after 2^32 datagrams: the number only distinguishes neighbours.
            sequence: self.books.sent as u32,
            acknowledgement: 0,
            hop: self.first_hop,
            bytes: self.settings.packet_bytes,
            kind: PacketKind::Datagram,
            direction: Direction::Up,
            last: false,
            ecn: Ecn::default(),
        };
        self.books.sent += 1;
        Some((packet, now + self.interval))
    }

    pub(super) fn delivered(&mut self, packet: &Packet) {
        self.books.delivered += 1;
        self.books.delivered_bytes += u64::from(packet.bytes);
    }
}

//! Rates of responses, read from packets as the clients' network gets them.

use super::record::Fastest;
use flashweir_core::Instant;
use flashweir_core::measure::{FirstWindow, TimeSlidingWindow, mean_of_fastest};
use std::collections::HashMap;
use std::time::Duration;

/// Smallest divisor of a response's first second: no client here is nearer.
const FLOOR: Duration = Duration::from_millis(10);
/// Responses kept; a client has no more ports.
const RESPONSES: usize = 65_536;
/// As NEWS: the fastest tenth.
const FASTEST: f64 = 0.1;

/// Follows every response by its rate from the end of the handshake on (time sliding window, its first second
/// corrected), and reports the fastest tenth reading by reading. Its input are IPv4 packets from servers to
/// clients; all else is passed over. O(1) a packet; some 80 bytes for each response of a reading.
#[derive(Debug, Default)]
pub struct ResponseRates {
    responses: HashMap<(u32, u16), Response>,
}

#[derive(Debug)]
struct Response {
    rate: TimeSlidingWindow,
    has_data: bool,
    is_over: bool,
}

impl ResponseRates {
    /// Takes note of a packet that came at `now`.
    pub fn see(&mut self, now: Instant, packet: &[u8]) {
        let Some(segment) = Segment::read(packet) else { return };
        if segment.flags & SYN != 0 && self.responses.len() < RESPONSES {
            // The server's half of a handshake. From here on the client waits: for the request to arrive, for
            // the server, and for the bytes.
            let rate = TimeSlidingWindow::new(now, FirstWindow::Corrected { floor: FLOOR });
            self.responses.insert(segment.client, Response { rate, has_data: false, is_over: false });
        }
        if segment.payload_bytes > 0
            && let Some(response) = self.responses.get_mut(&segment.client)
        {
            response.rate.observe(now, u64::from(segment.payload_bytes));
            response.has_data = true;
        }
        if segment.flags & (FIN | RST) != 0
            && let Some(response) = self.responses.get_mut(&segment.client)
        {
            response.is_over = true;
        }
    }

    /// Ends a reading: the fastest tenth of the responses with data in it; none where there were none.
    pub fn read(&mut self, now: Instant, at_s: f64) -> Option<Fastest> {
        let with_data = self.responses.values().filter(|response| response.has_data);
        let mut rates: Vec<f32> = with_data.map(|response| response.rate_at(now) as f32).collect();
        self.responses.retain(|_, response| !response.is_over);
        self.responses.values_mut().for_each(|response| response.has_data = false);
        let bytes_per_s = mean_of_fastest(&mut rates, FASTEST)?;
        Some(Fastest { at_s, kbps: bytes_per_s * 8.0 / 1e3, responses: rates.len() })
    }
}

impl Response {
    /// A finished response keeps its rate; one that goes on ages by its silence.
    fn rate_at(&self, now: Instant) -> f64 {
        if self.is_over { self.rate.rate(Instant::from_nanos(0)) } else { self.rate.rate(now) }
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// Fields of a TCP segment that are needed.
struct Segment {
    client: (u32, u16),
    flags: u8,
    payload_bytes: u16,
}

impl Segment {
    /// None of what is no whole IPv4 header with a TCP header behind it.
    fn read(packet: &[u8]) -> Option<Self> {
        const TCP: u8 = 6;
        let &version = packet.first()?;
        let internet_bytes = usize::from(version & 15) * 4;
        if version >> 4 != 4 || internet_bytes < 20 || *packet.get(9)? != TCP {
            return None;
        }
        let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        let total_bytes = usize::from(word(2)?);
        let transport_bytes = usize::from(packet.get(internet_bytes + 12)? >> 4) * 4;
        let payload_bytes = total_bytes.checked_sub(internet_bytes + transport_bytes)?;
        let address = u32::from(word(16)?) << 16 | u32::from(word(18)?);
        Some(Self {
            client: (address, word(internet_bytes + 2)?),
            flags: *packet.get(internet_bytes + 13)?,
            // No larger than the total, which has 16 bits.
            payload_bytes: payload_bytes as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16, flags: u8, payload_bytes: u16) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + payload_bytes).to_be_bytes());
        packet[9] = 6;
        packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet[32] = 5 << 4;
        packet[33] = flags;
        packet
    }

    /// Ten responses, one of them twice as fast: the fastest tenth is two of eleven at most, here the mean of
    /// both.
    #[test]
    fn the_fastest_tenth_is_read_and_pure_acknowledgements_are_not() {
        let mut rates = ResponseRates::default();
        let at = Instant::from_millis;
        for port in 1..=9 {
            rates.see(at(0), &packet(port, SYN, 0));
            rates.see(at(0), &packet(port, 0, 1_000));
            rates.see(at(100), &packet(port, FIN, if port == 9 { 3_000 } else { 1_000 }));
        }
        rates.see(at(100), &packet(10, 0, 0));
        let reading = rates.read(at(200), 4.0).expect("responses");
        assert_eq!(reading.responses, 9);
        assert!((reading.kbps - 320.0).abs() < 1.0, "{reading:?}");
        assert_eq!(rates.read(at(300), 8.0), None);
    }

    #[test]
    fn a_port_begins_anew_with_a_handshake() {
        let mut rates = ResponseRates::default();
        let at = Instant::from_millis;
        rates.see(at(0), &packet(1, SYN, 0));
        rates.see(at(0), &packet(1, 0, 1_000));
        rates.see(at(900), &packet(1, SYN, 0));
        rates.see(at(900), &packet(1, 0, 1_000));
        rates.see(at(1_000), &packet(1, FIN, 1_000));
        let reading = rates.read(at(1_000), 1.0).expect("a response");
        assert!((reading.kbps - 160.0).abs() < 1.0, "{reading:?}");
    }

    #[test]
    fn what_is_no_segment_is_passed_over() {
        let mut rates = ResponseRates::default();
        let whole = packet(1, SYN, 1_000);
        for length in 0..34 {
            rates.see(Instant::from_millis(0), &whole[..length]);
        }
        let mut lying = whole.clone();
        lying[2..4].copy_from_slice(&30u16.to_be_bytes());
        rates.see(Instant::from_millis(0), &lying);
        let mut datagram = whole;
        datagram[9] = 17;
        rates.see(Instant::from_millis(0), &datagram);
        assert_eq!(rates.read(Instant::from_millis(1), 1.0), None);
    }
}

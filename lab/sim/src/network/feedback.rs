//! Sources whose receiver reports every packet: those that pay a price, and a TCP that ignores everything.
//!
//! **Vegas over prices** (Low and Srikant 2004, eq. 15, as Low, Peterson and Wang derive it): once in a round
//! trip, with the window w, the rate x = w/RTT and the price q of the path, w grows by a packet where x·q is
//! below αd, and shrinks by one where it is above. So x settles where x·q = αd: who pays more gets more, and
//! all with the same αd get the same. The price is read from marks, q = −ln(1 − m)/ln φ, with m the smoothed
//! part of packets that came with a mark. A lost packet counts as a marked one.
//!
//! Four things are ours. The source sends at its rate, a packet each 1/x, so that w may be below one: the
//! paper's 4000 flows have 0.3 packets a second each. A step is at most an eighth of the window, as a packet
//! in each round trip is no small step there, and in proportion to 1 − x·q/αd down to −1: steps that know
//! only their sign make all sources swing together. And after a silence of four round trips and packets the
//! window is halved, as nothing comes back.
//!
//! **Unresponsive TCP** sends at a constant rate and repeats what was lost; it ignores marks and losses
//! otherwise.
//!
//! [`Packet::last`] distinguishes repetitions from new packets, so goodput (first transmissions) is known
//! beside throughput.

use super::NetworkError;
use super::datagrams::INTERVAL_RATES;
use super::packet::{Direction, Ecn, FlowId, Packet, PacketKind};
use super::topology::RouteId;
use flashweir_core::{Duration, Instant};

/// Names a source with feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeedbackId(pub(super) u32);

/// A source of packets of one size, up its route, whose receiver reports each of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeedbackSettings {
    /// Packets go up, reports down.
    pub route: RouteId,
    /// Size of each packet on the wire, bytes, headers included; at least 1.
    pub packet_bytes: u16,
    /// Departure of the first packet.
    pub from: Instant,
    /// No packet leaves at or after this time; [`Instant::MAX`] for a source without end.
    pub until: Instant,
    /// Way in which it sets its rate.
    pub control: RateControl,
}

/// Way in which a source with feedback sets its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateControl {
    /// Buys bandwidth at the price that it reads from marks.
    Vegas {
        /// Payment: packets a second times price (αd), above 0.
        payment: f64,
        /// Base of the links' marking probability, above 1.
        phi: f64,
    },
    /// Sends at a constant rate regardless of marks and losses.
    Unresponsive {
        /// Bits a second, headers and repetitions included; 1 to 10^12.
        rate_bits_per_s: u64,
    },
}

/// Counts of a source's packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackBooks {
    /// Packets sent.
    pub sent: u64,
    /// Of these, repetitions of lost ones.
    pub repeated: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Of these, repetitions.
    pub delivered_repeats: u64,
}

impl FeedbackBooks {
    /// Packets that reached the far end and were no repetitions.
    #[must_use]
    pub const fn delivered_first(&self) -> u64 {
        self.delivered - self.delivered_repeats
    }
}

#[derive(Debug)]
pub(super) struct FeedbackSource {
    settings: FeedbackSettings,
    first_hop_up: u32,
    first_hop_down: u32,
    /// Packets (w); may be below one.
    window: f64,
    /// Smoothed round trip, seconds.
    round_trip_s: f64,
    /// Smoothed part of packets with a mark (m).
    marked: f64,
    /// The next transmission that has not been reported or skipped.
    expected: u32,
    /// Lost packets that are not repeated yet.
    owed: u64,
    adjusted_at: Instant,
    reported_at: Instant,
    pub(super) books: FeedbackBooks,
}

/// Before anything is measured.
const ROUND_TRIP_FIRST_S: f64 = 0.1;
const WINDOW_FIRST: f64 = 1.0;
/// A source that stopped would never learn that there is room again: a packet in a hundred round trips.
const WINDOW_MIN: f64 = 0.01;
const WINDOW_MAX: f64 = 65_536.0;
/// Weight of a packet in the smoothed part of marks, and of a sample in the round trip.
const MARK_GAIN: f64 = 0.1;
const ROUND_TRIP_GAIN: f64 = 0.125;
/// Beyond this part of marks the price they stand for has no more digits.
const MARKED_MAX: f64 = 0.99;
/// A step of the window is a packet, and at most this part of it.
const STEP_PART: f64 = 0.125;
/// Round trips, or packets, without a report that mean that nothing arrives.
const SILENCE: f64 = 4.0;
/// A report has no payload.
const REPORT_BYTES: u16 = 40;

impl FeedbackSource {
    pub(super) fn new(
        settings: FeedbackSettings,
        first_hop_up: u32,
        first_hop_down: u32,
    ) -> Result<Self, NetworkError> {
        let bytes = settings.packet_bytes;
        NetworkError::unless(bytes >= 1, "source packet_bytes", bytes, "at least 1")?;
        match settings.control {
            RateControl::Vegas { payment, phi } => {
                let payment_ok = payment.is_finite() && payment > 0.0;
                NetworkError::unless(payment_ok, "Vegas payment", payment, "above 0")?;
                let phi_ok = phi.is_finite() && phi > 1.0;
                NetworkError::unless(phi_ok, "Vegas phi", phi, "above 1")?;
            }
            RateControl::Unresponsive { rate_bits_per_s: rate } => {
                let rate_ok = INTERVAL_RATES.contains(&rate);
                NetworkError::unless(rate_ok, "source rate", rate, "1 to 1000000000000 bit/s")?;
            }
        }
        Ok(Self {
            settings,
            first_hop_up,
            first_hop_down,
            window: WINDOW_FIRST,
            round_trip_s: ROUND_TRIP_FIRST_S,
            marked: 0.0,
            expected: 0,
            owed: 0,
            adjusted_at: settings.from,
            reported_at: settings.from,
            books: FeedbackBooks::default(),
        })
    }

    /// The next packet of source `slot`, and when the one after it is due.
    pub(super) fn send(&mut self, now: Instant, slot: u32) -> Option<(Packet, Instant)> {
        if now >= self.settings.until {
            return None;
        }
        let silent_s = now.saturating_since(self.reported_at).as_secs_f64();
        if silent_s > SILENCE * (self.round_trip_s + self.interval_s()) {
            self.window = (self.window / 2.0).max(WINDOW_MIN);
            self.reported_at = now;
        }
        let repeats = self.owed > 0;
        self.owed -= u64::from(repeats);
        self.books.repeated += u64::from(repeats);
        let packet = Packet {
            flow: FlowId { slot, generation: 0 },
            // Wraps after 2^32 packets, more than a run has.
            sequence: self.books.sent as u32,
            acknowledgement: microseconds(now),
            hop: self.first_hop_up,
            bytes: self.settings.packet_bytes,
            kind: PacketKind::Reported,
            direction: Direction::Up,
            last: repeats,
            ecn: Ecn { capable: true, ..Ecn::default() },
        };
        self.books.sent += 1;
        let interval_ns = (self.interval_s() * 1e9) as u64;
        Some((packet, now + Duration::from_nanos(interval_ns.max(1))))
    }

    /// A packet is at the far end, which reports it.
    pub(super) fn delivered(&mut self, packet: &Packet) -> Packet {
        self.books.delivered += 1;
        self.books.delivered_repeats += u64::from(packet.last);
        Packet {
            hop: self.first_hop_down,
            bytes: REPORT_BYTES,
            kind: PacketKind::Report,
            direction: Direction::Down,
            ecn: Ecn { echo: packet.ecn.marked, ..Ecn::default() },
            ..*packet
        }
    }

    /// A report is back. Links keep the order, so a gap before it was lost.
    pub(super) fn reported(&mut self, now: Instant, report: &Packet) {
        let lost = report.sequence.wrapping_sub(self.expected);
        if lost > u32::MAX / 2 {
            return;
        }
        self.expected = report.sequence.wrapping_add(1);
        self.owed += u64::from(lost);
        self.reported_at = now;
        let RateControl::Vegas { payment, phi } = self.settings.control else { return };
        for _ in 0..lost.min(LOSSES_SMOOTHED_MAX) {
            self.marked += MARK_GAIN * (1.0 - self.marked);
        }
        self.marked += MARK_GAIN * (f64::from(u8::from(report.ecn.echo)) - self.marked);
        let sample_s = f64::from(microseconds(now).wrapping_sub(report.acknowledgement)) / 1e6;
        self.round_trip_s += ROUND_TRIP_GAIN * (sample_s - self.round_trip_s);
        if now.saturating_since(self.adjusted_at).as_secs_f64() < self.round_trip_s {
            return;
        }
        self.adjusted_at = now;
        let price = -libm::log(1.0 - self.marked.min(MARKED_MAX)) / libm::log(phi);
        let step = (STEP_PART * self.window).min(1.0);
        let paid = self.window / self.round_trip_s * price;
        self.window += step * (1.0 - paid / payment).clamp(-1.0, 1.0);
        self.window = self.window.clamp(WINDOW_MIN, WINDOW_MAX);
    }

    /// Between two packets, seconds.
    fn interval_s(&self) -> f64 {
        match self.settings.control {
            RateControl::Vegas { .. } => self.round_trip_s / self.window,
            RateControl::Unresponsive { rate_bits_per_s } => {
                8.0 * f64::from(self.settings.packet_bytes) / rate_bits_per_s as f64
            }
        }
    }
}

/// Maximum number of losses in a row that are smoothed: after these the smoothed part is one to six digits.
const LOSSES_SMOOTHED_MAX: u32 = 128;

/// Microseconds, which wrap after 71 minutes: they tell round trips only.
fn microseconds(at: Instant) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

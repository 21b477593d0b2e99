//! One direction of a wire: a finite buffer, a transmitter, and packets on their way.

use super::NetworkError;
use super::discipline::{Discipline, DisciplineStatus, Queueing};
use super::packet::Packet;
use flashweir_aqm::Fate;
use flashweir_core::{Duration, Instant, Rng};
use std::collections::VecDeque;

/// Maximum queue before a link. The packet being sent no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// In packets of any size.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

/// Settings of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    /// Bits sent in a second, 1 to 10^12.
    pub rate_bits_per_s: u64,
    /// Time from the last bit sent to the packet's arrival; at most a minute.
    pub delay: Duration,
    /// Room for waiting packets.
    pub buffer: Buffer,
    /// Queue discipline: which packets are dropped or marked, and when.
    pub discipline: Discipline,
    /// Probability that the wire loses a packet, each by itself, before the buffer; 0 to 1.
    pub loss: f64,
}

impl LinkSettings {
    /// A link whose wire loses nothing and that drops packets arriving at a full buffer.
    #[must_use]
    pub const fn drop_tail(rate_bits_per_s: u64, delay: Duration, buffer: Buffer) -> Self {
        Self { rate_bits_per_s, delay, buffer, discipline: Discipline::DropTail, loss: 0.0 }
    }

    pub(super) fn check(&self) -> Result<(), NetworkError> {
        let rate = self.rate_bits_per_s;
        let expected = "1 to 1000000000000 bit/s";
        NetworkError::unless((1..=RATE_BITS_PER_S).contains(&rate), "link rate", rate, expected)?;
        let delay_ok = self.delay <= DELAY;
        NetworkError::unless(delay_ok, "link delay", self.delay.as_secs_f64(), "60 seconds at most")?;
        let loss_ok = (0.0..=1.0).contains(&self.loss);
        NetworkError::unless(loss_ok, "link loss", self.loss, "a probability from 0 to 1")?;
        self.discipline.check()
    }
}

/// Fastest link: the time of a packet of 65 535 bytes still has half a nanosecond's precision.
const RATE_BITS_PER_S: u64 = 1_000_000_000_000;
/// Longest propagation: ten times that of the slowest paths measured; more is a wrong unit.
const DELAY: Duration = Duration::from_secs(60);

/// Counts of a link since the start, in packets unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBooks {
    /// Packets that came to this link, refused and dropped ones included.
    pub offered: u64,
    /// Packets that arrived at the far end.
    pub delivered: u64,
    /// Bytes that arrived at the far end, headers included.
    pub delivered_bytes: u64,
    /// Dropped by a stage that watches this link.
    pub refused: u64,
    /// Lost on the wire ([`LinkSettings::loss`], or while the network was cut).
    pub lost: u64,
    /// Dropped because the buffer was full.
    pub overflowed: u64,
    /// Dropped by the discipline while there was room.
    pub dropped_early: u64,
    /// Marked instead of dropped.
    pub marked: u64,
    /// Nanoseconds spent sending.
    pub busy_ns: u64,
    /// The most packets that ever waited.
    pub waiting_max: u64,
}

impl LinkBooks {
    /// Packets that will never arrive, for any reason.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.refused + self.lost + self.overflowed + self.dropped_early
    }
}

/// Events that a link wants: at most one of each kind is pending for a link, however many packets wait or
/// travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Time at which the transmitter can take the next waiting packet.
    pub free_at: Option<Instant>,
    /// Arrival of the first packet on the wire.
    pub arrives_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Link {
    rate_bits_per_s: u64,
    delay: Duration,
    buffer: Buffer,
    loss_threshold: u64,
    queueing: Queueing,
    rng: Rng,
    waiting: VecDeque<Packet>,
    waiting_bytes: u64,
    /// In order of arrival: the delay is constant and packets are sent one after another.
    travelling: VecDeque<(Instant, Packet)>,
    /// Time at which the packet being sent is out; in the past while nothing is being sent.
    free_at: Instant,
    pub(super) books: LinkBooks,
}

impl Link {
    pub(super) fn new(settings: &LinkSettings, rng: Rng) -> Self {
        Self {
            rate_bits_per_s: settings.rate_bits_per_s,
            delay: settings.delay,
            buffer: settings.buffer,
            // `as` saturates, so a probability of one becomes all but one in 2^64.
            loss_threshold: (settings.loss * 2f64.powi(64)) as u64,
            queueing: Queueing::new(&settings.discipline, settings.rate_bits_per_s, &rng),
            rng,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            travelling: VecDeque::new(),
            free_at: Instant::ZERO,
            books: LinkBooks::default(),
        }
    }

    /// Takes a packet in, or loses it. An idle link sends it at once, without an event for the end of
    /// sending.
    pub(super) fn offer(&mut self, now: Instant, packet: Packet) -> Wanted {
        self.books.offered += 1;
        if self.loss_threshold > 0 && self.rng.next_u64() < self.loss_threshold {
            self.books.lost += 1;
            return Wanted::default();
        }
        let idle = self.waiting.is_empty() && now >= self.free_at;
        let idle_since = idle.then_some(self.free_at);
        let mut packet = packet;
        match self.queueing.arrived(now, &self.waiting, idle_since, &packet, &mut self.rng) {
            Fate::Keep => {}
            Fate::Mark => self.mark(&mut packet),
            Fate::Drop => {
                self.books.dropped_early += 1;
                return Wanted::default();
            }
        }
        if idle {
            return Wanted { free_at: None, arrives_at: self.send(now, packet) };
        }
        if !self.has_room(packet.bytes) {
            self.books.overflowed += 1;
            return Wanted::default();
        }
        self.waiting.push_back(packet);
        self.waiting_bytes += u64::from(packet.bytes);
        self.books.waiting_max = self.books.waiting_max.max(self.waiting.len() as u64);
        // The first to wait asks for the event; those behind it are served by the ones that follow.
        let free_at = (self.waiting.len() == 1).then_some(self.free_at);
        Wanted { free_at, arrives_at: None }
    }

    /// The transmitter is free: sends the next waiting packet.
    pub(super) fn freed(&mut self, now: Instant) -> Wanted {
        let Some(packet) = self.waiting.pop_front() else { return Wanted::default() };
        self.waiting_bytes -= u64::from(packet.bytes);
        let arrives_at = self.send(now, packet);
        let free_at = (!self.waiting.is_empty()).then_some(self.free_at);
        Wanted { free_at, arrives_at }
    }

    /// The first packet on the wire has arrived.
    pub(super) fn arrived(&mut self) -> (Option<Packet>, Wanted) {
        let packet = self.travelling.pop_front().map(|(_, packet)| packet);
        if let Some(packet) = &packet {
            self.books.delivered += 1;
            self.books.delivered_bytes += u64::from(packet.bytes);
        }
        let arrives_at = self.travelling.front().map(|&(at, _)| at);
        (packet, Wanted { free_at: None, arrives_at })
    }

    /// A stage dropped a packet that came to this link.
    pub(super) fn refused(&mut self) {
        self.books.offered += 1;
        self.books.refused += 1;
    }

    /// A packet came to this link while nothing could be sent.
    pub(super) fn cut(&mut self) {
        self.books.offered += 1;
        self.books.lost += 1;
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn discipline(&self) -> DisciplineStatus {
        self.queueing.status()
    }

    /// Packets waiting or on the wire.
    pub(super) fn held(&self) -> usize {
        self.waiting.len() + self.travelling.len()
    }

    /// Conservation and bounds of this link; O(1).
    pub(super) fn check(&self) -> Result<(), String> {
        let books = &self.books;
        let accounted = books.delivered + books.dropped() + self.held() as u64;
        if books.offered != accounted {
            return Err(format!("{} packets offered, {accounted} accounted for: {books:?}", books.offered));
        }
        match self.buffer {
            Buffer::Packets(limit) if self.waiting.len() > limit as usize => {
                Err(format!("{} packets wait where {limit} fit", self.waiting.len()))
            }
            Buffer::Bytes(limit) if self.waiting_bytes > limit => {
                Err(format!("{} bytes wait where {limit} fit", self.waiting_bytes))
            }
            _ => Ok(()),
        }
    }

    fn has_room(&self, bytes: u16) -> bool {
        match self.buffer {
            Buffer::Packets(limit) => self.waiting.len() < limit as usize,
            Buffer::Bytes(limit) => self.waiting_bytes + u64::from(bytes) <= limit,
        }
    }

    /// Starts sending; the arrival to schedule when nothing else is on the wire.
    fn send(&mut self, now: Instant, packet: Packet) -> Option<Instant> {
        let mut packet = packet;
        if self.queueing.leaves_marked(now, self.waiting.len(), &packet, &mut self.rng) {
            self.mark(&mut packet);
        }
        // Rounded up: a link never sends faster than its rate. 65 535 B · 8 · 10^9 fits 64 bits.
        let sending_ns = (u64::from(packet.bytes) * 8_000_000_000).div_ceil(self.rate_bits_per_s);
        self.books.busy_ns += sending_ns;
        self.free_at = now + Duration::from_nanos(sending_ns);
        let arrives_at = self.free_at + self.delay;
        self.travelling.push_back((arrives_at, packet));
        (self.travelling.len() == 1).then_some(arrives_at)
    }

    fn mark(&mut self, packet: &mut Packet) {
        packet.ecn.marked = true;
        self.books.marked += 1;
    }
}

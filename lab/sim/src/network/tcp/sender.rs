//! The sending half of an end: what may be sent, what must be sent again (RFC 5681, 6582, 3042, 6298).

use super::round_trip::RoundTrip;
use super::window::{DUPLICATES, Window};
use super::{Recovery, Segment, TcpSettings, Timer};
use crate::network::packet::{Ecn, PacketKind};
use flashweir_core::{Duration, Instant};

#[derive(Debug)]
pub(in crate::network) struct Sender {
    /// Segments to send in all; none before [`Sender::load`].
    total: u32,
    /// Payload of the last of them, bytes.
    last_bytes: u16,
    /// The first segment that is not acknowledged.
    oldest: u32,
    /// The next segment to send; below `sent` while segments are sent again after a timeout.
    next: u32,
    /// One past the highest segment ever sent.
    sent: u32,
    /// Acknowledgements in a row that said nothing new.
    duplicates: u32,
    /// In fast recovery: what must be acknowledged to leave it.
    recovering_until: Option<u32>,
    /// True if a partial acknowledgement has restarted the timer in this recovery.
    partial_seen: bool,
    /// No fast retransmit before this is acknowledged: earlier duplicates echo an earlier loss (RFC 6582 §3.2
    /// step 1).
    barred_until: u32,
    /// No further slowing down for marks before more than this is acknowledged: once for each window.
    slowed_until: u32,
    /// The next new segment reports the reduction to the receiver.
    announces_reduction: bool,
    /// The segment whose round trip is being measured, and when it was sent.
    timed: Option<(u32, Instant)>,
    window: Window,
    round_trip: RoundTrip,
    pub(in crate::network) retransmit: Timer,
    retransmissions: u32,
}

/// Result of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Timeout {
    /// The oldest segment was sent again.
    Retransmitted,
    /// The timeouts in a row reached the limit: the other end must be gone.
    GivenUp,
}

impl Sender {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self {
            total: 0,
            last_bytes: 0,
            oldest: 0,
            next: 0,
            sent: 0,
            duplicates: 0,
            recovering_until: None,
            partial_seen: false,
            barred_until: 0,
            slowed_until: 0,
            announces_reduction: false,
            timed: None,
            window: Window::new(settings),
            round_trip: RoundTrip::new(settings),
            retransmit: Timer::new(),
            retransmissions: 0,
        }
    }

    /// Gives it everything it will ever have to send: at least one byte, at most 2^32 − 1 segments.
    pub(in crate::network) fn load(&mut self, bytes: u64, settings: &TcpSettings) {
        let (bytes, segment) = (bytes.max(1), u64::from(settings.segment_bytes));
        let total = bytes.div_ceil(segment);
        self.total = u32::try_from(total).unwrap_or(u32::MAX);
        self.last_bytes = (bytes - (total - 1) * segment) as u16;
    }

    pub(in crate::network) fn is_loaded(&self) -> bool {
        self.total > 0
    }

    /// Returns true if something is still to be sent or acknowledged.
    pub(in crate::network) fn is_busy(&self) -> bool {
        self.oldest < self.total
    }

    /// Bytes to send in all, without headers.
    pub(in crate::network) fn bytes(&self, settings: &TcpSettings) -> u64 {
        let full = u64::from(self.total.saturating_sub(1));
        full * u64::from(settings.segment_bytes) + u64::from(self.last_bytes)
    }

    pub(in crate::network) fn retransmissions(&self) -> u32 {
        self.retransmissions
    }

    /// The handshake took `sample`, or was repeated and measured nothing.
    pub(in crate::network) fn connected(&mut self, sample: Option<Duration>, settings: &TcpSettings) {
        match sample {
            Some(sample) => self.round_trip.measured(sample, settings),
            None => self.round_trip.handshake_repeated(),
        }
        self.retransmit.clear();
    }

    /// Sends what the windows allow.
    pub(in crate::network) fn send(&mut self, now: Instant, settings: &TcpSettings, out: &mut Vec<Segment>) {
        let limited = settings.limited_transmit && self.recovering_until.is_none();
        let extra = if limited { self.duplicates.min(DUPLICATES - 1) } else { 0 };
        let allowed = (self.window.segments() + extra).min(settings.window_receiver);
        while self.next < self.total && self.next - self.oldest < allowed {
            self.emit(now, self.next, settings, out);
            self.next += 1;
        }
    }

    /// The other end has everything before `acknowledgement`; `pure` where the packet brought nothing else.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        acknowledgement: u32,
        echo: bool,
        pure: bool,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) {
        let slows = echo && acknowledgement > self.slowed_until && self.recovering_until.is_none();
        if slows {
            self.window.reduce(self.next - self.oldest);
            self.slowed_until = self.sent;
            self.announces_reduction = true;
        }
        if acknowledgement > self.oldest {
            self.progressed(now, acknowledgement, !slows, settings, out);
        } else if acknowledgement == self.oldest && pure && self.oldest < self.sent {
            self.duplicated(now, settings, out);
        }
    }

    /// The retransmission timer has fired.
    pub(in crate::network) fn timed_out(
        &mut self,
        now: Instant,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Timeout {
        let in_a_row = self.round_trip.timeouts_in_a_row();
        if in_a_row >= settings.timeouts {
            return Timeout::GivenUp;
        }
        // In recovery the threshold has been lowered for this very loss, and what looks like flight has
        // mostly left.
        let lowers = in_a_row == 0 && self.recovering_until.is_none();
        self.window.collapse(self.next - self.oldest, lowers);
        self.round_trip.back_off();
        self.recovering_until = None;
        self.duplicates = 0;
        self.barred_until = self.sent + 1;
        // Everything is sent again from here; what the receiver has kept makes its acknowledgements jump
        // ahead.
        self.next = self.oldest;
        self.send(now, settings, out);
        Timeout::Retransmitted
    }

    pub(in crate::network) fn check(&self) -> Result<(), String> {
        let ordered = self.oldest <= self.next && self.next <= self.sent && self.sent <= self.total;
        // Where something is on its way and the timer is off, a loss would end the flow for good.
        let guarded = self.oldest == self.sent || self.retransmit.is_set();
        if ordered && guarded && self.window.segments() >= 1 { Ok(()) } else { Err(format!("{self:?}")) }
    }

    fn progressed(
        &mut self,
        now: Instant,
        acknowledgement: u32,
        grows: bool,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) {
        if let Some((sequence, sent_at)) = self.timed
            && acknowledgement > sequence
        {
            self.round_trip.measured(now.saturating_since(sent_at), settings);
            self.timed = None;
        }
        let newly = acknowledgement - self.oldest;
        self.oldest = acknowledgement;
        self.next = self.next.max(acknowledgement);
        self.duplicates = 0;
        self.round_trip.progress();
        let mut restarts_timer = true;
        match self.recovering_until {
            Some(until) if acknowledgement >= until => {
                self.recovering_until = None;
                self.window.leave_recovery(self.next - self.oldest);
            }
            Some(_) => {
                self.window.deflate(newly);
                self.emit(now, self.oldest, settings, out);
                restarts_timer = settings.recovery == Recovery::SlowButSteady || !self.partial_seen;
                self.partial_seen = true;
            }
            None if grows => self.window.grow(newly, settings),
            None => {}
        }
        if self.oldest == self.sent {
            self.retransmit.clear();
        } else if restarts_timer {
            self.retransmit.set(now + self.round_trip.timeout(settings));
        }
    }

    fn duplicated(&mut self, now: Instant, settings: &TcpSettings, out: &mut Vec<Segment>) {
        self.duplicates += 1;
        if self.recovering_until.is_some() {
            self.window.inflate(settings);
        } else if self.duplicates == DUPLICATES && self.oldest >= self.barred_until {
            self.window.enter_recovery(self.next - self.oldest);
            self.recovering_until = Some(self.sent);
            self.partial_seen = false;
            self.barred_until = self.sent + 1;
            self.emit(now, self.oldest, settings, out);
        }
    }

    fn emit(&mut self, now: Instant, sequence: u32, settings: &TcpSettings, out: &mut Vec<Segment>) {
        let again = sequence < self.sent;
        let mut ecn = Ecn::default();
        if again {
            self.retransmissions += 1;
            self.timed = None;
        } else {
            self.sent = sequence + 1;
            self.timed = self.timed.or(Some((sequence, now)));
            // Retransmissions are neither capable nor do they carry news (RFC 3168 §6.1.5).
            ecn.capable = settings.ecn;
            ecn.reduced = core::mem::take(&mut self.announces_reduction);
        }
        let last = sequence + 1 == self.total;
        let payload_bytes = if last { self.last_bytes } else { settings.segment_bytes };
        out.push(Segment { kind: PacketKind::Data, sequence, acknowledgement: 0, payload_bytes, last, ecn });
        if !self.retransmit.is_set() {
            self.retransmit.set(now + self.round_trip.timeout(settings));
        }
    }
}

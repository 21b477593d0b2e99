//! Events of the packet level that concern people, gate and server, and its own timers.

use super::event::{Event, Happened};
use super::gate::Acknowledged;
use super::packets::rate_bytes_per_s;
use super::slab::Id;
use super::world::{Answer, RunError, Try, TryState, World};
use crate::network::{FlowEnd, FlowRecord, Happening};
use flashweir_core::Instant;

impl World<'_> {
    /// Time at which anything next happens.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let of_packets = self.packets.as_ref().and_then(|(_, packets)| packets.next_at());
        self.queue.next_at().into_iter().chain(of_packets).min()
    }

    /// The time of what happened last.
    pub(super) fn now(&self) -> Instant {
        let of_packets = self.packets.as_ref().map(|(_, packets)| packets.now());
        of_packets.map_or(self.queue.now(), |now| now.max(self.queue.now()))
    }

    /// Things that have happened.
    pub(super) fn events(&self) -> u64 {
        self.hash.events() + self.packets.as_ref().map_or(0, |(_, packets)| packets.hash().events())
    }

    /// Lets packets go on until one concerns a try, or people and gate are due, or `until` has come.
    pub(super) fn next_of_packets(
        &mut self,
        until: Instant,
    ) -> Result<Option<(Instant, Happening)>, RunError> {
        let Some((_, packets)) = &mut self.packets else { return Ok(None) };
        let before_until = Instant::from_nanos(until.as_nanos().saturating_sub(1));
        let next_at = self.queue.next_at().unwrap_or(Instant::MAX);
        Ok(packets.next(next_at.min(before_until))?)
    }

    pub(super) fn happened_to_packets(&mut self, now: Instant, what: Happening) -> Result<(), RunError> {
        match what {
            Happening::RequestReceived { token, .. } => self.arrive(now, Id::of_number(token)),
            Happening::Ended(record) => match record.end {
                Some(FlowEnd::Completed) => self.delivered(now, Id::of_number(record.token)),
                Some(FlowEnd::NotConnected | FlowEnd::GivenUp | FlowEnd::Reset) => {
                    self.disconnected(now, Id::of_number(record.token))
                }
                // The client is the one who knows.
                Some(FlowEnd::Abandoned) | None => Ok(()),
            },
            Happening::Closed(record) => self.closed(now, &record),
            // No wake-up is requested from the network here.
            Happening::Woken { .. } => Ok(()),
        }
    }

    /// Schedules the timers of the packet level: the router's first decision, and the end of the first bin.
    pub(super) fn schedule_packet_level(&mut self) -> Result<(), RunError> {
        let Some((_, packets)) = &self.packets else { return Ok(()) };
        if let Some(first) = packets.next_tick_at() {
            self.queue.schedule(first, Event::RouterTick)?;
        }
        if packets.has_bins_to_close() {
            self.queue.schedule(Instant::ZERO + self.scenario.bin, Event::CloseBin)?;
        }
        Ok(())
    }

    pub(super) fn close_bin(&mut self, now: Instant) -> Result<(), RunError> {
        let Some((_, packets)) = &mut self.packets else { return Ok(()) };
        packets.close_bin();
        if packets.has_bins_to_close() {
            self.queue.schedule(now + self.scenario.bin, Event::CloseBin)?;
        }
        Ok(())
    }

    pub(super) fn router_tick(&mut self, now: Instant) -> Result<(), RunError> {
        let lost_feedback = self.troubles.lost_feedback();
        let Some((described, packets)) = &mut self.packets else { return Ok(()) };
        let Some(interval) = described.router.as_ref().map(|router| router.settings.interval) else {
            return Ok(());
        };
        let ceiling_rps = packets.tick(now, interval, lost_feedback);
        let ceiling_milli = ceiling_rps.map_or(u64::MAX, |rps| (rps * 1e3) as u64);
        self.happened(now, Happened::RouterPlanned, ceiling_milli);
        Ok(self.queue.schedule(now + interval, Event::RouterTick)?)
    }

    /// A client has a whole answer of any kind.
    fn delivered(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        let Some(delivered) = self.tries.get_mut(attempt) else { return Ok(()) };
        let TryState::ToClient(answer) = delivered.state else { return Ok(()) };
        delivered.state = TryState::Answered(answer);
        let visitor = delivered.visitor;
        if !self.visitors.contains(visitor) {
            return Ok(());
        }
        self.happened(now, Happened::Answered, attempt.number());
        self.hear(now, visitor, answer)
    }

    /// A connection was never made, was reset, or is no more, and both ends know.
    fn disconnected(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        self.happened(now, Happened::Disconnected, attempt.number());
        let Some(visitor) = self.tries.get(attempt).map(|attempt| attempt.visitor) else { return Ok(()) };
        self.connection_is_over(now, attempt)?;
        if self.visitors.contains(visitor) { self.hear(now, visitor, Answer::Broken) } else { Ok(()) }
    }

    /// The gate has the last acknowledgement, or knows that the client has gone.
    fn closed(&mut self, now: Instant, record: &FlowRecord) -> Result<(), RunError> {
        let attempt = Id::of_number(record.token);
        let (Some(closed), Some((described, _))) = (self.tries.get_mut(attempt), &self.packets) else {
            return Ok(());
        };
        if let (TryState::Answered(Answer::Whole), Some(acknowledged)) = (closed.state, record.acknowledged) {
            let (asked, sent) = (closed.asked, closed.sent);
            let delivery = closed.delivery.take();
            self.gate.deliver(&asked, delivery, true);
            let class = &self.scenario.classes[usize::from(asked.class)];
            let segment_bytes = described.paths[usize::from(asked.class)].tcp.segment_bytes;
            self.gate.observe(now, &asked, sent, || {
                let bytes = class.sizes.bytes(self.scenario.seed, asked.document);
                Acknowledged {
                    bytes,
                    handed: record.responded.unwrap_or(sent),
                    at: acknowledged,
                    rate_bytes_per_s: rate_bytes_per_s(record, bytes, segment_bytes),
                }
            });
        }
        self.connection_is_over(now, attempt)
    }

    /// Takes a try out with its connection, and out of the server, if it is there and the server notices.
    fn connection_is_over(&mut self, now: Instant, attempt: Id) -> Result<(), RunError> {
        match self.tries.get(attempt).map(|attempt| attempt.state) {
            Some(TryState::Held(_) | TryState::AtServer(_)) => self.depart(now, attempt),
            Some(TryState::Deserted) | None => Ok(()),
            Some(TryState::ToGate | TryState::ToClient(_) | TryState::Dropped | TryState::Answered(_)) => {
                if let Some(Try { asked, delivery, .. }) = self.tries.remove(attempt) {
                    self.gate.deliver(&asked, delivery, false);
                }
                Ok(())
            }
        }
    }
}

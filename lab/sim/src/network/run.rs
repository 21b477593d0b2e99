//! Effect of each event in a network.

use super::connection::{Connection, End, Step, TimerKind};
use super::event::{Event, Happening};
use super::link::Wanted;
use super::packet::{FlowId, Packet, PacketKind};
use super::stage::{Answer, Stage};
use super::tcp::{Segment, TcpSettings};
use super::topology::{Hop, LinkId, bounded};
use super::world_checks;
use super::{Direction, Network, NetworkError};
use crate::engine::check_world;
use flashweir_core::{Instant, limits};

impl Network {
    /// Runs events until something happens that the owner must know; none when the next event lies after
    /// `until` (it stays for the next call) or there is none. O(log pending) for each event.
    ///
    /// # Errors
    /// When a bound is met; the network must not be used further.
    pub fn next<S: Stage>(
        &mut self,
        stage: &mut S,
        until: Instant,
    ) -> Result<Option<(Instant, Happening)>, NetworkError> {
        while self.queue.next_at().is_some_and(|at| at <= until) {
            let Some((now, event)) = self.queue.pop() else { break };
            let (kind, payload) = event.fingerprint();
            self.hash.fold(now, kind, payload);
            let happening = self.handle(now, event, stage)?;
            check_world(now, self, world_checks::AFTER_EVERY_EVENT);
            if happening.is_some() {
                return Ok(happening.map(|happening| (now, happening)));
            }
        }
        Ok(None)
    }

    fn handle<S: Stage>(
        &mut self,
        now: Instant,
        event: Event,
        stage: &mut S,
    ) -> Result<Option<Happening>, NetworkError> {
        match event {
            Event::Arrive { link } => {
                let (packet, wanted) = self.links[link.0 as usize].arrived();
                self.schedule(link, wanted)?;
                // Holds because a link has an arrival pending exactly while something is on its wire.
                let packet = packet.expect("an arrival was scheduled for an empty wire");
                self.books.held -= 1;
                self.arrived(now, link, packet, stage)
            }
            Event::LinkFree { link } => {
                let wanted = self.links[link.0 as usize].freed(now);
                self.schedule(link, wanted)?;
                Ok(None)
            }
            Event::Timer { flow, end, kind } => self.touch(now, flow, end, stage, |connection, tcp, out| {
                connection.timer(now, end, kind, tcp, out)
            }),
            Event::Start { flow } => self.touch(now, flow, End::Client, stage, |connection, tcp, out| {
                connection.start(now, tcp, out);
                Step::Nothing
            }),
            Event::Respond { flow } => self.touch(now, flow, End::Server, stage, |connection, tcp, out| {
                connection.respond(now, tcp, out);
                Step::Nothing
            }),
            Event::Abandon { flow } => self.touch(now, flow, End::Client, stage, |connection, tcp, out| {
                connection.abandon(now, tcp, out)
            }),
            Event::Reset { flow } => self.touch(now, flow, End::Server, stage, |connection, _, out| {
                connection.reset(out);
                Step::Nothing
            }),
            Event::Datagram { source } => {
                if let Some((packet, next_at)) = self.sources[source.0 as usize].send(now, source.0) {
                    self.queue.schedule(next_at, event)?;
                    self.books.sent += 1;
                    self.forward(now, packet, stage)?;
                }
                Ok(None)
            }
            Event::Reported { source } => {
                let sent = self.feedback_sources[source.0 as usize].send(now, source.0);
                if let Some((packet, next_at)) = sent {
                    self.queue.schedule(next_at, event)?;
                    self.books.sent += 1;
                    self.forward(now, packet, stage)?;
                }
                Ok(None)
            }
            Event::Wake { token } => Ok(Some(Happening::Woken { token })),
        }
    }

    /// A packet is at the far end of `link`: on to the next link, or to the end it was meant for.
    fn arrived<S: Stage>(
        &mut self,
        now: Instant,
        link: LinkId,
        packet: Packet,
        stage: &mut S,
    ) -> Result<Option<Happening>, NetworkError> {
        let leaving = self.watched[link.0 as usize].leaving;
        if leaving && stage.packet(now, packet.direction, &packet) == Answer::Drop {
            self.books.dropped += 1;
            return Ok(None);
        }
        if self.topology.hop(packet.hop) != Hop::End {
            self.forward(now, packet, stage)?;
            return Ok(None);
        }
        self.books.delivered += 1;
        let slot = packet.flow.slot as usize;
        match packet.kind {
            PacketKind::Datagram => {
                self.sources[slot].delivered(&packet);
                return Ok(None);
            }
            PacketKind::Reported => {
                let report = self.feedback_sources[slot].delivered(&packet);
                self.books.sent += 1;
                self.forward(now, report, stage)?;
                return Ok(None);
            }
            PacketKind::Report => {
                self.feedback_sources[slot].reported(now, &packet);
                return Ok(None);
            }
            _ => {}
        }
        let end = if packet.direction == Direction::Up { End::Server } else { End::Client };
        self.touch(now, packet.flow, end, stage, |connection, tcp, out| {
            connection.receive(now, &packet, tcp, out)
        })
    }

    /// Lets one end of a flow act, and carries out what it wants: packets, timers, news for the owner. Late
    /// events and packets of flows that are gone do nothing.
    fn touch<S: Stage>(
        &mut self,
        now: Instant,
        flow: FlowId,
        end: End,
        stage: &mut S,
        act: impl FnOnce(&mut Connection, &TcpSettings, &mut Vec<Segment>) -> Step,
    ) -> Result<Option<Happening>, NetworkError> {
        let Some(connection) = self.flows.get_mut(flow) else { return Ok(None) };
        let settings = connection.settings;
        let tcp = &self.tcp[usize::from(settings.tcp.0)];
        let header_bytes = tcp.header_bytes;
        let mut out = core::mem::take(&mut self.out);
        let step = act(connection, tcp, &mut out);
        for kind in TimerKind::ALL {
            if let Some(at) = connection.timers(end)[kind as usize].unscheduled() {
                self.queue.schedule(at, Event::Timer { flow, end, kind })?;
            }
        }
        let happening = match step {
            Step::Finished | Step::Failed => Some(Happening::Ended(connection.record(tcp))),
            Step::RequestReceived => Some(Happening::RequestReceived { flow, token: settings.token }),
            Step::Over => Some(Happening::Closed(connection.record(tcp))),
            Step::Nothing => None,
        };
        if matches!(step, Step::Failed | Step::Over) {
            self.flows.remove(flow);
        }
        self.touched_flow = Some(flow);
        let direction = end.sends();
        let hop = self.topology.first_hop(settings.route, direction);
        for segment in out.drain(..) {
            self.books.sent += 1;
            self.forward(now, segment.into_packet(flow, hop, direction, header_bytes), stage)?;
        }
        self.out = out;
        Ok(happening)
    }

    /// Offers a packet to the next link of its route.
    fn forward<S: Stage>(&mut self, now: Instant, packet: Packet, stage: &mut S) -> Result<(), NetworkError> {
        let Hop::Link(link) = self.topology.hop(packet.hop) else {
            // Every route has a link, and a packet at the end of its route is delivered instead.
            unreachable!("a packet was forwarded beyond the end of its route")
        };
        let packet = Packet { hop: packet.hop + 1, ..packet };
        let entering = self.watched[link.0 as usize].entering;
        let to = &mut self.links[link.0 as usize];
        if entering && stage.packet(now, packet.direction, &packet) == Answer::Drop {
            to.refused();
            self.books.dropped += 1;
            return Ok(());
        }
        if self.is_cut {
            to.cut();
            self.books.dropped += 1;
            return Ok(());
        }
        let held_before = to.held();
        let wanted = to.offer(now, packet);
        if to.held() > held_before {
            bounded(self.books.held as usize, "packets under way", limits::SIM_PACKETS)?;
            self.books.held += 1;
        } else {
            self.books.dropped += 1;
        }
        self.schedule(link, wanted)
    }

    fn schedule(&mut self, link: LinkId, wanted: Wanted) -> Result<(), NetworkError> {
        self.touched_link = Some(link);
        if let Some(at) = wanted.free_at {
            self.queue.schedule(at, Event::LinkFree { link })?;
        }
        if let Some(at) = wanted.arrives_at {
            self.queue.schedule(at, Event::Arrive { link })?;
        }
        Ok(())
    }
}

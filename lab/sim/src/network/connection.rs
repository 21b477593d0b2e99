//! A request up and a response down over one connection: both ends of it, from SYN to the last
//! acknowledgement.

use super::packet::{Direction, Packet, PacketKind};
use super::record::{FlowEnd, FlowRecord, FlowSettings, Response};
use super::tcp::{Endpoint, Segment, TcpSettings, Timeout, Timer, syn_wait};
use flashweir_core::Instant;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

impl End {
    /// The way that what it sends goes.
    pub(super) fn sends(self) -> Direction {
        match self {
            Self::Client => Direction::Up,
            Self::Server => Direction::Down,
        }
    }
}

/// Timer of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    Retransmit,
    Acknowledge,
}

impl TimerKind {
    /// In the order of [`Endpoint::timers`].
    pub(super) const ALL: [Self; 2] = [Self::Retransmit, Self::Acknowledge];
}

/// Result of a step that the owner or the network must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// The request is complete at the server and the owner decides on the response.
    RequestReceived,
    /// The client has its answer; the server may still wait for the last acknowledgement.
    Finished,
    /// The flow ended without an answer; nothing is left of it.
    Failed,
    /// Nothing is left of the flow, and its end was reported before.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Has not sent anything yet.
    Waiting,
    /// SYNs sent so far, the last one when.
    Connecting(u32, Instant),
    Connected,
    /// Has the whole response.
    Finished,
    /// Went away; answers everything with a reset.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Listening,
    /// SYN-ACKs sent so far, the last one when.
    Accepted(u32, Instant),
    Connected,
    /// Went away unanswered; answers everything with a reset.
    Closed,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) settings: FlowSettings,
    /// Bytes of the server's response, once the owner has set them.
    pub(super) response_bytes: u64,
    record: FlowRecord,
    client_state: Client,
    server_state: Server,
    client: Endpoint,
    server: Endpoint,
}

impl Connection {
    pub(super) fn new(settings: FlowSettings, record: FlowRecord, tcp: &TcpSettings) -> Self {
        let mut client = Endpoint::new(tcp);
        client.sender.load(settings.request_bytes, tcp);
        let mut server = Endpoint::new(tcp);
        server.receiver.will_answer = settings.response == Response::Decided;
        Self {
            settings,
            response_bytes: 0,
            record,
            client_state: Client::Waiting,
            server_state: Server::Listening,
            client,
            server,
        }
    }

    /// The record so far.
    pub(super) fn record(&self, tcp: &TcpSettings) -> FlowRecord {
        let segments = u64::from(self.client.receiver.next());
        let complete = self.client.receiver.is_complete();
        let bytes = segments * u64::from(tcp.segment_bytes);
        let asked = self.server.sender.bytes(tcp);
        FlowRecord {
            response_bytes: if complete { asked } else { bytes },
            retransmissions: self.server.sender.retransmissions() + self.client.sender.retransmissions(),
            ..self.record
        }
    }

    /// The moment to begin has come.
    pub(super) fn start(&mut self, now: Instant, tcp: &TcpSettings, out: &mut Vec<Segment>) {
        if self.client_state == Client::Waiting {
            self.send_syn(now, 1, tcp, out);
        }
    }

    /// The server has decided on its response; nothing if there is no request yet, or it answers already.
    pub(super) fn respond(&mut self, now: Instant, tcp: &TcpSettings, out: &mut Vec<Segment>) {
        let is_asked = self.server_state == Server::Connected && self.server.receiver.is_complete();
        if is_asked && !self.server.sender.is_loaded() {
            self.record.responded = Some(now);
            self.server.sender.load(self.response_bytes, tcp);
            self.server.flush(now, false, tcp, out);
        }
    }

    /// The server's end goes away, if it has not begun to answer.
    pub(super) fn reset(&mut self, out: &mut Vec<Segment>) {
        if self.server.sender.is_loaded() {
            return;
        }
        self.server_state = Server::Closed;
        for timer in self.server.timers() {
            timer.clear();
        }
        out.push(Segment::bare(PacketKind::Reset));
    }

    /// The client goes away: nothing more is sent but resets.
    pub(super) fn abandon(&mut self, now: Instant, tcp: &TcpSettings, out: &mut Vec<Segment>) -> Step {
        if matches!(self.client_state, Client::Finished | Client::Left) {
            return Step::Nothing;
        }
        self.record.end = Some(FlowEnd::Abandoned);
        self.record.ended = Some(now);
        self.client_state = Client::Left;
        for timer in self.client.timers() {
            timer.clear();
        }
        out.push(Segment::bare(PacketKind::Reset));
        // If that reset is lost and the server has nothing to send, only this timer removes the flow.
        self.client.sender.retransmit.set(now + tcp.timeout_max);
        Step::Finished
    }

    /// A packet has reached the end it was meant for.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        packet: &Packet,
        tcp: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Step {
        match packet.direction {
            Direction::Up => self.server_receives(now, packet, tcp, out),
            Direction::Down => self.client_receives(now, packet, tcp, out),
        }
    }

    /// A timer's event has come.
    pub(super) fn timer(
        &mut self,
        now: Instant,
        end: End,
        kind: TimerKind,
        tcp: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Step {
        if !self.timers(end)[kind as usize].fires(now) {
            return Step::Nothing;
        }
        match (end, kind) {
            (End::Client, TimerKind::Retransmit) => self.client_timed_out(now, tcp, out),
            (End::Server, TimerKind::Retransmit) => match self.server.timed_out(now, tcp, out) {
                Timeout::Retransmitted => Step::Nothing,
                Timeout::GivenUp => self.give_up(now, FlowEnd::GivenUp),
            },
            (End::Client, TimerKind::Acknowledge) => {
                self.client.acknowledge(out);
                Step::Nothing
            }
            (End::Server, TimerKind::Acknowledge) => {
                self.server.acknowledge(out);
                Step::Nothing
            }
        }
    }

    pub(super) fn timers(&mut self, end: End) -> [&mut Timer; 2] {
        match end {
            End::Client => self.client.timers(),
            End::Server => self.server.timers(),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if !matches!(self.client_state, Client::Waiting | Client::Connecting(..) | Client::Left) {
            self.client.sender.check()?;
        }
        self.server.sender.check()
    }

    fn client_receives(
        &mut self,
        now: Instant,
        packet: &Packet,
        tcp: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Step {
        match (self.client_state, packet.kind) {
            (Client::Left, _) => out.push(Segment::bare(PacketKind::Reset)),
            (Client::Connecting(tries, sent_at), PacketKind::SynAck) => {
                self.client_state = Client::Connected;
                self.record.established = Some(now);
                let sample = (tries == 1).then(|| now.saturating_since(sent_at));
                self.client.sender.connected(sample, tcp);
                self.client.flush(now, true, tcp, out);
            }
            (Client::Connecting(..) | Client::Connected, PacketKind::Reset) => {
                return self.give_up(now, FlowEnd::Reset);
            }
            (Client::Waiting | Client::Connecting(..), _) => {}
            (Client::Connected | Client::Finished, PacketKind::SynAck) => self.client.acknowledge(out),
            (Client::Connected | Client::Finished, _) => {
                let acknowledge = self.client.receive(now, packet, tcp, out);
                self.client.flush(now, acknowledge, tcp, out);
                if packet.kind == PacketKind::Data {
                    self.record.first_byte = self.record.first_byte.or(Some(now));
                }
                if self.client_state == Client::Connected && self.client.receiver.is_complete() {
                    self.client_state = Client::Finished;
                    self.record.end = Some(FlowEnd::Completed);
                    self.record.ended = Some(now);
                    return Step::Finished;
                }
            }
        }
        Step::Nothing
    }

    fn server_receives(
        &mut self,
        now: Instant,
        packet: &Packet,
        tcp: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Step {
        match (self.server_state, packet.kind) {
            (_, PacketKind::Reset) => return if self.has_left() { Step::Over } else { Step::Nothing },
            (Server::Closed, _) => {
                out.push(Segment::bare(PacketKind::Reset));
                return Step::Nothing;
            }
            (_, PacketKind::Syn) => {
                let before = match self.server_state {
                    Server::Accepted(times, _) => times,
                    _ => 0,
                };
                if self.server_state != Server::Connected {
                    self.server_state = Server::Accepted(before + 1, now);
                }
                out.push(Segment::bare(PacketKind::SynAck));
                return Step::Nothing;
            }
            (Server::Listening, _) => return Step::Nothing,
            (Server::Accepted(times, sent_at), _) => {
                self.server_state = Server::Connected;
                let sample = (times == 1).then(|| now.saturating_since(sent_at));
                self.server.sender.connected(sample, tcp);
            }
            (Server::Connected, _) => {}
        }
        let was_complete = self.server.receiver.is_complete();
        let acknowledge = self.server.receive(now, packet, tcp, out);
        let mut step = Step::Nothing;
        if !was_complete && self.server.receiver.is_complete() {
            self.record.request_received = Some(now);
            match self.settings.response {
                Response::Bytes(bytes) => {
                    self.record.responded = Some(now);
                    self.server.sender.load(bytes, tcp);
                }
                Response::Decided => step = Step::RequestReceived,
            }
        }
        self.server.flush(now, acknowledge, tcp, out);
        let over = self.server.sender.is_loaded() && !self.server.sender.is_busy();
        if over && self.client_state == Client::Finished {
            self.record.acknowledged = Some(now);
            step = Step::Over;
        }
        step
    }

    fn client_timed_out(&mut self, now: Instant, tcp: &TcpSettings, out: &mut Vec<Segment>) -> Step {
        match self.client_state {
            Client::Waiting => Step::Nothing,
            Client::Connecting(tries, _) if tries >= tcp.syn_tries => {
                self.give_up(now, FlowEnd::NotConnected)
            }
            Client::Connecting(tries, _) => {
                self.send_syn(now, tries + 1, tcp, out);
                Step::Nothing
            }
            Client::Connected | Client::Finished => match self.client.timed_out(now, tcp, out) {
                Timeout::Retransmitted => Step::Nothing,
                Timeout::GivenUp => self.give_up(now, FlowEnd::GivenUp),
            },
            // A busy server clears up by itself: through a reset, or by giving up.
            Client::Left if self.server.sender.is_busy() => Step::Nothing,
            Client::Left => Step::Over,
        }
    }

    fn send_syn(&mut self, now: Instant, tries: u32, tcp: &TcpSettings, out: &mut Vec<Segment>) {
        self.client_state = Client::Connecting(tries, now);
        self.record.syn_tries = tries;
        self.client.sender.retransmit.set(now + syn_wait(tries, tcp));
        out.push(Segment::bare(PacketKind::Syn));
    }

    fn has_left(&self) -> bool {
        self.client_state == Client::Left
    }

    fn give_up(&mut self, now: Instant, end: FlowEnd) -> Step {
        if self.record.end.is_some() {
            return Step::Over;
        }
        self.record.end = Some(end);
        self.record.ended = Some(now);
        Step::Failed
    }
}

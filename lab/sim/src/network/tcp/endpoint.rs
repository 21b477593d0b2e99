//! One end of a connection once it stands: a sender, a receiver, and acknowledgements that ride on data.

use super::receiver::Receiver;
use super::round_trip::doubled;
use super::segment::Segment;
use super::sender::{Sender, Timeout};
use super::{TcpSettings, Timer};
use crate::network::packet::{Packet, PacketKind};
use flashweir_core::{Duration, Instant};

#[derive(Debug)]
pub(in crate::network) struct Endpoint {
    pub(in crate::network) sender: Sender,
    pub(in crate::network) receiver: Receiver,
}

impl Endpoint {
    pub(in crate::network) fn new(settings: &TcpSettings) -> Self {
        Self { sender: Sender::new(settings), receiver: Receiver::new() }
    }

    /// Takes a packet with data or an acknowledgement; whether it must be acknowledged at once. Call
    /// [`Endpoint::flush`] afterwards, when it is known whether there is something to say.
    pub(in crate::network) fn receive(
        &mut self,
        now: Instant,
        packet: &Packet,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> bool {
        let pure = packet.kind == PacketKind::Ack;
        self.sender.acknowledged(now, packet.acknowledgement, packet.ecn.echo, pure, settings, out);
        if packet.kind != PacketKind::Data {
            return false;
        }
        if packet.ecn.reduced {
            self.receiver.echo = false;
        }
        if packet.ecn.marked {
            self.receiver.echo = true;
        }
        self.receiver.accept(now, packet.sequence, packet.last, settings)
    }

    /// Sends what may be sent, and its own acknowledgement if one is due and no data carries it.
    pub(in crate::network) fn flush(
        &mut self,
        now: Instant,
        acknowledge: bool,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) {
        self.sender.send(now, settings, out);
        self.stamp(acknowledge, out);
    }

    /// The acknowledgement has waited long enough.
    pub(in crate::network) fn acknowledge(&mut self, out: &mut Vec<Segment>) {
        self.stamp(true, out);
    }

    /// The retransmission timer has fired.
    pub(in crate::network) fn timed_out(
        &mut self,
        now: Instant,
        settings: &TcpSettings,
        out: &mut Vec<Segment>,
    ) -> Timeout {
        let timeout = self.sender.timed_out(now, settings, out);
        self.stamp(false, out);
        timeout
    }

    /// Both timers, the retransmission's first.
    pub(in crate::network) fn timers(&mut self) -> [&mut Timer; 2] {
        [&mut self.sender.retransmit, &mut self.receiver.delay]
    }

    /// Everything that leaves acknowledges what has come, so nothing is owed any more.
    fn stamp(&mut self, acknowledge: bool, out: &mut Vec<Segment>) {
        if acknowledge && out.is_empty() {
            out.push(Segment::bare(PacketKind::Ack));
        }
        for segment in out.iter_mut() {
            segment.acknowledgement = self.receiver.next();
            segment.ecn.echo = self.receiver.echo;
        }
        if !out.is_empty() {
            self.receiver.acknowledged();
        }
    }
}

/// Wait of the client after its `tries`-th SYN.
pub(in crate::network) fn syn_wait(tries: u32, settings: &TcpSettings) -> Duration {
    doubled(settings.syn_timeout, tries.saturating_sub(1), settings.timeout_max)
}

//! Stages that watch a link: gates, planners and meters take their place in a network here.

use super::packet::{Direction, Packet};
use flashweir_core::Instant;

/// Point of a link at which its stage sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watch {
    /// As they come to the link, before its buffer: what is dropped here never waits.
    Entering,
    /// As they arrive at its far end: what the link itself drops is not seen.
    Leaving,
}

/// A stage's answer to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The packet goes on.
    Pass,
    /// The packet is dropped; neither end is notified.
    Drop,
}

/// Sees the packets of the watched links, in both directions, in the order of events.
///
/// A type parameter of [`super::Network::next`], so that looking at a packet costs a direct call. An action
/// due at its own time (a planner's tick) is a wake-up of the network's owner, who holds the stage in
/// between.
pub trait Stage {
    /// A packet going `direction` at a watched link. Called for every packet that is offered or arrives
    /// there, so it should take a bounded, small time. A new connection is a packet of kind
    /// [`super::PacketKind::Syn`].
    fn packet(&mut self, now: Instant, direction: Direction, packet: &Packet) -> Answer;
}

/// A stage that lets everything pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoStage;

impl Stage for NoStage {
    fn packet(&mut self, _: Instant, _: Direction, _: &Packet) -> Answer {
        Answer::Pass
    }
}

impl<F: FnMut(Instant, Direction, &Packet) -> Answer> Stage for F {
    fn packet(&mut self, now: Instant, direction: Direction, packet: &Packet) -> Answer {
        self(now, direction, packet)
    }
}

//! Who is dropped or marked at a link, and when.

mod red;
mod rem;

pub use red::Red;
pub use rem::Rem;

use super::NetworkError;
use super::packet::Packet;
use flashweir_core::{Instant, Rng};
use red::RedState;
use rem::RemState;

/// A queue discipline, as settings. All of them drop what finds the buffer full.
#[derive(Clone, Debug, PartialEq)]
pub enum Discipline {
    /// Nothing but the full buffer drops.
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Random exponential marking.
    Rem(Rem),
}

impl Discipline {
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        match self {
            Self::DropTail => Ok(()),
            Self::Red(settings) => settings.check(),
            Self::Rem(settings) => settings.check(),
        }
    }
}

/// What a discipline decides about a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    Mark,
    Drop,
}

/// A discipline at work.
#[derive(Debug)]
pub(super) enum Queueing {
    DropTail,
    Red(RedState),
    Rem(RemState),
}

impl Queueing {
    pub(super) fn new(discipline: &Discipline, rate_bits_per_s: u64) -> Self {
        match discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(settings) => Self::Red(RedState::new(settings, rate_bits_per_s)),
            Discipline::Rem(settings) => Self::Rem(RemState::new(settings, rate_bits_per_s)),
        }
    }

    /// Decides about a packet that finds `waiting` others; `idle_since` where the link sends nothing.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        waiting: usize,
        idle_since: Option<Instant>,
        packet: &Packet,
        rng: &mut Rng,
    ) -> Fate {
        match self {
            Self::DropTail => Fate::Keep,
            Self::Red(state) => state.arrived(now, waiting, idle_since, packet, rng),
            Self::Rem(state) => state.arrived(now, waiting, packet, rng),
        }
    }

    /// Whether a packet that is sent now, leaving `waiting` others behind, gets a mark.
    pub(super) fn leaves_marked(
        &mut self,
        now: Instant,
        waiting: usize,
        packet: &Packet,
        rng: &mut Rng,
    ) -> bool {
        match self {
            Self::DropTail | Self::Red(_) => false,
            Self::Rem(state) => state.leaves_marked(now, waiting, packet, rng),
        }
    }
}

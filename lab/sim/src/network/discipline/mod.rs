//! Queue disciplines: which packets a link drops or marks, and when.

mod black;
mod occupancy;
mod policed;
mod published;
#[cfg(test)]
mod published_tests;
mod red;
mod rem;

pub use flashweir_aqm::{PurgeSettings, Rem, SurplusUnit};
pub use published::{Counter, PublishedSettings};
pub use red::Red;

use super::NetworkError;
use super::packet::Packet;
use flashweir_aqm::Fate;
use flashweir_core::{Duration, Instant, Rng};
use policed::Policed;
use red::RedState;
use rem::RemState;
use std::collections::VecDeque;

/// A queue discipline, as settings. All of them drop what finds the buffer full.
#[derive(Clone, Debug, PartialEq)]
pub enum Discipline {
    /// Nothing but the full buffer drops.
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Random exponential marking.
    Rem(Rem),
    /// REM, and flows that have more of the buffer than their share dropped as BLACK does, once a period.
    BlackLike {
        /// The price and the target.
        rem: Rem,
        /// Period of the shares, at least 1 ms.
        period: Duration,
    },
    /// Purge as published, with its errors.
    PublishedPurge(PublishedSettings),
    /// Purge, repaired.
    Purge(PurgeSettings),
}

/// A discipline's estimates of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DisciplineStatus {
    /// Its estimate of the number of flows; none where it does not count them.
    pub active_flows: Option<f64>,
}

impl Discipline {
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        match self {
            Self::DropTail => Ok(()),
            Self::Red(settings) => settings.check(),
            Self::Rem(settings) => Ok(settings.check()?),
            Self::BlackLike { rem, period } => {
                rem.check()?;
                let period_ok = *period >= Duration::from_millis(1);
                let expected = "at least 0.001 seconds";
                NetworkError::unless(period_ok, "BLACK period", period.as_secs_f64(), expected)
            }
            Self::PublishedPurge(settings) => settings.check(),
            Self::Purge(settings) => Ok(settings.check()?),
        }
    }
}

/// A discipline at work.
#[derive(Debug)]
pub(super) enum Queueing {
    DropTail,
    Red(RedState),
    Rem(RemState),
    Policed(Box<Policed>),
}

impl Queueing {
    /// At a link of this rate; keys of hashes are drawn from `seed`.
    pub(super) fn new(discipline: &Discipline, rate_bits_per_s: u64, seed: &Rng) -> Self {
        match discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(settings) => Self::Red(RedState::new(settings, rate_bits_per_s)),
            Discipline::Rem(settings) => Self::Rem(RemState::new(settings, rate_bits_per_s)),
            Discipline::BlackLike { rem, period } => {
                Self::Policed(Box::new(Policed::black_like(rem, *period, rate_bits_per_s, seed)))
            }
            Discipline::PublishedPurge(settings) => {
                Self::Policed(Box::new(Policed::published(settings, rate_bits_per_s, seed)))
            }
            Discipline::Purge(settings) => {
                Self::Policed(Box::new(Policed::repaired(settings, rate_bits_per_s, seed)))
            }
        }
    }

    /// Decides about a packet that finds `waiting` in the queue; `idle_since` where the link sends nothing.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        waiting: &VecDeque<Packet>,
        idle_since: Option<Instant>,
        packet: &Packet,
        rng: &mut Rng,
    ) -> Fate {
        match self {
            Self::DropTail => Fate::Keep,
            Self::Red(state) => state.arrived(now, waiting.len(), idle_since, packet, rng),
            Self::Rem(state) => state.arrived(now, waiting.len(), packet, rng),
            Self::Policed(state) => state.arrived(now, waiting, packet, rng),
        }
    }

    /// Returns true if a packet that is sent now, leaving `waiting` others behind, gets a mark.
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
            Self::Policed(state) => state.leaves_marked(now, waiting, packet, rng),
        }
    }

    pub(super) fn status(&self) -> DisciplineStatus {
        match self {
            Self::DropTail | Self::Red(_) | Self::Rem(_) => DisciplineStatus::default(),
            Self::Policed(state) => state.status(),
        }
    }
}

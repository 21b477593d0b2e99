//! Requests as the gate sees them, and the gate's answers to the world.

use super::reason::Refusal;
use super::{LimitTaken, PlanTaken};
use crate::request::slab::Id;
use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::pipeline::{Permit, Ticket};
use flashweir_core::Instant;
use flashweir_core::hash::mix;

/// A request as the gate sees it: made by [`GateStage::classify`](super::GateStage::classify).
#[derive(Clone, Copy, Debug)]
pub(in crate::request) struct SimulatedRequest {
    /// Recognises a person's retry.
    pub(super) person_key: u64,
    pub(in crate::request) class: u16,
    pub(in crate::request) document: u32,
    pub(super) host: u32,
    /// Client of the request, for fairness among clients.
    pub(super) client_key: u64,
    /// On which connection it comes: that decides which worker has it.
    pub(super) connection_key: u64,
    /// Signs of its client.
    pub(in crate::request) signs: RequestSigns,
}

/// Decision of the gate on a try that arrives.
#[derive(Debug)]
pub(in crate::request) enum Decided {
    Admitted(Permit),
    Refused(Refusal),
    Held(Ticket),
    /// Held, and another one, which waited for it, is refused.
    HeldInsteadOf(Ticket, Id, Refusal),
}

/// Decision of the gate on a queued try.
#[derive(Debug)]
pub(in crate::request) enum ReleasedTry {
    Admitted(Id, Permit),
    Refused(Id, Refusal),
}

/// Plans of the planners whose tick was due.
#[derive(Debug, Default)]
pub(in crate::request) struct Ticked {
    pub(in crate::request) flash_crowd: Option<PlanTaken>,
    pub(in crate::request) sentry: Option<LimitTaken>,
}

/// A whole answer as the gateway measures it.
#[derive(Clone, Copy, Debug)]
pub(in crate::request) struct Acknowledged {
    pub(in crate::request) bytes: u64,
    /// Time at which the gate had the whole answer.
    pub(in crate::request) handed: Instant,
    /// Arrival of the acknowledgement of all of it.
    pub(in crate::request) at: Instant,
    /// None where there is no rate to measure: of small answers, and in a network that is but a delay.
    pub(in crate::request) rate_bytes_per_s: Option<f32>,
}

impl SimulatedRequest {
    /// The key that the classifier would make of method and path.
    pub(super) fn url_class(&self) -> u32 {
        mix((u64::from(self.host) << 32) | u64::from(self.document)) as u32
    }
}

//! Answers of the gate on requests that arrive, and on those that waited.

use crate::sentry::hold::Ticket;
use crate::sentry::in_flight::Permit;
use crate::sentry::request::SentryRequest;
use flashweir_core::{Instant, Shed};

/// A slot in flight that is reserved for one request.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot is committed or cancelled"]
pub struct Slot {
    /// Its class is within its guaranteed rate, which is counted when the request is sent.
    pub(super) is_guaranteed: bool,
    /// It is no place: the request is long.
    pub(super) is_long: bool,
}

/// Result of a check that takes nothing: what is reserved for the request, or the refusal.
#[derive(Debug, PartialEq, Eq)]
pub enum Check<P, R = Shed> {
    /// There is room.
    Pass(P),
    /// There may be soon: [`SentryGate::enqueue`](super::SentryGate::enqueue).
    Wait,
    /// There is none.
    Shed(R),
}

/// Outcome for a request that was to wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Enqueued<T> {
    /// It waits; [`SentryGate::next_turn`](super::SentryGate::next_turn) will say.
    Queued(Ticket),
    /// It waits in the place of one that is refused.
    QueuedInsteadOf(Ticket, T, Shed),
    /// Room became free meanwhile: it is its turn.
    Turn(T, Slot),
    /// The queue is full.
    Shed(T, Shed),
}

/// Outcome for a request that waited, as far as the gate goes.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// There is room for it.
    Go {
        /// Value that the shell kept of it.
        request: T,
        /// As it was enqueued.
        asked: SentryRequest,
        /// Time at which it was enqueued.
        arrived: Instant,
        /// Its slot.
        slot: Slot,
    },
    /// Refuse it.
    Shed(T, Shed),
}

/// Outcome for a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// It waits; [`SentryGate::next`](super::SentryGate::next) will say.
    Held(Ticket),
    /// It waits in the place of one that is refused.
    HeldInsteadOf(Ticket, T, Shed),
    /// Refuse it at once.
    Shed(T, Shed),
}

/// Outcome for a request that waited.
#[derive(Debug, PartialEq, Eq)]
pub enum Released<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// Refuse it.
    Shed(T, Shed),
}

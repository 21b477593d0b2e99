//! Requests as the gate sees them, and its answers.

use super::hold::{Ticket, queue_of};
use super::in_flight::Permit;
use super::plan::ClassPlan;
use flashweir_core::Shed;

/// Request as the sentry sees it: its class, kind, client and position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentryRequest {
    /// Its class: a place in the policy's list. Beyond its end is the last one.
    pub class: u8,
    /// A hash of method and path without the query.
    pub url_class: u32,
    /// Client, as far as fairness goes: a hash of API key, cookie or network.
    pub client_key: u64,
    /// Its position among those of its class.
    pub position: Position,
    /// It is no demand, and its refusal no evidence: it was counted before, or no client sent it.
    pub is_uncounted: bool,
}

/// Position of a request among those of its class while the service is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Position {
    /// Before the others.
    #[default]
    Usual,
    /// After those: it is for a host to which a crowd came.
    HotSpot,
    /// After all, and only for what the origin would otherwise not do: its client is over its share.
    OverShare,
}

impl Position {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Usual, Self::HotSpot, Self::OverShare];
}

/// End of an admitted request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The origin answered to the end. If not, it failed,
    pub completed: bool,
    /// or was taken back before: its client has gone, or something else answered. That says nothing of the
    /// origin, unless the origin had longer for it than the target.
    pub withdrawn: bool,
    /// Service time as the origin reports it, microseconds.
    pub measured_us: Option<u32>,
}

impl Ending {
    /// One that was taken back.
    pub const WITHDRAWN: Self = Self { completed: false, withdrawn: true, measured_us: None };
}

/// A slot in flight that is reserved for one request.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a slot is committed or cancelled"]
pub struct Slot {
    /// Its class is within its guaranteed rate, which is counted when the request is sent.
    pub(super) is_guaranteed: bool,
    /// It is no place: the request is long.
    pub(super) is_long: bool,
}

/// Opinion of the gate alone on a request.
#[derive(Debug, PartialEq, Eq)]
pub enum SlotOpinion {
    /// There is room.
    Pass(Slot),
    /// There may be soon: [`SentryGate::enqueue`](super::SentryGate::enqueue).
    Wait,
    /// There is none.
    Shed(Shed),
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
        arrived: flashweir_core::Instant,
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

/// A request that arrives, with the plan of its class and its estimated cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivingRequest {
    pub(super) request: SentryRequest,
    pub(super) class: ClassPlan,
    pub(super) cost_us: u32,
}

impl ArrivingRequest {
    /// Queue in which it would wait.
    pub(super) fn queue(&self) -> usize {
        queue_of(self.request.class.into(), self.request.position)
    }

    /// Returns true if its client has more than its share.
    pub(super) fn is_over_share(&self) -> bool {
        self.request.position == Position::OverShare
    }
}

//! People on the client's side: who is present, what they wait for, and when they give up.

mod time_limits;

pub(super) use time_limits::TimeLimits;

use super::books::Cell;
use super::slab::Id;
use flashweir_core::Instant;
use flashweir_workload::people::Person;

/// A person who is present, from their first request to the last.
///
/// A visitor's id refers to one try: the visitor gets a new id when a try is settled, so that answers,
/// time limits and departures of earlier tries find no visitor.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) person: Person,
    /// Number of the person within the class.
    pub(super) number: u64,
    pub(super) class: u16,
    pub(super) doing: Doing,
    /// Document of the current request, and the request's number in the session.
    pub(super) document: u32,
    pub(super) request: u64,
    /// Tries of it so far.
    pub(super) tries: u32,
    /// Time at which it was first to be made.
    pub(super) first_asked: Instant,
    /// End of the person's patience with the current request.
    pub(super) leaves_at: Option<Instant>,
    /// Start of the current try.
    pub(super) intended: Instant,
    /// Cell in which the current try is counted.
    pub(super) cell: Cell,
    /// The current try on its way.
    pub(super) attempt: Id,
}

/// State of a visitor until its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Waits for an answer.
    Asking,
    /// Waits to try the same again.
    WaitingToRetry,
    /// Thinks about the next request.
    Thinking,
}

//! A learner with an explicit model: its knowledge of the origin is a distribution over origins of one kind.
//!
//! *The model.* An origin has c servers, a time that a unit of work takes alone, and a contention κ by which
//! each request in flight slows all others ([`origins`]). Times by number in flight are remembered
//! ([`curve`]): they show which origins are likely. The unevenness of requests ([`shape`]) shows how many of
//! them would be in time.
//!
//! *The rule* ([`rule`]): the limit is the one that is worth most under that distribution, in work done a
//! second in answers in time; of limits that are worth the same, the lowest. It goes up by at most a factor
//! of two at once, by half an octave in a crowd and once the knee was found; down by at most a factor of two,
//! unless answers would be late with half as many in flight, too. Nothing is probed: while it is not known
//! whether more in flight would do more, a higher limit is worth more by itself. Its numbers are in
//! [`constants`].
//!
//! *Evidence* is a window in which as many requests were completed as are in flight, and which began late
//! enough after the last move of the limit that long requests have had time to end, too: in earlier ones the
//! short are over and the long are not, and the origin seems several times faster than it is. Where no
//! request waits, each number in flight is separate evidence. Remembered times fade with new evidence, not
//! with time, and are dropped when windows at one limit say that the origin is another one ([`change`]): then
//! either the number of servers is as it was, or the time alone, or neither.
//!
//! *Cost:* a look that closes no window, O(levels seen); one that does, O(origins · levels). *Memory:*
//! bounded by both. *Fails* where a limit of 8 is far below what quiet times need and requests are very
//! uneven: the first seconds are spent on finding out.

mod change;
mod constants;
mod curve;
mod origins;
mod rule;
mod shape;

pub use constants::Constants;
pub(super) use rule::ModelRule;

use super::measured::Measured;

/// Learned state of the rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) limit: u32,
    pub(super) knee: Option<f64>,
    /// Servers as far as anything is known of them, not more than the limit: what costs go by.
    pub(super) servers: Option<f64>,
    /// Time of a unit of work when it is alone, seconds.
    pub(super) alone_s: Option<f64>,
    /// Factor by which the origin may do more than it did, as far as known: 1 once a limit was found that is
    /// not to be raised, infinite while nothing is known.
    pub(super) headroom: f64,
    pub(super) target_infeasible: bool,
    /// Since the limit last moved and settled, or was last looked at.
    pub(super) window: Measured,
    /// Measurements still belong to the limit before.
    pub(super) is_settling: bool,
}

/// Work done at one number in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LevelWork {
    /// Number in flight.
    pub(super) in_flight: f64,
    /// Requests in flight, integrated over time, request-seconds.
    pub(super) in_flight_s: f64,
    /// Completions times their costs.
    pub(super) work: f64,
    /// Completions.
    pub(super) completed: f64,
}

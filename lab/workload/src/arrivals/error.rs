//! Reason for which numbers make no arrival process.

use crate::profile::ProfileError;
use flashweir_core::limits::{PACED_WORKERS, SELF_SIMILAR_ACTIVE_MEAN};
use std::time::Duration;

/// The numbers given make no arrival process.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArrivalError {
    /// A Pareto shape for which H is not between 0.5 and 1, or too close to either.
    #[error("{0} is not a shape of session lengths: expected 1.05 to 1.95")]
    Alpha(f64),
    /// A gap of no use.
    #[error("{0:?} is not a gap between a session's requests: expected 1 µs to an hour")]
    Gap(Duration),
    /// A shortest session of no use.
    #[error("{shortest:?} is not a shortest session: expected 0.001 to 1000 times the gap of {gap:?}")]
    Shortest {
        /// The length given.
        shortest: Duration,
        /// The gap it goes with.
        gap: Duration,
    },
    /// A gap that is too long for this rate: too many sessions would be under way.
    #[error(
        "{0:.0} self-similar sessions would be under way at once (mean rate times gap), \
         at most {SELF_SIMILAR_ACTIVE_MEAN:.0} may be: shorten the gap"
    )]
    TooManySessions(f64),
    /// No workers, or more than are kept.
    #[error("{0} workers: expected 1 to {PACED_WORKERS}")]
    Workers(u32),
    /// Machines without workers, or none.
    #[error("{machines} machines for {workers} workers: expected at least one, and a worker for each")]
    Machines {
        /// Number of machines.
        machines: u32,
        /// Number of workers that they share.
        workers: u32,
    },
    /// Moments that go backwards.
    #[error("arrival {0} (counted from 0) comes before the one before it")]
    OutOfOrder(usize),
    /// A moment after the end.
    #[error("an arrival at {last:?} lies after the end at {length:?}")]
    AfterTheEnd {
        /// The last moment.
        last: Duration,
        /// The end.
        length: Duration,
    },
    /// The rate makes no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

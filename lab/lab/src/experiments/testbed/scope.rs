//! Amount of work of a trial.

use super::scale::{CROWD_S, QUIET_S};
use crate::experiments::{Crowd, SEMI_FINAL};

/// Amount of work of a trial: rounds, and the length of its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The first seed; a round each.
    pub seed: u64,
    /// Number of repetitions of each run.
    pub rounds: u32,
    /// Seconds of quiet.
    pub quiet_s: u64,
    /// Seconds of crowd.
    pub crowd_s: u64,
    /// In what course people come.
    pub crowd: Crowd,
}

impl Default for Scope {
    /// One round at the scale of [`scale`](super::scale), the counts of the semi-final in the repository.
    fn default() -> Self {
        Self { seed: 1, rounds: 1, quiet_s: QUIET_S, crowd_s: CROWD_S, crowd: SEMI_FINAL.counted() }
    }
}

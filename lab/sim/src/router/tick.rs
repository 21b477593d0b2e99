//! Counts and measurements of a router.

use flashweir_admission::flash_crowd::Explanation;
use flashweir_core::Instant;
use flashweir_core::measure::mean_of_fastest;

/// Counts of the gate: SYNs of connections that were not let in yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// SYNs that came, tries of those dropped before included (offered).
    pub offered: u64,
    /// Connections let in (admitted).
    pub admitted: u64,
    /// SYNs dropped (shed).
    pub shed: u64,
}

/// One look at the responses, and what was decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Time of the evaluation.
    pub at: Instant,
    /// Responses with data in the interval.
    pub responses: usize,
    /// Their rates by time sliding windows as published; none without responses.
    pub published: Option<Rates>,
    /// Their rates with the correction of the first second; none without responses.
    pub corrected: Option<Rates>,
    /// The planner's account of itself; none without a planner.
    pub explanation: Option<Explanation>,
}

/// Mean rates over some responses, bytes/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of the fastest tenth.
    pub fastest: f64,
    /// Of all.
    pub all: f64,
    /// Of the slowest tenth.
    pub slowest: f64,
}

impl GateCounts {
    pub(crate) fn minus(&self, before: &Self) -> Self {
        Self {
            offered: self.offered - before.offered,
            admitted: self.admitted - before.admitted,
            shed: self.shed - before.shed,
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            admitted: self.admitted + other.admitted,
            shed: self.shed + other.shed,
        }
    }
}

impl Rates {
    /// Of some responses; none without any. O(responses).
    pub(super) fn of(mut rates: Vec<f32>) -> Option<Self> {
        let all = rates.iter().map(|&rate| f64::from(rate)).sum::<f64>() / rates.len() as f64;
        let fastest = mean_of_fastest(&mut rates, FASTEST)?;
        rates.iter_mut().for_each(|rate| *rate = -*rate);
        let slowest = -mean_of_fastest(&mut rates, FASTEST)?;
        Some(Rates { fastest, all, slowest })
    }
}

/// High-bandwidth flows are the fastest tenth (p of NEWS §4.1).
const FASTEST: f64 = 0.10;

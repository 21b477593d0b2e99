//! Who is admitted: planners that decide slowly and gates that act fast, all pure.
//!
//! A [`Planner`] sees aggregated [`Sample`](Planner::Sample)s and makes an immutable [`Plan`](Planner::Plan)
//! every 10 ms to 60 s; floats are allowed and memory is bounded. A [`Gate`] applies the plan to each request
//! with integers, no allocation and no lock. Plans and samples are the only things that cross a thread, a BPF
//! map or a socket; recorded samples replayed through the same planner give the same plans, bit for bit.
#![no_std]
extern crate alloc;

mod contract;
pub mod flash_crowd;
pub mod pace;
pub mod retry_after;
pub mod sentry;
pub mod tiered_bucket;
pub mod token_bucket;

pub use contract::{Binding, Flow, Planner, PlannerDriver, Sample};

use flashweir_core::{Instant, Verdict};

/// Acts fast on the latest plan.
pub trait Gate {
    /// What the gate needs to know of a request: numbers only, made by the classifier.
    type Request;
    /// The planner's measurements.
    type Sample;
    /// The planner's decision.
    type Plan;

    /// Takes over a plan; the same plan twice changes nothing.
    fn apply(&mut self, now: Instant, plan: &Self::Plan);
    /// Decides one request. Integers only, no allocation.
    fn admit(&mut self, now: Instant, request: &Self::Request) -> Verdict;
    /// Hands over what was measured since the last drain and starts anew.
    fn drain(&mut self, now: Instant) -> Self::Sample;
}

//! Admission control: planners that decide slowly, stages that act fast, and the pipeline where they meet,
//! all pure.
//!
//! A [`Planner`] sees aggregated samples and makes an immutable plan every 10 ms to 60 s; floats are allowed
//! and memory is bounded. A stage of the [`pipeline`] applies the plan to each request with integers, no
//! allocation and no lock. Plans and samples are the only things that cross a thread, a BPF map or a socket;
//! recorded samples replayed through the same planner give the same plans, bit for bit.
#![no_std]
extern crate alloc;

mod contract;
pub mod fairness;
pub mod flash_crowd;
pub mod gapping;
pub mod ladder;
mod limit_plan;
pub mod pace;
pub mod pipeline;
mod rest_flag;
pub mod retry_after;
pub mod sentry;
mod sync;
pub mod tiered_bucket;
pub mod token_bucket;

pub use contract::{Binding, Flow, Planner, PlannerDriver, Sample};
pub use limit_plan::{DOUBLING_TIME, LimitPlan, OPEN_AFTER};
pub use rest_flag::RestFlag;

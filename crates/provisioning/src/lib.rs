//! Relief: how many servers and sentries each application gets, and how many gateways share one limit. Pure.
//!
//! Admission protects in milliseconds; only more servers relieve. This crate scales by the load that
//! admission refuses, too: its input is the load offered, never the load admitted. [`planner`] puts the parts
//! together behind the seam that all planners have ([`flashweir_admission::Planner`]): samples in, a plan
//! with its explanation out. The rules and what was measured: docs/algorithms/provisioning.md.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod application;
mod demand;
pub mod forecast;
pub mod partition;
mod plan;
pub mod planner;
mod policy;
mod published;
pub mod queueing;
mod release;
pub mod revenue;
mod sample;
mod sentries;
pub mod shares;
mod sizing;
#[cfg(test)]
mod tests;

pub use plan::{ApplicationPlan, Explanation, Plan, Rule};
pub use planner::ProvisioningPlanner;
pub use policy::{ApplicationPolicy, ClassValue, Mode, Policy, PolicyError};
pub use sample::{ApplicationSample, ClassCounts, Moments, PoolState, Sample, SentryLoad};

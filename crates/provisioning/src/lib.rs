//! Relief: how many servers and sentries each application gets, and how many gateways share one limit. Pure.
//!
//! Admission protects in milliseconds; only more servers relieve. What admission refuses is what this crate scales by: its input is
//! the load offered, never the load admitted. Its planners are to stand behind the seam that all planners have
//! ([`flashweir_admission::Planner`]): samples in, a plan with its explanation out.
#![no_std]
extern crate alloc;

pub mod partition;
pub mod queueing;
pub mod revenue;

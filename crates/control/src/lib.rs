//! `flashweir control`: orders servers by what a gateway refuses.
//!
//! Every interval it reads what the gateway was offered, admitted and refused (`/status` of its admin
//! address), asks the [planner of capacity](flashweir_provisioning), and obeys the plan by one of three
//! actuators: [`copies`] of a command on this machine, which it starts, checks, restarts and stops; a command
//! that is run with the number of servers; a web hook that gets it. The gateway does without it: when this
//! program stops, its copies stop, and nothing else changes.
//!
//! [`config`], [`copies`], [`reading`] and [`service_time`] are plain values; [`run`] does what they say.
//! `kubernetes` is the same for workloads of a cluster (the feature of this name).

pub mod config;
pub mod copies;
pub mod fetch;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod metrics;
pub mod reading;
mod run;
pub mod service_time;
mod supervisor;

pub use config::{Actuator, Config, ControlError};
pub use run::run;

//! What every long-running command has beside its own work: a clock, a state file, an admin listener, keys, and words for
//! a plan. The gateway and the router are controlled by the same planner, so they tell of it in the same way.

mod admin;
mod bounded_listener;
mod clock;
#[cfg(feature = "kernel")]
pub mod kernel;
mod plan;
mod planner;
mod random;
mod state_file;

pub use admin::{AdminListener, metrics_response, problem};
pub use clock::{Clock, unix_seconds_now};
pub use plan::{plan_json, tell_change};
pub use planner::{planner, planner_settings};
pub use random::random_u64;
pub use state_file::{StateFile, StateFileError};

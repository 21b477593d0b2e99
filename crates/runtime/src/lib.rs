//! Parts that every long-running command shares: the loop that runs its planners (`planner_loop`), a clock, a
//! state file, an admin listener, keys, and words for a plan. The gateway and the router are controlled by
//! the same planner, so they run it and report it in the same way.

mod admin;
mod baseline_keeper;
mod clock;
mod cluster_link;
#[cfg(feature = "kernel")]
pub mod kernel;
mod line_queue;
mod plan;
pub mod planner_loop;
mod random;
mod ready_file;
mod state_file;
mod user_signals;

pub use admin::{AdminListener, metrics_response, problem};
pub use baseline_keeper::BaselineKeeper;
pub use clock::{Clock, unix_millis_now, unix_seconds_now};
pub use cluster_link::{
    Candidacy, CarrierCounts, ClusterArrival, ClusterCarrier, ClusterLink, HeldLease, ReportRefusal,
    cluster_link,
};
pub use flashweir_config::flash_crowd_planner as planner;
pub use line_queue::{Drain, LineQueue, line_queue};
pub use plan::{plan_json, tell_change, tell_verdict};
pub use random::random_u64;
pub use ready_file::ReadyFile;
pub use state_file::{StateFile, StateFileError, UrlKey};
pub use user_signals::outlive_user_signals;

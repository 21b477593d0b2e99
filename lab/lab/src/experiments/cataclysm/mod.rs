//! Cataclysm (Urgaonkar and Shenoy): the sentry's policies, its §3, and provisioning, its §4, as published
//! and repaired, beside our defaults.

mod plant;
mod pools;
mod runs;

pub(crate) mod capacity;
pub(crate) mod crowd_relieved;
pub(crate) mod moving_servers;
pub(crate) mod policies;
pub(crate) mod refusal_rate;
pub(crate) mod sentry_counts;
pub(crate) mod shares;
pub(crate) mod thresholds;
pub(crate) mod violations;

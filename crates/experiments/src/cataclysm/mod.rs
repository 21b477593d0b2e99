//! Cataclysm (Urgaonkar and Shenoy): the sentry's policies, its §3, as published and repaired, beside our defaults.

mod plant;
mod runs;

pub(crate) mod capacity;
pub(crate) mod policies;
pub(crate) mod shares;
pub(crate) mod thresholds;

//! NEWS at the HTTP level: finds a flash crowd in the responses it spoils and sets a ceiling on admission.
//!
//! Chen and Heidemann's network early warning system, as published (two forms) and repaired (the default).
//! `gate` counts and limits (`candidate`: a second gate beside it, compared and never obeyed); `planner` puts
//! together `window` (what was measured), `latency_reference` (what is usual for a URL), `detector` and
//! `rate_limit` (repaired) or `published`, `hot_spot` (whom to limit) and `shares` (which gate gets how
//! much). docs/algorithms/news.md describes all of it.

mod candidate;
mod decay;
mod detector;
mod gate;
mod hot_spot;
mod latency_reference;
mod plan;
mod planner;
mod published;
mod rate_limit;
mod responses;
mod sample;
mod settings;
mod shares;
mod signal;
mod window;

pub use candidate::Agreement;
pub(crate) use candidate::GatePair;
pub use gate::{BURST_MIN, CeilingPriority, FlashCrowdGate, burst};
pub use plan::{Cause, Explanation, HotSpotLimit, Limit, Mode, Plan, Rule};
pub use planner::FlashCrowdPlanner;
pub use sample::{Counted, HostCount, LatencyCell, RateCell, Response, Sample, UNCLASSED};
pub use settings::{Baseline, PlannerMode, Settings};

//! NEWS at the HTTP level: finds a flash crowd in the responses it spoils and sets a ceiling on admission.

mod gate;
mod plan;
mod planner;
mod sample;

pub use gate::{FlashCrowdGate, GateRequest};
pub use plan::{Cause, Explanation, HotSpotLimit, Limit, Mode, Plan, Rule};
pub use planner::{Baseline, FlashCrowdPlanner, PlannerMode, Settings};
pub use sample::{HostCount, Response, Sample};

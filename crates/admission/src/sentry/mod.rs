//! The sentry: learns how many requests an origin can have in flight, holds what does not fit, refuses the rest.
//!
//! `gate` decides request by request with `in_flight` (counts and measures) and `hold` (those who wait); `planner`
//! learns the limit from what they measured: `inherent` (what a request takes when it is alone), `measured` (what the
//! origin did over a stretch of time), `judgement` (whether a move changed that) and `limit` (the rule).
//!
//! The rule, in short. By Little's law, work done per second times the inherent time of a unit of work is how many the
//! origin serves at once: the *knee*. The limit is a fifth above it. Whatever is believed is tested: each large move of
//! the limit is an experiment, judged by the power of the number in flight with which throughput changed, and by that
//! difference's own standard error. Fewer in flight and less done: what requests took then is inherent, and the limit
//! goes back (and if throughput does not come back with it, the origin has changed, not the limit's doing). More in
//! flight and more done: the knee is higher. Responses later than 0.7 of the target lower the limit, but not below the
//! knee, under which they would not become faster: then the target is reported infeasible. While the limit does not
//! bind, nothing is decided and inherent times are learned.
//!
//! Cold start: eight in flight, doubled as long as that serves more; everybody else waits, up to four targets, because
//! nobody is to be refused for lack of samples. Known weakness: where few requests complete per second and their work is very uneven, what the tests
//! need takes a minute. Source: Urgaonkar and Shenoy, Cataclysm §3 (the in-flight test), with a learned limit.

mod common;
mod gate;
mod hold;
mod in_flight;
mod inherent;
mod judgement;
mod limit;
mod measured;
mod plan;
mod planner;
mod policy;
mod sample;

pub use common::Common;
pub use gate::{Arrived, Asked, Ending, Released, SentryGate};
pub use hold::{Hold, Ticket};
pub use in_flight::{InFlight, Permit};
pub use plan::{ClassPlan, Costs, Explanation, Plan, Rule};
pub use planner::SentryPlanner;
pub use policy::{ClassPolicy, LadderStep, Policing, Policy};
pub use sample::{ClassCounts, LevelSum, Sample, UrlSum};

//! The sentry: learns how many requests an origin can have in flight, gives that room to the most important first,
//! holds what does not fit, refuses the rest.
//!
//! Per request, in each worker: `gate` decides (by reservation, by `batch` in rounds, or by a threshold's share), with
//! `in_flight` (counts and measures; `pausing`: but not those whose clients are waited for), `hold` (those who wait, by
//! class and client) and `common` (what the workers' gates share). `request` is what a gate is told and answers.
//!
//! Every 20 ms, for all of them: `planner` learns the limit from what they measured: `inherent` (what a request takes
//! when it is alone), `measured` (what the origin did over a stretch of time), `look` (both, at one moment), `limit` (the
//! rule), `raising` and `lowering` (when it goes up and down), `judgement` (whether that helped) and `patience` (when to
//! try again); `learner` chooses between that rule and `model`, a candidate with an explicit model. `classes` divides it: `costs` (what requests take), `ladder` (which target is in force), `price` (what the
//! marginal request is worth). `deciding` says how the gate decides, with `threshold` (which classes the servers suffice
//! for), `delays` (how long rounds gather) and `published` (the paper's own policies).
//!
//! Without acting: `shadow` (the live policy lets everybody in) and `candidate` (another policy decides beside it, with
//! `candidate_planner`).
//!
//! The rule, in short. By Little's law, work done per second times the inherent time of a unit of work is how many the
//! origin serves at once: the *knee*. A limit above it costs nothing as long as answers come in time, one below costs
//! throughput. So the limit goes up on a hint: requests are not in each other's way, or it is time to look. It comes
//! down on proof: responses are later than 0.7 of the target, beyond doubt, or as much was done with less. Each move is
//! an experiment, judged by the power of the number in flight with which throughput changed and by that power's own
//! standard error; in doubt it is taken back. A cut that made nothing faster is taken back too, and the target is
//! reported infeasible. While the limit does not bind, nothing is decided and inherent times are learned.
//!
//! Cold start: eight in flight, doubled until that surely does not help; everybody else waits, up to four targets,
//! because nobody is to be refused for lack of samples. Known weakness: where few requests complete per second, what the
//! experiments need takes up to a minute. Source: Urgaonkar and Shenoy, Cataclysm §3 (the in-flight test), with a learned
//! limit.

mod batch;
mod candidate;
mod candidate_planner;
mod classes;
mod common;
mod costs;
mod decay;
mod deciding;
mod delays;
mod gate;
mod hold;
mod in_flight;
mod inherent;
mod judgement;
mod ladder;
mod learner;
mod limit;
mod look;
mod lowering;
mod measured;
mod model;
mod order;
mod pace;
mod patience;
mod pausing;
mod plan;
mod planner;
mod policy;
mod price;
mod published;
mod raising;
mod request;
mod sample;
mod shadow;
mod threshold;

pub use candidate::{CandidateGate, Compared, Said};
pub use candidate_planner::CandidatePlanner;
pub use common::Common;
pub use gate::SentryGate;
pub use hold::Ticket;
pub use in_flight::{Paused, Permit};
pub use learner::Learner;
pub use plan::{BatchTest, ClassPlan, Costs, Decide, Explanation, Plan, Rule};
pub use planner::SentryPlanner;
pub use policy::{ClassPolicy, LadderStep, Policing, Policy};
pub use published::{Published, PublishedRule};
pub use request::{Arrived, Asked, Ending, Enqueued, Position, Released, Slot, SlotOpinion, Turn};
pub use sample::{ClassCounts, LevelSum, SERVICE_TIMES, Sample, UrlSum};

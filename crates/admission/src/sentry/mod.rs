//! The sentry: learns how many requests an origin can have in flight, gives that room to the most important
//! first, holds what does not fit, refuses the rest.
//!
//! Per request, in each worker: `gate` takes a `request`, decides (by reservation, by `gate/batch` in rounds,
//! or by a threshold's share) and gives a `gate/answer`. It has `in_flight` (counts and measures;
//! `gate/pausing`: but not those whose clients are waited for; `rows`: by time; `long`: those that hold no
//! place), `hold` (those who wait, by class and client), `gate/queues` (places to wait, by `room`, which says
//! what a queue may hold) and `common` (what the workers' gates share).
//!
//! Every 20 ms, for all of them: `planner` learns the limit from what they measured: `work` (how much work
//! requests are, by `pace`), `measured` (what the origin did over a stretch of time), `look` (both, at one
//! moment), `calm` (whether the origin is short of anything, and which requests are long), `model` (what
//! origins would do so, and the limit that is worth most); `learning` has their numbers, and rules that
//! benches leave out. `classes` divides it: `costs` (what requests take), `ladder` (which target is in
//! force), `price` (what the marginal request is worth). `deciding` says how the gate decides, with
//! `threshold` (which classes the servers suffice for), `delays` (how long rounds gather) and `published`
//! (the paper's own policies).
//!
//! Without acting: `gate/shadow` (the live policy admits every request) and `candidate` (another policy
//! decides beside it, with `candidate_planner`).
//!
//! The rule, in short. The knowledge of the origin is a probability for each of a grid of origins (servers,
//! time alone, contention), by how long requests took at each number in flight. The limit is the one worth
//! most under that distribution, in answers in time a second; of limits worth the same, the lowest. `model`
//! has it whole.
//!
//! Cold start: eight in flight, doubled while that does more; all others wait, up to five targets, because no
//! request is to be refused for lack of samples. Known weakness: where two requests complete a second, the
//! first quarter of a minute of a crowd is spent on finding out. Source: Urgaonkar and Shenoy, Cataclysm §3
//! (the in-flight test), with a learned limit.

mod calm;
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
mod ladder;
mod learning;
mod long;
mod look;
mod measured;
mod model;
mod pace;
mod plan;
mod planner;
mod policy;
mod price;
mod published;
mod request;
mod room;
mod rows;
mod sample;
mod service_times;
mod threshold;
mod work;

pub use candidate::{CandidateGate, Compared, VirtualDecision};
pub use candidate_planner::CandidatePlanner;
pub use common::Common;
pub use flashweir_limit::Numbers;
pub use gate::{Arrived, Check, Enqueued, Released, SentryGate, Slot, Turn};
pub use hold::Ticket;
pub use in_flight::{Paused, Permit};
pub use learning::{Learning, Rules};
pub use long::LongRequests;
pub use model::Constants;
pub use plan::{BatchTest, ClassPlan, Costs, Decide, Explanation, Plan, Rule};
pub use planner::SentryPlanner;
pub use policy::{ClassPolicy, LadderStep, Policing, Policy};
pub use published::{Published, PublishedRule};
pub use request::{Ending, Position, SentryRequest};
pub use sample::{ClassCounts, LevelSum, LongCounts, ROWS, Sample, UrlSum};
pub use service_times::SERVICE_TIMES;

//! The ladder: when an overloaded node asks for less and from which classes, for how much, and when it
//! discards.
//!
//! **What it decides.** From the work that waits (its *level*): which ranks are throttled at the nodes in
//! front of this one, which are discarded here, how severe the overload is, and which rate all senders
//! together may use.
//!
//! **The rule.** Each rank has a rung: abatement < onset < discard, and the abatement of a rank lies above
//! the discard of the next less important one.
//!
//! | flag | set | cleared |
//! |---|---|---|
//! | throttled | level ≥ onset | level < abatement |
//! | discarding | level ≥ discard | level < onset; where only discarding is in use, level < abatement |
//!
//! ```text
//! rate = max(C / 100, (C − unlimited) · (1 − (x − x_ref) / 1.2 s)),  x_ref = (abatement + onset) / 2
//! ```
//!
//! with `C` what the origin completes per second, `x` the level in seconds and `unlimited` the rate of the
//! ranks that are not throttled (ALGORITHMS §5.1, where the time is 2 s).
//!
//! **Units.** By default the level is unfinished work: microseconds until the origin has finished what is
//! queued and in service. The paper calls it the measure of interest and takes the queue length because its
//! requests are all alike; published modes count requests.
//!
//! **Where the thresholds come from.** [`rungs_of_plan`] takes them from the sentry's plan, so there is
//! nothing to set: at the lowest abatement no server of the origin is idle, and the highest discard is before
//! the sentry would begin to give up the oldest. While the ladder holds the backlog there, the sentry serves
//! in order of arrival ([`in_order`]). So the ladder never keeps the origin idle: it asks and discards only
//! while requests wait for the origin.
//!
//! **Why a rate and not the severity.** A gap by severity is right for one number of senders and one
//! capacity; a rate is right for all, and as it falls with the level, the level settles instead of swinging
//! between two thresholds.
//!
//! **Cold start.** While the sentry does not know what the origin can do, there are no rungs and nothing is
//! discarded. Where requests then take longer and longer, or are refused, senders are asked for what is
//! completed (`first.rs`). **Recovery.** After the level falls below every abatement the rate stays in force
//! until less than nine tenths of it are used for a second; a limit that ends while it binds brings the
//! overload back. **Cost.** O(ranks) for a level; integers. A plan is arithmetic on floats ten times a
//! second. **Failure modes.** A capacity estimate that is 10 % too high moves the level by 0.12 s, no
//! further; it is what the origin completes while work waits. Source: Iyer, Tewari and Kant §2.1 (thresholds
//! by priority, severity), §4 (the three schemes), §5 (settings).

mod capacity;
mod derived;
mod first;
mod gate;
mod growth;
mod plan;
mod planner;
mod published;
mod rungs;

pub use derived::{in_order, level_us, rungs_of_plan, wait_us};
pub use gate::{LadderGate, Orders, Scheme};
pub use plan::{Explanation, LadderInput, LadderPlan, Rule};
pub use planner::LadderPlanner;
pub use published::{PUBLISHED_POLL, Published, SEVERITY_ONSETS};
pub use rungs::{Rung, Rungs, RungsError};

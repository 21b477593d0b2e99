//! Gapping: the sending side of feedback. Which requests go to an upstream that asked for less, which wait,
//! which are refused here.
//!
//! **What it decides.** For each request to one upstream: send now, wait in a bounded queue, or refuse before
//! any work was done.
//!
//! **The rule**, while a restriction is in force for the request's rank:
//!
//! | rule | a request goes if |
//! |---|---|
//! | rate (default) | a token bucket of the advertised rate, with a burst of two, has a token |
//! | percentage | a random number is not below the percentage of the severity |
//! | minimum gap | the last one went at least the severity's gap ago (§2.1 and §4.3) |
//! | additive gap | the last one went at least the usual interarrival time and the gap ago (§5.3: 20/s and 150 ms make 5/s) |
//!
//! Ranks before the restricted ones pass and take nothing. *Continued* requests, whose earlier calls were
//! sent already, pass too, and take their token on credit: so the rate holds, and new work begins only where
//! what has begun can end.
//!
//! **Why a rate** and not the paper's gaps: a gap is right for one number of senders (`gap = n/(C −
//! unlimited) − interarrival`); a percentage admits in proportion to what is offered, so bursts get through
//! as bursts. Both are here to compare.
//!
//! **The queue** evens out chance: without it, a token that no request takes is followed by two requests for
//! one token. It is ordered by rank, then by arrival, and bounded by number and by waiting time; a request
//! that would wait longer than it may is refused at once. Under steady overload a queue is as long as it may
//! be, so its time is added to every response: it is a quarter of a second and not the second of ALGORITHMS
//! §5.2.
//!
//! **Cold start.** No restriction: every request goes. **Cost.** One refill and one comparison; O(queue) for
//! one that waits, at most [`Settings::queue_max`]. **Failure modes.** Severities and gaps that are set for
//! another number of senders throttle too much or too little; a rate does not. Source: Iyer, Tewari and Kant
//! §2.1, §4.3, §5.3; ALGORITHMS §5.1 (both meanings of "gap").

mod queue;
mod rule;
mod target;

pub use rule::{ADDITIVE_GAPS, PERCENTAGES, Restriction, Rule, SEVERITIES};
pub use target::{Counts, Decision, GappedTarget, Reason, Released, Settings};

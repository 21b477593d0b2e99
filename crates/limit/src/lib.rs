//! A learned limit on requests in flight, for services whose requests differ. Pure: no clock, no I/O, no
//! threads; time is an argument.
//!
//! [`Limiter`] is for use inside a service: permits, and a plan ten to fifty times a second. [`Learner`] is
//! for a gateway that counts by itself. The rule on one page:
//!
//! | symbol | meaning |
//! |---|---|
//! | Λ(t) | cumulative hazard of a class: −ln of the share of its requests that take longer than t, from its *base*, times measured while the origin was not busy |
//! | s | stretch: present times over those of the base |
//! | D, E(s) | completions of a tick, and those expected at a stretch s: Σ over requests Λ(age now/s) − Λ(age before/s) |
//! | n, c, κ | requests in flight, servers, contention |
//! | f(n; c, κ) | (1 + (n/c)⁸)^⅛ · (1 + κ (n − 1)), the stretch by n in flight |
//! | σ | scale: s = σ f(n; c, κ); below 1 where the base was measured under load |
//!
//! 1. *Evidence.* D is Poisson around E(s) for any distribution of times; what is still in flight counts with
//!    its age. No window, no settling, no quantile. D and E go to the number in flight under which the
//!    requests have aged.
//! 2. *Posterior* over (c, κ, σ): Σ over n of D ln E(σ f) − E(σ f), tempered by a model error. Cumulative
//!    sums find changes of the origin. Where all times change by more than 2⁵, bases are moved by 2⁴: an
//!    origin whose dependency, cache or compiler makes each request slow is not short of servers.
//! 3. *Policy.* The limit worth most in work done in time. It rises by what was shown (completions near the
//!    limit, never time), and falls only while the origin is more likely short of something than not.
//! 4. *Exempt* requests hold no place among those that the limit is for. *Long classes*, whose requests take
//!    longer than the target even alone while others do not, are exempt; in a crowd as many as in the last
//!    seconds of calm and two standard deviations, at a cold start at least twice the limit.
//! 5. *Prompt classes*, whose requests complete as soon as usual while those of others take four times as
//!    long and fill the limit, are exempt, too: what slows the others is nothing that they need.
//! 6. *Silence.* Where requests hold all places and none completes for longer than chance explains, those
//!    that are four targets old give their places to as many others, once.
//!
//! Cold start: eight in flight. Memory: about 4 kB for each class, at most 65, and 160 kB. Cost of a tick in
//! which every class completes something: 0.06 ms with one class, 0.07 with 8, 0.11 with 64 (profile of
//! tests, busy machine; the ignored test `cost` prints it).
//!
//! *State: experimental.* The sentry of `flashweir-admission` uses the evidence: it keeps its own limit up
//! while nothing is short, and takes exempt classes from here. As the only rule this one finds single slow
//! servers at a cold start later; with one request in flight nothing shows that servers were added.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod base;
mod class;
mod evidence;
mod grid;
mod learner;
mod limiter;
mod numbers;
mod policy;
mod posterior;
mod prompt;
mod recent;
mod row;
mod silence;

pub use evidence::{CLASSES_MAX, Evidence};
pub use grid::{TIME_BINS, bin_middle_s, time_bin, time_bin_nanos};
pub use learner::{Learned, Learner, Move, Tick};
pub use limiter::{LimitReached, Limiter, Permit};
pub use numbers::{LIMIT_MAX, Numbers};
pub use policy::Policy;
pub use posterior::Posterior;
pub use row::Row;

#[cfg(test)]
mod tests;

//! A learner with an explicit model: what is known of the origin is a distribution over origins of one kind.
//!
//! An origin has c servers, a rate at which one of them alone completes requests, and a contention κ by which each request in
//! flight slows all others. With n in flight it completes `rate · f(n)` a second, f rising like n up to c and falling beyond
//! where κ > 0 ([`origins`]). Windows of traffic are evidence ([`evidence`]): work completed, and the time spent at
//! each number in flight. Rates are unknown scales of Poisson counts, so their distribution is a Gamma for each (c, κ), and what
//! is left is a table of probabilities ([`capacity`]). Evidence ends when the counts say that the origin is another one
//! ([`change`]), not after a time. The limit is the one worth most under all of that ([`rule`]): departures expected, less
//! those that would be late.
//!
//! Everything rests on windows that cover the stay of all who were in flight when they began: in shorter ones the
//! short requests are over and the long ones are not, and the origin seems several times faster than it is.
//!
//! This is a candidate beside the rule in force ([`super::limit`]), chosen by [`Learner`](super::Learner) for
//! comparison in the simulator. On the capacity matrix it is better with short requests and not yet with long, uneven ones.

mod capacity;
mod change;
mod evidence;
mod origins;
mod rule;

pub(super) use evidence::Seen;
pub(super) use rule::PosteriorRule;

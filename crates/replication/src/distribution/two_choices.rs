//! The less loaded of two hosts drawn at random, by this redirector's own recent choices: the default.
//!
//! ```text
//! draw two hosts; take the one with the lower q/share,    q = Σ e^(−age/1 s) of this redirector's choices
//! ```
//!
//! Why this: there is no stale report in it, so there is no herd at any load, and it needs no report at all.
//! Two choices keep the most loaded server within O(log log n) of the mean (Mitzenmacher 2001). Several
//! redirectors need not know each other: each spreads its own part of the documents evenly, and a sum of even
//! parts is even. Load that they cannot see (of documents that only one server hosts, elsewhere) is left to
//! placement and, slowly, to learned weights.
//!
//! Cold start: all counters zero, the first of the two drawn. Failure mode: with unequal shares a server can
//! get at most the part of draws in which it takes part, 2/n of the requests, at any share.

use super::Candidates;
use crate::servers::ServerIndex;
use flashweir_core::Rng;
use flashweir_core::measure::DecayedCounters;

/// Power of two choices on decayed counters. O(1); O(hosts) where one of the two drawn is out.
#[derive(Clone, Copy, Debug)]
pub struct TwoChoices;

impl TwoChoices {
    pub(super) fn choose(
        self,
        candidates: &Candidates<'_>,
        counters: &DecayedCounters,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let hosts = candidates.hosts;
        let (first, second) = match hosts {
            [] => return None,
            [only] => return (candidates.share(*only) > 0).then_some(*only),
            _ => two_of(hosts.len() as u64, rng),
        };
        let (one, other) = (hosts[first as usize], hosts[second as usize]);
        let (one_share, other_share) = (candidates.share(one), candidates.share(other));
        if one_share == 0 || other_share == 0 {
            return Self::among_usable(candidates, counters, rng);
        }
        let count = |server: ServerIndex| u128::from(counters.scaled(usize::from(server)));
        // q/share compared without a division.
        let is_other_lower = count(other) * u128::from(one_share) < count(one) * u128::from(other_share);
        Some(if is_other_lower { other } else { one })
    }

    /// The same among the usable hosts only.
    fn among_usable(
        candidates: &Candidates<'_>,
        counters: &DecayedCounters,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let (first, second) = two_of(candidates.usable().count() as u64, rng);
        let nth = |nth: u64| candidates.usable().nth(nth as usize);
        let ((one, one_share), (other, other_share)) = (nth(first)?, nth(second)?);
        let count = |server: ServerIndex| u128::from(counters.scaled(usize::from(server)));
        let is_other_lower = count(other) * u128::from(one_share) < count(one) * u128::from(other_share);
        Some(if is_other_lower { other } else { one })
    }
}

/// Two different numbers below `count`, drawn at random: the second from the rest, counted on from the first.
/// Both are zero below two.
pub(crate) fn two_of(count: u64, rng: &mut Rng) -> (u64, u64) {
    let first = rng.below(count);
    let second = (first + 1 + rng.below(count.saturating_sub(1))) % count.max(1);
    (first, second)
}

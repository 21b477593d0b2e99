//! Consistent hashing with bounded loads: the same server for the same document, unless that server has more
//! than its part.
//!
//! ```text
//! hosts by decreasing hash of (document, server); the first with q + 1 ≤ (1 + ε)·(Σ q + 1)·share/Σ share
//! ```
//!
//! Mirrokni, Thorup and Zadimoghaddam, *Consistent hashing with bounded loads* (SODA 2018), with a hash for
//! each pair (rendezvous) in the place of a ring, so that the hosts of a document need no positions. The
//! paper counts requests in flight; a redirector that answers 302 does not see them end, so q is the decayed
//! count of its choices, which is the number in flight of requests that take τ each. It keeps caches warm; it
//! balances to within ε, not better.
//!
//! Failure mode: none of the hosts is below the bound (rounding, or hosts that have it all): the least loaded
//! one is taken.

use super::Candidates;
use crate::SettingsError;
use crate::servers::ServerIndex;
use flashweir_core::hash::mix;
use flashweir_core::measure::DecayedCounters;

/// Bounded-load consistent hashing. O(hosts), no allocation.
#[derive(Clone, Copy, Debug)]
pub struct BoundedLoad {
    /// 1 + ε in 1/1024.
    factor: u32,
}

impl BoundedLoad {
    pub(super) fn new(excess: f64) -> Result<Self, SettingsError> {
        if !(0.01..=10.0).contains(&excess) {
            return Err(SettingsError::new("excess of bounded-load hashing", "0.01 to 10"));
        }
        Ok(Self { factor: ((1.0 + excess) * 1_024.0) as u32 })
    }

    pub(super) fn choose(
        self,
        document: u64,
        candidates: &Candidates<'_>,
        counters: &DecayedCounters,
    ) -> Option<ServerIndex> {
        let count = |server: ServerIndex| u128::from(counters.scaled(usize::from(server)));
        let sums = candidates.usable().fold((0u128, 0u128), |(counts, shares), (server, share)| {
            (counts + count(server), shares + u128::from(share))
        });
        // In the scale of the counters an event is not one, so "+ 1" is left out of both sides: the bound
        // differs by less than one request, and an idle system passes with 0 ≤ 0.
        let is_below = |(server, share): (ServerIndex, u32)| {
            count(server) * sums.1 * 1_024 <= u128::from(self.factor) * sums.0 * u128::from(share)
        };
        let hash = |server: ServerIndex| mix(document ^ mix(u64::from(server) + 1));
        let below = candidates.usable().filter(|&it| is_below(it)).map(|(server, _)| server);
        let preferred = below.max_by_key(|&server| hash(server));
        preferred.or_else(|| candidates.usable().map(|it| it.0).min_by_key(|&server| count(server)))
    }
}

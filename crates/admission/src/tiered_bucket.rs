//! One token bucket for load of several ranks, of which the important is refused last.
//!
//! Decides whether one more event of a rank fits. Each tier (rank 0 the most important) brings a rate and a
//! burst. All rates together fill one bucket, in which the bursts lie on each other as layers, that of rank 0
//! at the bottom:
//!
//! ```text
//! floor(r) = sum of the bursts of the ranks before r        rate = sum of all rates
//! rank r takes a token while at least floor(r) + 1 are there
//! ```
//!
//! So a rank spends its own layer and those above it, which are the less important ranks', and never one
//! below. Refill begins at the bottom: a rank gets what the more important ones leave.
//!
//! **Guarantee.** Once the bucket has been full up to floor(r + 1), an event of rank r is refused only if,
//! over some interval t that ends with it, ranks 0 to r together offered more than `rate·t + burst(r)`.
//! Proof: let the interval begin when the level was last at floor(r + 1). Since then no less important rank
//! could take a token and nothing was lost at the rim, so the level is at least `floor(r + 1) + rate·t −
//! admitted(ranks ≤ r)`; and it is below `floor(r) + 1`. How much less important load there is does not
//! appear in it. Over any interval, all ranks together are admitted at most `rate·t + sum of bursts`.
//!
//! **Why not a bucket for each rank, with borrowing:** that needs several buckets under one lock for each
//! decision, and in the end admits the same: what a rank leaves goes to the next, what it lacks comes from
//! the last. Here a decision is one refill and one comparison, for any number of tiers, and one tier is the
//! plain bucket to the unit.
//!
//! Cold start: empty, as the plain bucket; the layers fill from the bottom, so the last rank waits for
//! `floor(last) / rate`. So it does, in part, where new ceilings make the layers below it larger. A rank
//! beyond the last tier is judged as the last. Cost per decision: that of the plain bucket; 112 bytes. The
//! BPF gate is a transliteration of this file.

use crate::token_bucket::{BURST_MAX, TokenBucket};
use flashweir_core::{Instant, Rate, limits};

/// Tiers at most, as in the kernel.
pub const TIERS: usize = limits::KERNEL_TIERS;

/// Rate and burst of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierCeiling {
    /// Events per second; the sum over all tiers is capped at [`Rate::MAX`].
    pub rate: Rate,
    /// Events that may come at once; at least 1. The sum over all tiers is capped at a million, of which
    /// every tier keeps 1.
    pub burst: u64,
}

/// A bucket in layers.
///
/// ```
/// use flashweir_admission::tiered_bucket::{TierCeiling, TieredBucket};
/// use flashweir_core::{Instant, Rate};
/// let tier = TierCeiling { rate: Rate::from_per_second(1.0), burst: 2 };
/// let mut bucket = TieredBucket::empty(Instant::ZERO, &[tier, tier]);
/// // Four tokens fit; rank 1 leaves two of them to rank 0.
/// let later = Instant::from_secs(10);
/// assert_eq!([1, 1, 1].map(|rank| bucket.admit(later, rank)), [true, true, false]);
/// assert_eq!([0, 0, 0].map(|rank| bucket.admit(later, rank)), [true, true, false]);
/// ```
#[derive(Clone, Debug)]
pub struct TieredBucket {
    bucket: TokenBucket,
    /// Tokens that a tier leaves to those before it.
    floors: [u64; TIERS],
    last_tier: usize,
}

impl TieredBucket {
    /// A bucket without tokens.
    ///
    /// # Panics
    /// When there are no tiers, or more than [`TIERS`].
    #[must_use]
    pub fn empty(now: Instant, tiers: &[TierCeiling]) -> Self {
        let bucket = TokenBucket::empty(now, Rate::ZERO, 1);
        let mut tiered = Self { bucket, floors: [0; TIERS], last_tier: 0 };
        tiered.set_ceilings(now, tiers);
        tiered
    }

    /// Changes all ceilings from `now` on; what was earned until then was earned at the old rate.
    ///
    /// # Panics
    /// When there are no tiers, or more than [`TIERS`].
    pub fn set_ceilings(&mut self, now: Instant, tiers: &[TierCeiling]) {
        assert!((1..=TIERS).contains(&tiers.len()), "{} tiers", tiers.len());
        let mut bursts = 0;
        for (index, tier) in tiers.iter().enumerate() {
            // One token is left for this tier and for each after it.
            let after = (tiers.len() - index) as u64;
            self.floors[index] = u64::min(bursts, BURST_MAX - after);
            bursts += tier.burst.clamp(1, BURST_MAX);
        }
        self.last_tier = tiers.len() - 1;
        let rate_milli = tiers.iter().map(|tier| tier.rate.as_milli()).sum();
        self.bucket.set_rate(now, Rate::from_milli(rate_milli), bursts);
    }

    /// Takes one token for an event of `rank`, if there is one that is not reserved for those before it.
    #[must_use]
    pub fn admit(&mut self, now: Instant, rank: usize) -> bool {
        self.bucket.admit_above(now, self.floors[rank.min(self.last_tier)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn tier(rate_per_s: f64, burst: u64) -> TierCeiling {
        TierCeiling { rate: Rate::from_per_second(rate_per_s), burst }
    }

    /// Admitted of each rank when each offers `offered_per_s`, evenly, for ten seconds after one to warm up.
    fn admitted_per_s(tiers: &[TierCeiling], offered_per_s: &[u64]) -> Vec<u64> {
        let mut bucket = TieredBucket::empty(Instant::ZERO, tiers);
        let mut admitted = alloc::vec![0; offered_per_s.len()];
        for tick in 0..11_000u64 {
            let now = Instant::from_millis(tick);
            // The least important ask first, which is the worst for the others.
            for (rank, &offered) in offered_per_s.iter().enumerate().rev() {
                let due = (tick + 1) * offered / 1_000 - tick * offered / 1_000;
                for _ in 0..due {
                    let admits = bucket.admit(now, rank);
                    admitted[rank] += u64::from(admits && tick >= 1_000);
                }
            }
        }
        admitted.iter().map(|count| count / 10).collect()
    }

    #[test]
    fn a_rank_gets_what_the_more_important_leave() {
        let tiers = [tier(50.0, 10), tier(30.0, 10), tier(20.0, 10)];
        assert_eq!(admitted_per_s(&tiers, &[20, 40, 1_000]), [20, 40, 40]);
        assert_eq!(admitted_per_s(&tiers, &[20, 500, 1_000]), [20, 80, 0]);
        assert_eq!(admitted_per_s(&tiers, &[1_000, 500, 1_000]), [100, 0, 0]);
        assert_eq!(admitted_per_s(&tiers, &[0, 0, 1_000]), [0, 0, 100]);
    }

    #[test]
    fn a_rank_beyond_the_last_tier_is_judged_as_the_last() {
        assert_eq!(admitted_per_s(&[tier(50.0, 10), tier(50.0, 10)], &[30, 0, 0, 1_000]), [30, 0, 0, 70]);
    }

    #[test]
    fn bursts_beyond_a_million_leave_every_tier_a_token() {
        let mut bucket = TieredBucket::empty(Instant::ZERO, &[tier(1e9, u64::MAX); TIERS]);
        assert_eq!(bucket.bucket.burst(), BURST_MAX);
        let full = Instant::from_secs(1);
        assert!(bucket.admit(full, TIERS - 1) && !bucket.admit(full, TIERS - 1));
        for rank in (0..TIERS - 1).rev() {
            assert!(bucket.admit(full, rank), "{rank}");
        }
    }

    fn arrivals() -> impl Strategy<Value = Vec<(u64, usize)>> {
        proptest::collection::vec((0u64..40, 0..TIERS), 1..400)
    }

    proptest! {
        /// The guarantee of this module, for every refusal in any traffic.
        #[test]
        fn a_rank_is_refused_only_for_its_own_and_more_important_load(
            bursts in proptest::collection::vec(1u64..5, 1..=TIERS), rate_per_s in 1u64..300, traffic in arrivals(),
        ) {
            let mut tiers: Vec<_> = bursts.iter().map(|&burst| tier(0.0, burst)).collect();
            // All rates fill one bucket: it does not matter which tier has the rate.
            tiers[0].rate = Rate::from_milli(rate_per_s * 1_000);
            let last = tiers.len() - 1;
            let mut bucket = TieredBucket::empty(Instant::ZERO, &tiers);
            // Long enough for every layer to be full.
            let mut now_ms = 1_000_000;
            let mut offered: Vec<(u64, usize)> = Vec::new();
            for (pause_ms, rank) in traffic {
                now_ms += pause_ms;
                let rank = rank.min(last);
                offered.push((now_ms, rank));
                if bucket.admit(Instant::from_millis(now_ms), rank) {
                    continue;
                }
                let mut counted = 0;
                let explains = offered.iter().rev().any(|&(at_ms, of)| {
                    counted += u64::from(of <= rank);
                    counted * 1_000 > rate_per_s * (now_ms - at_ms) + bursts[rank] * 1_000
                });
                prop_assert!(explains, "rank {rank} refused at {now_ms} after {offered:?}");
            }
        }

        /// One tier is the plain bucket.
        #[test]
        fn one_tier_is_the_plain_bucket(
            rate_milli in 0u64..2_000_000, burst in 0u64..20, traffic in arrivals(),
        ) {
            let rate = Rate::from_milli(rate_milli);
            let mut tiered = TieredBucket::empty(Instant::ZERO, &[TierCeiling { rate, burst }]);
            let mut plain = TokenBucket::empty(Instant::ZERO, rate, burst);
            let mut now_ms = 0;
            for (pause_ms, rank) in traffic {
                now_ms += pause_ms;
                let now = Instant::from_millis(now_ms);
                prop_assert_eq!(tiered.admit(now, rank), plain.admit(now));
            }
        }

        /// All ranks together never get more than the rates and bursts of all.
        #[test]
        fn all_together_stay_below_the_sum(
            bursts in proptest::collection::vec(1u64..5, 1..=TIERS), traffic in arrivals(),
        ) {
            let tiers: Vec<_> = bursts.iter().map(|&burst| tier(7.0, burst)).collect();
            let mut bucket = TieredBucket::empty(Instant::ZERO, &tiers);
            let (mut now_ms, mut admitted) = (1_000_000, 0u64);
            for (pause_ms, rank) in traffic {
                now_ms += pause_ms;
                admitted += u64::from(bucket.admit(Instant::from_millis(now_ms), rank));
                let earned_milli = (now_ms - 1_000_000) * 7 * tiers.len() as u64;
                prop_assert!(admitted * 1_000 <= earned_milli + bursts.iter().sum::<u64>() * 1_000);
            }
        }
    }
}

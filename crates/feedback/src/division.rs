//! The division of one rate over senders: weighted max-min fairness (water filling).
//!
//! A sender that asks for less than its part gets what it asks for; what it leaves is divided among the
//! others by weight, until every sender has what it asks for or the same rate per unit of weight as all
//! others that do not. The rate left when all are content goes to all by weight, so that a sender may ask for
//! more before the next division. Source: Bertsekas and Gallager, *Data Networks* §6.5.2 (max-min fairness);
//! the paper has no division, its gap is each client's.

use alloc::vec::Vec;
use flashweir_core::Rate;

/// Claim of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its weight, at least 1.
    pub weight: u32,
    /// The rate that it would send; none where that is unknown because its share binds.
    pub demand: Option<Rate>,
}

/// Divides `total` into one share for each claim, in their order. The shares add up to the total but for
/// rounding down: less than a thousandth per second each. The rate per unit of weight of those who get less
/// than they ask for is returned; none where all are content. O(n log n); `shares` and `order` are scratch
/// space that is kept between calls.
pub fn divide(total: Rate, claims: &[Claim], shares: &mut Vec<Rate>, order: &mut Vec<u32>) -> Option<Rate> {
    shares.clear();
    shares.resize(claims.len(), Rate::ZERO);
    order.clear();
    order.extend(0..claims.len() as u32);
    let weight = |claim: &Claim| u64::from(claim.weight.max(1));
    // Demand per unit of weight; without a limit where it is unknown.
    let level = |&index: &u32| {
        let claim = &claims[index as usize];
        claim.demand.map_or(u64::MAX, |demand| demand.as_milli() / weight(claim))
    };
    order.sort_unstable_by_key(level);
    let mut left = total.as_milli();
    let mut weights: u64 = claims.iter().map(weight).sum();
    let mut unmet = None;
    for &index in &*order {
        let claim = &claims[index as usize];
        let fair = part(left, weight(claim), weights);
        if unmet.is_none() && claim.demand.is_none_or(|demand| demand.as_milli() > fair) {
            unmet = Some(Rate::from_milli(part(left, 1, weights)));
        }
        let share = claim.demand.map_or(fair, |demand| demand.as_milli().min(fair));
        shares[index as usize] = Rate::from_milli(share);
        left -= share;
        weights -= weight(claim);
    }
    let weights: u64 = claims.iter().map(weight).sum();
    for (share, claim) in shares.iter_mut().zip(claims).filter(|_| left > 0) {
        *share = Rate::from_milli(share.as_milli() + part(left, weight(claim), weights));
    }
    unmet
}

/// `left · weight / weights`, rounded down, without overflow.
fn part(left: u64, weight: u64, weights: u64) -> u64 {
    (u128::from(left) * u128::from(weight) / u128::from(weights.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn divided(total: f64, claims: &[(u32, Option<f64>)]) -> Vec<f64> {
        let claim = |&(weight, demand): &(u32, Option<f64>)| Claim {
            weight,
            demand: demand.map(Rate::from_per_second),
        };
        let claims: Vec<Claim> = claims.iter().map(claim).collect();
        let (mut shares, mut order) = (Vec::new(), Vec::new());
        let unmet = divide(Rate::from_per_second(total), &claims, &mut shares, &mut order);
        let is_short =
            claims.iter().zip(&shares).any(|(claim, &share)| claim.demand.is_none_or(|it| share < it));
        assert_eq!(unmet.is_some(), is_short);
        shares.iter().map(|share| share.per_second()).collect()
    }

    #[test]
    fn what_an_idle_sender_leaves_goes_to_the_others_by_weight() {
        assert_eq!(divided(90.0, &[(1, None), (2, None)]), [30.0, 60.0]);
        assert_eq!(divided(90.0, &[(1, None), (2, None), (1, Some(6.0))]), [28.0, 56.0, 6.0]);
        assert_eq!(divided(90.0, &[(1, Some(50.0)), (1, Some(60.0))]), [45.0, 45.0]);
        assert_eq!(divided(90.0, &[(1, Some(10.0)), (1, Some(20.0))]), [40.0, 50.0], "all are content");
        assert_eq!(divided(0.0, &[(1, None)]), [0.0]);
        assert_eq!(divided(9.0, &[]), [0.0; 0]);
        assert_eq!(divided(9.0, &[(0, None)]), [9.0], "a weight of 0 counts as 1");
    }

    proptest! {
        /// Nothing is lost beyond rounding, no share is above the total, and no sender has more per unit of
        /// weight than one that got less than it asked for.
        #[test]
        fn the_division_is_whole_and_fair(
            total in 0u64..10_000_000,
            claims in proptest::collection::vec((1u32..50, proptest::option::of(0u64..5_000_000)), 1..40),
        ) {
            let claim = |&(weight, demand): &(u32, Option<u64>)| Claim { weight, demand: demand.map(Rate::from_milli) };
            let claims: Vec<Claim> = claims.iter().map(claim).collect();
            let (mut shares, mut order) = (Vec::new(), Vec::new());
            divide(Rate::from_milli(total), &claims, &mut shares, &mut order);
            let sum: u64 = shares.iter().map(|share| share.as_milli()).sum();
            prop_assert!(sum <= total && total - sum <= claims.len() as u64, "{} of {}", sum, total);
            let is_short = |at: usize| claims[at].demand.is_none_or(|demand| shares[at] < demand);
            let per_weight = |at: usize| shares[at].as_milli() as f64 / f64::from(claims[at].weight);
            for short in (0..claims.len()).filter(|&at| is_short(at)) {
                for other in 0..claims.len() {
                    // Rounding moves a thousandth from one sender to the next.
                    let within = per_weight(other) <= per_weight(short) + claims.len() as f64 + 1.0;
                    prop_assert!(within, "{} of {:?}: {:?}", other, claims, shares);
                }
            }
        }
    }
}

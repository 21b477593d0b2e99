//! When a refused client is told to come back.
//!
//! The gate estimates when capacity returns. Were everybody told the same second, everybody would return in it: the
//! estimate `base` is spread over [base, 2·base], each person at a place of their own. The place is a hash, not a
//! draw, so asking again does not help and a page reload shows the same answer.

use flashweir_core::Duration;

/// No estimate is told beyond half a minute: twice that, jitter included, stays within the 64 s for which a refused
/// person is recognised as the same one coming back.
const LONGEST_S: u64 = 30;

/// What a refusal says about time, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryAfter {
    /// The estimate itself, rounded up: when quota is expected again (`t` of `RateLimit`).
    pub(crate) base_s: u64,
    /// This client's own second (`Retry-After`, RFC 9110 §10.2.3): never 0 and never before `base_s`.
    pub(crate) jittered_s: u64,
}

impl RetryAfter {
    /// `person_key` and `seed` choose the place within [base, 2·base]; both are 64 well-mixed bits.
    pub(crate) fn new(estimate: Duration, person_key: u64, seed: u64) -> Self {
        let rounded_up = estimate.as_secs().saturating_add(u64::from(estimate.subsec_nanos() > 0));
        let base_s = rounded_up.clamp(1, LONGEST_S);
        let place = u128::from(mix(person_key ^ seed)) * u128::from(base_s + 1);
        Self { base_s, jittered_s: base_s + (place >> 64) as u64 }
    }
}

/// The finaliser of SplitMix64: every input bit changes about half of the output's.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_answer_lies_between_the_estimate_and_twice_it(millis in 0u64..2_000_000, person: u64, seed: u64) {
            let told = RetryAfter::new(Duration::from_millis(millis), person, seed);
            prop_assert_eq!(told.base_s, millis.div_ceil(1_000).clamp(1, LONGEST_S));
            prop_assert!(told.jittered_s >= told.base_s && told.jittered_s <= 2 * told.base_s);
            prop_assert_eq!(told, RetryAfter::new(Duration::from_millis(millis), person, seed));
        }
    }

    #[test]
    fn people_are_spread_over_all_seconds() {
        let mut told = [0u32; 11];
        for person in 0..11_000 {
            let answer = RetryAfter::new(Duration::from_secs(10), mix(person), 42);
            told[(answer.jittered_s - 10) as usize] += 1;
        }
        assert!(told.iter().all(|&count| (800..1_200).contains(&count)), "{told:?}");
    }

    #[test]
    fn an_absurd_estimate_is_capped() {
        assert_eq!(RetryAfter::new(Duration::MAX, 1, 2).base_s, LONGEST_S);
    }
}

//! Computes when a refused client may come back: in the gateway and, so that simulated clients wait as long
//! as real ones, in the simulator.
//!
//! The gate estimates when capacity returns. If all clients got the same second, all would return in it: the
//! estimate `base` is spread over [base, 2·base], each client at its own place. The place is a hash, not a
//! draw, so asking again does not help and a page reload shows the same answer.

use flashweir_core::Duration;
use flashweir_core::hash::mix;

/// The estimate when a bound was met and nothing better is known: most requests finish within a second.
pub const AT_A_BOUND: Duration = Duration::from_secs(1);

/// Longest estimate, half a minute: twice that, jitter included, stays within the 64 s for which a refused
/// client is recognised when it comes back.
const LONGEST_S: u64 = 30;

/// Times sent with a refusal, in whole seconds.
///
/// ```
/// use flashweir_admission::retry_after::RetryAfter;
/// use std::time::Duration;
/// let answer = RetryAfter::new(Duration::from_millis(3_200), 0x1234, 42);
/// assert_eq!(answer.base_s, 4);
/// assert!((4..=8).contains(&answer.jittered_s));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// The estimate itself, rounded up: when quota is expected again (`t` of `RateLimit`).
    pub base_s: u64,
    /// This client's own second (`Retry-After`, RFC 9110 §10.2.3): never 0, never before `base_s`, at most
    /// 60.
    pub jittered_s: u64,
}

impl RetryAfter {
    /// For an estimate of when capacity returns. `person_key` and `seed` choose the place within [base,
    /// 2·base]; both are 64 well-mixed bits.
    #[must_use]
    pub fn new(estimate: Duration, person_key: u64, seed: u64) -> Self {
        let rounded_up = estimate.as_secs().saturating_add(u64::from(estimate.subsec_nanos() > 0));
        let base_s = rounded_up.clamp(1, LONGEST_S);
        let place = u128::from(mix(person_key ^ seed)) * u128::from(base_s + 1);
        Self { base_s, jittered_s: base_s + (place >> 64) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_answer_lies_between_the_estimate_and_twice_it(millis in 0u64..2_000_000, person: u64, seed: u64) {
            let answer = RetryAfter::new(Duration::from_millis(millis), person, seed);
            prop_assert_eq!(answer.base_s, millis.div_ceil(1_000).clamp(1, LONGEST_S));
            prop_assert!(answer.jittered_s >= answer.base_s && answer.jittered_s <= 2 * answer.base_s);
            prop_assert_eq!(answer, RetryAfter::new(Duration::from_millis(millis), person, seed));
        }
    }

    #[test]
    fn people_are_spread_over_all_seconds() {
        let mut counts = [0u32; 11];
        for person in 0..11_000 {
            let answer = RetryAfter::new(Duration::from_secs(10), mix(person), 42);
            counts[(answer.jittered_s - 10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (800..1_200).contains(&count)), "{counts:?}");
    }

    #[test]
    fn an_absurd_estimate_is_capped() {
        assert_eq!(RetryAfter::new(Duration::MAX, 1, 2).base_s, LONGEST_S);
    }
}

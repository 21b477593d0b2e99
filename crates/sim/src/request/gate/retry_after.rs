//! When a refused client is told to come back: the gateway's rule (its `retry_after.rs`), so that simulated people
//! wait as long as real ones.

use flashweir_core::Duration;

/// No estimate is told beyond half a minute, as in the gateway.
const LONGEST_S: u64 = 30;

/// The client's own second: the estimate rounded up, spread over [estimate, 2·estimate] by a hash of who asks.
pub(super) fn told_s(estimate: Duration, person_key: u64, seed: u64) -> u16 {
    let rounded_up = estimate.as_secs().saturating_add(u64::from(estimate.subsec_nanos() > 0));
    let base_s = rounded_up.clamp(1, LONGEST_S);
    let place = u128::from(mix(person_key ^ seed)) * u128::from(base_s + 1);
    // At most twice half a minute.
    (base_s + (place >> 64) as u64) as u16
}

/// The finaliser of SplitMix64: every input bit changes about half of the output's.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_different_seconds_within_the_estimate_and_twice_it() {
        let told: Vec<u16> =
            (0..1_000).map(|person| told_s(Duration::from_millis(9_001), mix(person), 42)).collect();
        assert_eq!((told.iter().min(), told.iter().max()), (Some(&10), Some(&20)));
        assert_eq!(told_s(Duration::MAX, 1, 2), told_s(Duration::from_secs(30), 1, 2));
    }
}

//! Divides one ceiling among the gates, so that the sum never exceeds it.

use alloc::vec::Vec;

/// Everything; shares are thousandths.
const WHOLE_MILLI: u32 = 1_000;
/// Memory of a share per tick: half of the last one stays, so one odd tick cannot starve a gate.
const MEMORY: f64 = 0.5;
/// Each gate keeps at least this part of an equal share: a gate that was idle can still admit at once.
const LEAST_OF_EQUAL: f64 = 0.1;

/// Shares in proportion to what each gate was `offered` in the last tick, smoothed with the `previous`
/// shares. Rounded down, so the sum is at most 1000.
pub(super) fn gate_shares_milli(offered: &[u64], previous: &[u32]) -> Vec<u32> {
    let total: u64 = offered.iter().sum();
    if total == 0 {
        return previous.to_vec();
    }
    let gates = offered.len() as f64;
    let least = LEAST_OF_EQUAL / gates;
    let share = |gate: usize| {
        let now = least + (1.0 - LEAST_OF_EQUAL) * offered[gate] as f64 / total as f64;
        let before = previous.get(gate).copied().unwrap_or(0);
        MEMORY * f64::from(before) / f64::from(WHOLE_MILLI) + (1.0 - MEMORY) * now
    };
    (0..offered.len()).map(|gate| (share(gate) * f64::from(WHOLE_MILLI)) as u32).collect()
}

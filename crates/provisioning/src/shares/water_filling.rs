//! Shares by demand.

use alloc::vec::Vec;

/// The part of the limit that is divided equally, at any demand: a gateway that was idle admits its first
/// requests at once.
const EQUAL_PART: f64 = 0.02;

/// Divides `limit` by demand; undefined and negative demands count as none. O(n).
///
/// Where the demand exceeds the limit each gateway gets the same part of its demand, so that a request has
/// the same chance at every gateway: a client's gateway is an accident. (To fill all gateways to the same
/// level would favour clients of a gateway that has few.) Where it does not, each gets its demand, and what
/// is left is divided equally: water fills the rest of the vessel.
///
/// ```
/// use flashweir_provisioning::shares::water_filling;
/// let shares = water_filling(100.0, &[150.0, 50.0]);
/// assert!((shares[0] - 74.5).abs() < 1e-9 && (shares[1] - 25.5).abs() < 1e-9);
/// assert_eq!(water_filling(100.0, &[20.0, 40.0]), [40.0, 60.0]);
/// ```
#[must_use]
pub fn water_filling(limit: f64, demands: &[f64]) -> Vec<f64> {
    let limit = if limit > 0.0 && limit.is_finite() { limit } else { 0.0 };
    let demands = || demands.iter().map(|&demand| if demand > 0.0 { demand.min(DEMAND_MAX) } else { 0.0 });
    let (count, total) = (demands().len() as f64, demands().sum::<f64>());
    if total <= limit {
        return demands().map(|demand| demand + (limit - total) / count).collect();
    }
    // Near the limit, what is left for all to share fades in: a demand that passes the limit makes no share
    // jump.
    let equal = limit * EQUAL_PART * ((total - limit) / (limit * EQUAL_PART)).min(1.0);
    demands().map(|demand| equal / count + (limit - equal) * demand / total).collect()
}

/// Beyond any limit; the sum of all gateways' stays finite.
const DEMAND_MAX: f64 = 1e12;

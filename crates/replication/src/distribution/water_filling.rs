//! Flexible load poured over exclusive load until the level is even.
//!
//! ```text
//! find L with Σ max(0, L·C − base) = flexible;    weight ∝ max(0, L·C − base)
//! ```
//!
//! `base` is the load of the documents that only this server hosts, `flexible` that of the others, both by
//! this redirector's counts. Dead-beat: with true counts the loads are even after one round. Reported loads
//! are left out on purpose: they contain what other redirectors send, and k redirectors that each fill the
//! whole gap overfill it k times. (After Dahlin, *Interpreting stale load information*, 2000, which fills
//! with reported loads.)

use super::ServerLoad;
use super::draw::{WEIGHT_ONE, weight_of};
use crate::servers::ServerIndex;
use alloc::vec::Vec;

/// Water-filling. `update` O(servers · log servers).
#[derive(Clone, Debug, Default)]
pub struct WaterFilling {
    weights: Vec<u32>,
}

impl WaterFilling {
    pub(super) fn add_server(&mut self) {
        self.weights.push(WEIGHT_ONE);
    }

    pub(super) fn update(&mut self, loads: &[ServerLoad], flexible_rps: f64) {
        let bases: Vec<(f64, f64)> = loads.iter().map(|it| (it.exclusive_rps, it.weight)).collect();
        let parts = fill(&bases, flexible_rps);
        let most = parts.iter().copied().fold(0.0, f64::max);
        for (weight, part) in self.weights.iter_mut().zip(&parts) {
            *weight = if most > 0.0 { weight_of(part / most) } else { WEIGHT_ONE };
        }
    }

    pub(super) fn weight(&self, server: ServerIndex) -> u32 {
        self.weights.get(usize::from(server)).copied().unwrap_or(0)
    }
}

/// Part of `amount` that each gets so that (base + part)/capacity is the same for all that get some, and
/// nowhere less than for them. Entries are base and capacity; a capacity of zero gets nothing. O(n · log n).
///
/// ```
/// use flashweir_replication::distribution::fill;
/// assert_eq!(fill(&[(100.0, 1.0), (0.0, 1.0)], 300.0), [100.0, 200.0]);
/// assert_eq!(fill(&[(100.0, 1.0), (0.0, 1.0)], 50.0), [0.0, 50.0]);
/// ```
#[must_use]
pub fn fill(bases: &[(f64, f64)], amount: f64) -> Vec<f64> {
    let mut order: Vec<(f64, f64)> = bases.iter().copied().filter(|it| it.1 > 0.0).collect();
    order.sort_unstable_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (mut base, mut capacity, mut level) = (0.0, 0.0, 0.0);
    for &(its_base, its_capacity) in &order {
        if capacity > 0.0 && level <= its_base / its_capacity {
            break;
        }
        base += its_base;
        capacity += its_capacity;
        level = (amount + base) / capacity;
    }
    bases
        .iter()
        .map(|&(base, capacity)| if capacity > 0.0 { (level * capacity - base).max(0.0) } else { 0.0 })
        .collect()
}

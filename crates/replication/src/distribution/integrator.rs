//! Weights that follow the deviation of each server from the mean, by a part of it in each round.
//!
//! ```text
//! w ← max(w·e^(−κ·(load − mean)/HW), 0.02), normalised
//! ```
//!
//! Why this and not ACDN's weights: those replace the weight by a function of the load, with a gain of l*/(HW
//! − l*) that grows without bound towards HW; here the weight keeps its value where the loads are equal.
//! Stable for κ·l*/HW < 1 with a report one interval old; with κ = 0.6 that holds for any load up to 1.6·HW.
//! Cold start: equal weights. Cost: `update` O(servers).

use super::ServerLoad;
use super::draw::{WEIGHT_ONE, weight_of};
use crate::SettingsError;
use crate::placement::Watermarks;
use crate::servers::ServerIndex;
use alloc::vec::Vec;

/// The least weight before normalisation, over the mean: a server at zero could never be found idle again.
const FLOOR: f64 = 0.02;

/// The multiplicative integrator (our repair, docs/algorithms/replication.md).
#[derive(Clone, Debug)]
pub struct Integrator {
    high_rps: f64,
    gain: f64,
    /// Their mean is one.
    values: Vec<f64>,
    weights: Vec<u32>,
}

impl Integrator {
    pub(super) fn new(watermarks: Watermarks, gain: f64) -> Result<Self, SettingsError> {
        if !(0.01..=1.0).contains(&gain) {
            return Err(SettingsError::new("gain of the integrator", "0.01 to 1"));
        }
        Ok(Self { high_rps: watermarks.high_rps, gain, values: Vec::new(), weights: Vec::new() })
    }

    pub(super) fn add_server(&mut self) {
        self.values.push(1.0);
        self.weights.push(WEIGHT_ONE);
    }

    pub(super) fn update(&mut self, loads: &[ServerLoad]) {
        let usable = || loads.iter().zip(0..self.values.len()).filter(|(it, _)| it.weight > 0.0);
        let count = usable().count();
        if count == 0 {
            return;
        }
        let mean = usable().map(|(it, _)| it.load_rps).sum::<f64>() / count as f64;
        let places: Vec<usize> = usable().map(|(_, place)| place).collect();
        for &place in &places {
            // A report of ten times HW must not take a weight out of the range of floats.
            let deviation = ((loads[place].load_rps - mean) / self.high_rps).clamp(-10.0, 10.0);
            self.values[place] = (self.values[place] * libm::exp(-self.gain * deviation)).max(FLOOR);
        }
        let sum: f64 = places.iter().map(|&place| self.values[place]).sum();
        for &place in &places {
            self.values[place] *= count as f64 / sum;
        }
        // Weights that are drawn are at most one; a mean of one fits with room for all servers but one at the
        // floor.
        let scale = self.values.iter().copied().fold(1.0, f64::max);
        for (weight, (value, load)) in self.weights.iter_mut().zip(self.values.iter().zip(loads)) {
            *weight = weight_of(value / scale * load.weight.min(100.0) / 100.0);
        }
    }

    pub(super) fn weight(&self, server: ServerIndex) -> u32 {
        self.weights.get(usize::from(server)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a deviation of the weights shrinks in each round and never changes its sign, at a fair load of
    /// 250 of 300. Method: the loop itself, reports an interval old; one uneven report first, for which the
    /// weights were not the reason.
    #[test]
    fn loads_become_even_without_overshoot() {
        let watermarks = Watermarks { high_rps: 300.0, low_rps: 200.0 };
        let mut integrator = Integrator::new(watermarks, 0.6).unwrap();
        (0..2).for_each(|_| integrator.add_server());
        let (mut load, mut before) = ([400.0, 100.0], 150.0);
        for _ in 0..10 {
            let loads = load.map(|load_rps| ServerLoad { load_rps, weight: 1.0, ..ServerLoad::default() });
            integrator.update(&loads);
            let weights = [0, 1].map(|server| f64::from(integrator.weight(server)));
            let first = 500.0 * weights[0] / (weights[0] + weights[1]);
            let deviation = 250.0 - first;
            assert!(deviation > 0.0 && deviation < 0.6 * before, "{deviation} after {before}");
            (load, before) = ([first, 500.0 - first], deviation);
        }
        assert!((load[0] - 250.0).abs() < 1.0, "{load:?}");
    }
}

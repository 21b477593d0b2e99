//! ACDN's weights from reported loads, as published: the policy with the herd.
//!
//! ```text
//! pass 1   w = 1 below LW, 0 above HW, (HW − load)/(HW − LW) between; all zero: all one
//! pass 2   by distance from the client's region; without regions the identity (Esser §4)
//! pass 3   over the hosts of the document, normalised to a sum of one
//! ```
//!
//! Source: Rabinovich, Xiao and Aggarwal, *Computing on the edge* (WCW 2004), as described by Esser, §2.3.
//! That the weight falls linearly is our reading of "depending on where the load falls between LW and HW".
//! The formula of pass 2 is not in the sources at hand, so it is left out.
//!
//! **The fault.** The reports are stale when they are used: a change of the weights by δ moves the next
//! report by −G·δ with G = l*/(HW − l*), l* the fair load. G > 1 between max(LW, HW/2) and HW, and the load
//! moves back and forth between the servers at full scale. The interval of the reports is not in G: faster
//! reports only move it faster. `memory` is the weakest repair: stable only for `1 − memory < 2/(1 + G)`,
//! which depends on the load.

use super::ServerLoad;
use super::draw::{WEIGHT_ONE, weight_of};
use crate::SettingsError;
use crate::placement::Watermarks;
use crate::servers::ServerIndex;
use alloc::vec::Vec;

/// The weights of ACDN's three passes. `update` O(servers), 12 bytes for each server.
#[derive(Clone, Debug)]
pub struct AcdnWeights {
    watermarks: Watermarks,
    memory: f64,
    averaged: Vec<f64>,
    weights: Vec<u32>,
}

impl AcdnWeights {
    pub(super) fn new(watermarks: Watermarks, memory: f64) -> Result<Self, SettingsError> {
        if !(0.0..1.0).contains(&memory) {
            return Err(SettingsError::new("memory of ACDN's weights", "0 to below 1"));
        }
        Ok(Self { watermarks, memory, averaged: Vec::new(), weights: Vec::new() })
    }

    pub(super) fn add_server(&mut self) {
        self.averaged.push(1.0);
        self.weights.push(WEIGHT_ONE);
    }

    pub(super) fn update(&mut self, loads: &[ServerLoad]) {
        let are_all_overloaded = loads.iter().all(|it| self.first_pass(it.load_rps) == 0.0);
        for (index, load) in loads.iter().enumerate().take(self.averaged.len()) {
            let new = if are_all_overloaded { 1.0 } else { self.first_pass(load.load_rps) };
            self.averaged[index] = self.memory * self.averaged[index] + (1.0 - self.memory) * new;
            self.weights[index] = weight_of(self.averaged[index]);
        }
    }

    pub(super) fn weight(&self, server: ServerIndex) -> u32 {
        self.weights.get(usize::from(server)).copied().unwrap_or(0)
    }

    fn first_pass(&self, load_rps: f64) -> f64 {
        let Watermarks { high_rps, low_rps } = self.watermarks;
        ((high_rps - load_rps) / (high_rps - low_rps)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(loads: &[f64], memory: f64) -> Vec<f64> {
        let watermarks = Watermarks { high_rps: 300.0, low_rps: 200.0 };
        let mut acdn = AcdnWeights::new(watermarks, memory).unwrap();
        loads.iter().for_each(|_| acdn.add_server());
        let loads = loads.iter().map(|&load_rps| ServerLoad { load_rps, ..ServerLoad::default() });
        acdn.update(&loads.collect::<Vec<_>>());
        (0..acdn.weights.len()).map(|it| f64::from(acdn.weight(it as u16)) / f64::from(WEIGHT_ONE)).collect()
    }

    #[test]
    fn weights_are_those_of_the_three_passes() {
        assert_eq!(weights(&[100.0, 225.0, 300.0], 0.0), [1.0, 0.75, 0.0]);
        assert_eq!(weights(&[300.0, 400.0], 0.0), [1.0, 1.0]);
        assert_eq!(weights(&[100.0, 400.0], 0.75), [1.0, 0.75]);
    }
}

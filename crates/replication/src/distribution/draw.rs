//! One of several servers by their weights.

use super::Candidates;
use crate::servers::ServerIndex;
use flashweir_core::Rng;

/// A weight of one. Shares are at most 100 times their unit of 2^10, so a weight times a share stays below
/// 2^39 and a sum over [`REPLICA_SERVERS`](flashweir_core::limits::REPLICA_SERVERS) below 2^47.
pub(super) const WEIGHT_ONE: u32 = 1 << 20;

/// A weight from 0 to 1 as an integer; above zero it stays above.
pub(super) fn weight_of(value: f64) -> u32 {
    if value > 0.0 { (value * f64::from(WEIGHT_ONE)).clamp(1.0, f64::from(WEIGHT_ONE)) as u32 } else { 0 }
}

impl Candidates<'_> {
    /// Draws a usable host with a probability in proportion to its weight; evenly where all weights are zero.
    pub(super) fn draw(&self, weight: impl Fn(ServerIndex) -> u32, rng: &mut Rng) -> Option<ServerIndex> {
        let total: u64 = self.usable().map(|(server, _)| u64::from(weight(server))).sum();
        let is_even = total == 0;
        let weight = |server| if is_even { 1 } else { u64::from(weight(server)) };
        let total = if is_even { self.usable().count() as u64 } else { total };
        let mut rest = rng.below(total);
        self.usable().map(|(server, _)| server).find(|&server| {
            let is_here = rest < weight(server);
            rest = rest.saturating_sub(weight(server));
            is_here
        })
    }

    /// The probabilities of [`draw`](Self::draw), host by host; zero for a host that is out.
    pub(super) fn probabilities(self, weight: impl Fn(ServerIndex) -> u32) -> impl Iterator<Item = f64> {
        let total: u64 = self.usable().map(|(server, _)| u64::from(weight(server))).sum();
        let count = self.usable().count();
        (0..self.hosts.len()).map(move |place| {
            let server = self.hosts[place];
            match (self.share(server), total) {
                (0, _) => 0.0,
                (_, 0) => 1.0 / count as f64,
                _ => f64::from(weight(server)) / total as f64,
            }
        })
    }
}

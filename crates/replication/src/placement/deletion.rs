//! Deletion of copies that are no longer needed.

use super::Watermarks;
use flashweir_core::{Duration, Instant};

/// Conditions on which copies are deleted (the paper's threshold D has no value in the sources; these are
/// ours).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeletionSettings {
    /// D as a part of LW: a document with less demand for each of its copies loses one; default 0.02 (4/s at
    /// LW = 200).
    pub demand_part: f64,
    /// Rounds in a row with so little demand; default 3.
    pub rounds: u32,
    /// The shortest life of a copy, default 60 s: longer than clients use an address or a redirect to it.
    pub lifetime_min: Duration,
}

impl Default for DeletionSettings {
    fn default() -> Self {
        Self { demand_part: 0.02, rounds: 3, lifetime_min: Duration::from_secs(60) }
    }
}

/// Rounds in a row in which a document had too little demand for its copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowDemand(u32);

impl LowDemand {
    /// Takes a round's demand for a document with `hosts` hosts and says whether it may lose the copy that
    /// was made at `created`. Never the last one.
    pub fn update(
        &mut self,
        now: Instant,
        rate_rps: f64,
        hosts: usize,
        created: Instant,
        watermarks: &Watermarks,
        settings: &DeletionSettings,
    ) -> bool {
        let is_low = hosts > 1 && rate_rps / (hosts as f64) < settings.demand_part * watermarks.low_rps;
        self.0 = if is_low { self.0.saturating_add(1) } else { 0 };
        self.0 >= settings.rounds && now.saturating_since(created) >= settings.lifetime_min
    }
}

//! Detection of flows that have more of the buffer than their share, by sampling it (BLACK: Chatranon,
//! Labrador and Banerjee, 2003; Purge §3.1).
//!
//! On each arrival that finds the queue above its target, one queued packet is sampled at random: a *hit* for
//! its flow. The *hit fraction* of a flow is the part of the buffer it had on average over two periods:
//!
//! > Ω ← (Hit + Ω·Ψ') / (Ψ' + Ψ), with Ψ samples in this period and Ψ' in the one before.
//!
//! The paper's eq. (2) divides by Ψ'·Ψ, which is no fraction; its words ("average buffer occupancy fraction")
//! ask for the sum. Eq. (3) lost a plus sign and a bracket in the same way.
//!
//! How BLACK replaces entries of its full table cannot be known from the paper; here it is Space-Saving with
//! halving each period. Failure modes, kept as published: **P-1**, one stray hit among few samples looks like
//! many times the fair share; **P-2**, fifty entries; **P-10**, nothing is sampled while the queue is below
//! its target.
//!
//! Cost: a scan of N keys; no allocation.

use flashweir_core::measure::SpaceSaving;

/// The paper's table of high-bandwidth flows ("HBF cache size 50").
pub(super) const PUBLISHED_ENTRIES: usize = 50;

/// Hit fractions of the flows that were sampled most.
#[derive(Clone, Debug)]
pub(super) struct Occupancy<const N: usize> {
    sampled: SpaceSaving<N>,
    /// Hits of this period.
    hits: [u32; N],
    /// Ω of the last period.
    fractions: [f64; N],
    /// Ψ of this period and of the last.
    samples: u32,
    samples_before: u32,
}

impl<const N: usize> Default for Occupancy<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Occupancy<N> {
    /// Nothing sampled yet.
    pub(super) fn new() -> Self {
        Self {
            sampled: SpaceSaving::default(),
            hits: [0; N],
            fractions: [0.0; N],
            samples: 0,
            samples_before: 0,
        }
    }

    /// A packet of `flow` was sampled in the queue.
    pub(super) fn hit(&mut self, flow: u64) {
        self.samples = self.samples.saturating_add(1);
        let Some((index, was_there)) = self.sampled.hit(flow, RANK_OF_A_HIT) else { return };
        if !was_there {
            self.hits[index] = 0;
            self.fractions[index] = 0.0;
        }
        self.hits[index] = self.hits[index].saturating_add(1);
    }

    /// Samples of this period (Ψ).
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// Computes the fractions of the period that ends. After two periods without samples they stay as they
    /// are.
    pub(super) fn end_period(&mut self) {
        let (before, now) = (f64::from(self.samples_before), f64::from(self.samples));
        if before + now > 0.0 {
            for (fraction, hits) in self.fractions.iter_mut().zip(&self.hits) {
                *fraction = (f64::from(*hits) + *fraction * before) / (before + now);
            }
        }
        self.hits = [0; N];
        self.samples_before = self.samples;
        self.samples = 0;
        self.sampled.scale(1 << 15);
    }

    /// The hit fraction of a flow (Ω), 0 to 1; 0 for one that is not in the table.
    pub(super) fn fraction(&self, flow: u64) -> f64 {
        self.sampled.position(flow).map_or(0.0, |index| self.fractions[index])
    }

    /// The sum of all hit fractions, at most 1.
    #[cfg(test)]
    pub(super) fn total(&self) -> f64 {
        self.sampled.iter().zip(&self.fractions).map(|(_, fraction)| fraction).sum()
    }
}

/// Ranks are integers and halve each period; with 256 for a hit a single one counts for eight periods.
const RANK_OF_A_HIT: u64 = 256;

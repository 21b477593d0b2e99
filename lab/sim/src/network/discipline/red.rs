//! Random early detection (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993), with the gentle option (Floyd,
//! 2000).
//!
//! The average queue `a` follows the queue with a small weight. Below the lower threshold nothing happens; up
//! to the upper one the probability rises linearly to its maximum, and from there to one at twice the
//! threshold. Drops are spread out: after `n` packets kept, the next is dropped with p / (1 − n·p).

use crate::network::NetworkError;
use crate::network::packet::Packet;
use flashweir_aqm::Fate;
use flashweir_core::{Instant, Rng};

/// Settings of RED. Queue lengths are in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Average queue below which nothing is dropped; packets.
    pub threshold_low: f64,
    /// Average queue at which the probability has reached its maximum; packets, above the lower threshold.
    pub threshold_high: f64,
    /// Probability at the upper threshold, above 0 and up to 1.
    pub probability_max: f64,
    /// Weight of one new sample in the average, above 0 and up to 1. The paper's 0.002 remembers 500 packets.
    pub weight: f64,
    /// Size of a usual packet, bytes: gives the number that could have left while the link was idle.
    pub packet_bytes: u16,
    /// True if packets of senders that understand marks are marked instead of dropped (below the end of the
    /// ramp).
    pub marks: bool,
}

impl Red {
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        let low_ok = self.threshold_low > 0.0 && self.threshold_low < self.threshold_high;
        NetworkError::unless(
            low_ok,
            "RED threshold_low",
            self.threshold_low,
            "above 0 and below threshold_high",
        )?;
        let high_ok = self.threshold_high.is_finite();
        NetworkError::unless(
            high_ok,
            "RED threshold_high",
            self.threshold_high,
            "a finite number of packets",
        )?;
        let probability_ok = self.probability_max > 0.0 && self.probability_max <= 1.0;
        NetworkError::unless(
            probability_ok,
            "RED probability_max",
            self.probability_max,
            "above 0, up to 1",
        )?;
        let weight_ok = self.weight > 0.0 && self.weight <= 1.0;
        NetworkError::unless(weight_ok, "RED weight", self.weight, "above 0, up to 1")?;
        NetworkError::unless(self.packet_bytes > 0, "RED packet_bytes", self.packet_bytes, "at least 1")
    }
}

#[derive(Debug)]
pub(in crate::network) struct RedState {
    settings: Red,
    packets_per_s: f64,
    average: f64,
    /// Packets kept since the last one dropped or marked; `None` while the average is below the lower
    /// threshold.
    kept: Option<u32>,
}

impl RedState {
    pub(super) fn new(settings: &Red, rate_bits_per_s: u64) -> Self {
        let packets_per_s = rate_bits_per_s as f64 / (8.0 * f64::from(settings.packet_bytes));
        Self { settings: *settings, packets_per_s, average: 0.0, kept: None }
    }

    pub(super) fn arrived(
        &mut self,
        now: Instant,
        waiting: usize,
        idle_since: Option<Instant>,
        packet: &Packet,
        rng: &mut Rng,
    ) -> Fate {
        if let Some(since) = idle_since {
            // The average falls as if small packets had left all the time (§4 of the paper). `libm`: same
            // bits everywhere.
            let left = now.saturating_since(since).as_secs_f64() * self.packets_per_s;
            self.average *= libm::pow(1.0 - self.settings.weight, left);
        }
        self.average += self.settings.weight * (waiting as f64 - self.average);
        let probability = self.probability();
        if probability <= 0.0 {
            self.kept = None;
            return Fate::Keep;
        }
        let kept = self.kept.unwrap_or(0);
        let spread = 1.0 - f64::from(kept) * probability;
        if spread > 0.0 && rng.unit_f64() >= probability / spread {
            self.kept = Some(kept.saturating_add(1));
            return Fate::Keep;
        }
        self.kept = Some(0);
        // Where everything is to go, marking would only let the queue overflow.
        let marks = self.settings.marks && packet.ecn.capable && probability < 1.0;
        if marks { Fate::Mark } else { Fate::Drop }
    }

    fn probability(&self) -> f64 {
        let Red { threshold_low: low, threshold_high: high, probability_max: max, .. } = self.settings;
        if self.average < low {
            0.0
        } else if self.average < high {
            max * (self.average - low) / (high - low)
        } else {
            (max + (1.0 - max) * (self.average - high) / high).min(1.0)
        }
    }
}

//! Purge as published (§3.1, eq. 3), errors included, to compare with.
//!
//! Each period: S = α·(b − b*) + X − c from its arrivals X and the capacity c, and for a flow with the hit
//! fraction Ω its measure d = max(0, (Ω·N − 1)·γ·S).
//!
//! | state | flows with d > 0 | others |
//! |---|---|---|
//! | b ≤ b* or S ≤ 0 | REM | REM |
//! | S > 0, X ≤ c | marked with 1 − φ^−d *instead of* 1 − φ^−p | REM |
//! | S > 0, X > c in this period and the one before | dropped with min(1, d) | REM |
//!
//! Values that the paper leaves open are chosen here in its favour: units are packets, X > c "persists" from
//! the second period on, and (**P-6**) the probability of a drop is d itself; with 1 − φ^−d a flow of 12
//! times its share would lose 1 % of its packets. Kept as published:
//!
//! * **P-1, P-2, P-10**: see [`occupancy`](super::occupancy). **P-3**: see [`Counter`].
//! * **P-5**: the "stronger" signal is weaker than REM's whenever d < p.
//! * **P-7**: d follows the units of S and the length of the period; nothing in it is a rate.
//! * **P-8**: S is the last period's. After a period of drops S < 0 and policing ends for a whole period, in which the flood is back.
//! * **P-9**: X counts what Purge itself drops, so the price stays high and the queue far below its target.

use super::occupancy::{Occupancy, PUBLISHED_ENTRIES};
use crate::network::NetworkError;
use flashweir_aqm::{Arrival, Fate, MinSketch, Rem, RemPrice};
use flashweir_core::{Duration, Instant, Rng};

/// Settings of Purge as published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSettings {
    /// The price. Its target must be above 0.
    pub rem: Rem,
    /// Period of hit fractions and the count of flows, at least 1 ms; the paper's Fig. 3 has a second.
    pub period: Duration,
    /// Counter of flows.
    pub counter: Counter,
}

/// Counter of flows of the published rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// MINCOUNT's estimator as published: far too high with fewer than 4000 flows (P-3).
    AsPublished,
    /// By maximum likelihood from the same sketch: the rule without this error.
    MaximumLikelihood,
}

impl PublishedSettings {
    /// Checks that all settings are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), NetworkError> {
        self.rem.check()?;
        let target = self.rem.target_packets;
        NetworkError::unless(target > 0.0, "Purge target_packets", target, "above 0")?;
        let (period_s, period_ok) = (self.period.as_secs_f64(), self.period >= Duration::from_millis(1));
        NetworkError::unless(period_ok, "Purge period", period_s, "at least 0.001 seconds")
    }
}

/// Purge as published, at one link.
#[derive(Clone, Debug)]
pub(super) struct PublishedPurge {
    settings: PublishedSettings,
    price: RemPrice,
    occupancy: Occupancy<PUBLISHED_ENTRIES>,
    sketch: MinSketch,
    next_period: Instant,
    /// Packets that the link sends in one period (c), and those that arrived in this one (X).
    capacity: f64,
    arrivals: u32,
    /// Of the last period.
    surplus: f64,
    active: f64,
    /// Periods in a row that ended with X > c.
    overloads: u32,
}

impl PublishedPurge {
    /// At a link of this rate. `settings` must pass [`PublishedSettings::check`].
    pub(super) fn new(settings: &PublishedSettings, rate_bits_per_s: u64) -> Self {
        let bits = 8.0 * f64::from(settings.rem.packet_bytes);
        Self {
            settings: *settings,
            price: RemPrice::new(&settings.rem, rate_bits_per_s),
            occupancy: Occupancy::new(),
            sketch: MinSketch::new(),
            next_period: Instant::ZERO + settings.period,
            capacity: rate_bits_per_s as f64 * settings.period.as_secs_f64() / bits,
            arrivals: 0,
            surplus: 0.0,
            active: 0.0,
            overloads: 0,
        }
    }

    /// Its estimate of the number of flows, of the last period.
    pub(super) fn active_flows(&self) -> f64 {
        self.active
    }

    /// Decides about a packet that finds `queue_packets` in the queue; `sample` is the flow of one of these,
    /// drawn at random, and is asked only where the queue is above its target.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        queue_packets: usize,
        packet: Arrival,
        rng: &mut Rng,
        sample: impl FnOnce(&mut Rng) -> Option<u64>,
    ) -> Fate {
        self.advance(now, queue_packets);
        // P-9: also what is dropped below.
        self.price.count_arrival();
        self.arrivals = self.arrivals.saturating_add(1);
        self.sketch.insert(packet.flow);
        let is_above_target = queue_packets as f64 > self.settings.rem.target_packets;
        if is_above_target && let Some(flow) = sample(rng) {
            self.occupancy.hit(flow);
        }
        let drops = is_above_target && self.overloads >= OVERLOADS_THAT_PERSIST;
        if drops && rng.unit_f64() < self.excess(packet.flow) {
            return Fate::Drop;
        }
        let is_markable = self.settings.rem.marks && packet.is_markable;
        if !is_markable && self.price.strikes(rng) { Fate::Drop } else { Fate::Keep }
    }

    /// Returns whether a packet of `packet`'s flow that is sent now, of a queue of `queue_packets` with
    /// itself, gets a mark.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        queue_packets: usize,
        packet: Arrival,
        rng: &mut Rng,
    ) -> bool {
        self.advance(now, queue_packets);
        if !(self.settings.rem.marks && packet.is_markable) {
            return false;
        }
        let is_above_target = queue_packets as f64 > self.settings.rem.target_packets;
        let marks_by_flow = is_above_target && self.overloads < OVERLOADS_THAT_PERSIST;
        let excess = if marks_by_flow { self.excess(packet.flow) } else { 0.0 };
        if excess > 0.0 {
            // P-5: instead of the price, not on top of it.
            let probability = 1.0 - libm::pow(self.settings.rem.phi, -excess);
            return rng.unit_f64() < probability;
        }
        self.price.strikes(rng)
    }

    /// The measure d of a flow by the last period's surplus; 0 for those that are to be left alone.
    fn excess(&self, flow: u64) -> f64 {
        if self.surplus <= 0.0 {
            return 0.0;
        }
        let over_share = self.occupancy.fraction(flow) * self.active - 1.0;
        (over_share * self.settings.rem.gamma * self.surplus).max(0.0)
    }

    fn advance(&mut self, now: Instant, queue_packets: usize) {
        self.price.advance(now, queue_packets);
        if now < self.next_period {
            return;
        }
        self.next_period = now + self.settings.period;
        self.active = match self.settings.counter {
            Counter::AsPublished => self.sketch.distinct_as_published(),
            Counter::MaximumLikelihood => self.sketch.distinct(),
        };
        self.sketch.clear();
        self.occupancy.end_period();
        let Rem { alpha, target_packets, .. } = self.settings.rem;
        let rate_surplus = f64::from(self.arrivals) - self.capacity;
        self.surplus = alpha * (queue_packets as f64 - target_packets) + rate_surplus;
        self.overloads = if rate_surplus > 0.0 { self.overloads.saturating_add(1) } else { 0 };
        self.arrivals = 0;
    }
}

/// The paper drops "if rate mismatch persists" and does not say how long; two periods are the fewest that may
/// be called so.
const OVERLOADS_THAT_PERSIST: u32 = 2;

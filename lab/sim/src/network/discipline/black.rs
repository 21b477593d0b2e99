//! A queue that polices as BLACK does (Chatranon, Labrador and Banerjee, ICC 2003), as far as that can be
//! known.
//!
//! Only the abstract of BLACK and what the paper on Purge says of it could be read. From these: while the
//! queue is above its target, packets of a flow with the hit fraction Ω are dropped with probability Ω·N − 1,
//! cut off at one; and N, the number of flows, is Ψ / matches, where a match is a sampled packet of the same
//! flow as the arriving one.
//!
//! That N is 1/Σ p_i², the number of flows only where all send alike: one flow with half of the packets makes
//! it four at most, however many others there are. So heavy flows hide each other.
//!
//! BLACK sits on RED. Here it sits on REM's marks, so that it differs from the other rules in the policing
//! alone.

use super::occupancy::{Occupancy, PUBLISHED_ENTRIES};
use flashweir_aqm::{Arrival, Fate, Rem, RemPrice};
use flashweir_core::{Duration, Instant, Rng};

/// BLACK's policing over REM's marks.
#[derive(Clone, Debug)]
pub(super) struct BlackLike {
    rem: Rem,
    price: RemPrice,
    period: Duration,
    next_period: Instant,
    occupancy: Occupancy<PUBLISHED_ENTRIES>,
    /// Samples of this period that were of the arriving packet's flow.
    matches: u32,
    active: f64,
}

impl BlackLike {
    /// At a link of this rate, with fractions computed each `period` (the paper's second). `rem` must pass
    /// [`Rem::check`].
    pub(super) fn new(rem: &Rem, period: Duration, rate_bits_per_s: u64) -> Self {
        Self {
            rem: *rem,
            price: RemPrice::new(rem, rate_bits_per_s),
            period,
            next_period: Instant::ZERO + period,
            occupancy: Occupancy::new(),
            matches: 0,
            active: 0.0,
        }
    }

    /// Its estimate of the number of flows, of the last period with samples.
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
        self.price.count_arrival();
        if queue_packets as f64 > self.rem.target_packets {
            if let Some(flow) = sample(rng) {
                self.occupancy.hit(flow);
                self.matches += u32::from(flow == packet.flow);
            }
            let excess = self.occupancy.fraction(packet.flow) * self.active - 1.0;
            if excess > 0.0 && rng.unit_f64() < excess {
                return Fate::Drop;
            }
        }
        let is_markable = self.rem.marks && packet.is_markable;
        if !is_markable && self.price.strikes(rng) { Fate::Drop } else { Fate::Keep }
    }

    /// Returns whether a packet that is sent now, of a queue of `queue_packets` with itself, gets a mark.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        queue_packets: usize,
        is_markable: bool,
        rng: &mut Rng,
    ) -> bool {
        self.advance(now, queue_packets);
        self.rem.marks && is_markable && self.price.strikes(rng)
    }

    fn advance(&mut self, now: Instant, queue_packets: usize) {
        self.price.advance(now, queue_packets);
        if now < self.next_period {
            return;
        }
        self.next_period = now + self.period;
        let samples = self.occupancy.samples();
        if samples > 0 {
            // Without a single match there are more flows than samples; it knows no more.
            self.active = f64::from(samples) / f64::from(self.matches.max(1));
        }
        self.matches = 0;
        self.occupancy.end_period();
    }
}

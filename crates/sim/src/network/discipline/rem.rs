//! Random exponential marking (Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001), in packets as in ns-2.
//!
//! A price follows the surplus: every period, p ← max(0, p + γ·(α·(b − b*) + x − c)) with the queue `b`, its target
//! `b*`, the arrivals `x` and the capacity `c` of the period. A packet is marked with probability 1 − φ^−p when it leaves;
//! a packet whose sender does not understand marks is dropped with the same probability when it arrives.
//! Marks of several links on a path add up in the exponent, so a sender can read the sum of prices.

use super::Fate;
use crate::network::NetworkError;
use crate::network::packet::Packet;
use flashweir_core::{Duration, Instant, Rng};

/// Settings of REM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rem {
    /// Step of the price for each packet of surplus (γ), above 0. Usual 0.001.
    pub gamma: f64,
    /// Weight of the queue against the rate (α), above 0. Usual 0.1.
    pub alpha: f64,
    /// Base of the marking probability (φ), above 1. Usual 1.001: a price of 693 marks every second packet.
    pub phi: f64,
    /// The queue to aim at (b*), packets, at least 0. Usual 20.
    pub target_packets: f64,
    /// Period of the price, at least 1 µs. Usual 2 ms.
    pub update: Duration,
    /// Size of a usual packet, bytes: turns the link's rate into packets of a period. Usual 1000.
    pub packet_bytes: u16,
    /// Whether packets of senders that understand marks are marked instead of dropped.
    pub marks: bool,
}

impl Default for Rem {
    fn default() -> Self {
        Self {
            gamma: 0.001,
            alpha: 0.1,
            phi: 1.001,
            target_packets: 20.0,
            update: Duration::from_millis(2),
            packet_bytes: 1_000,
            marks: true,
        }
    }
}

impl Rem {
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        NetworkError::unless(positive(self.gamma), "REM gamma", self.gamma, "above 0")?;
        NetworkError::unless(positive(self.alpha), "REM alpha", self.alpha, "above 0")?;
        let phi_ok = self.phi.is_finite() && self.phi > 1.0;
        NetworkError::unless(phi_ok, "REM phi", self.phi, "above 1")?;
        let target_ok = self.target_packets.is_finite() && self.target_packets >= 0.0;
        NetworkError::unless(target_ok, "REM target_packets", self.target_packets, "at least 0")?;
        let update_ok = self.update >= Duration::from_micros(1);
        NetworkError::unless(
            update_ok,
            "REM update",
            self.update.as_secs_f64(),
            "at least 0.000001 seconds",
        )?;
        NetworkError::unless(self.packet_bytes > 0, "REM packet_bytes", self.packet_bytes, "at least 1")
    }
}

/// Probability beyond which the price stops rising: what lies above could only be paid back late (anti wind-up).
const PROBABILITY_MAX: f64 = 0.99;

#[derive(Debug)]
pub(in crate::network) struct RemState {
    settings: Rem,
    /// Packets that the link sends in one period (c).
    capacity: f64,
    price_max: f64,
    price: f64,
    probability: f64,
    /// Packets that came in this period (x).
    arrivals: u32,
    next_update: Instant,
}

impl RemState {
    pub(super) fn new(settings: &Rem, rate_bits_per_s: u64) -> Self {
        let bits = 8.0 * f64::from(settings.packet_bytes);
        Self {
            settings: *settings,
            capacity: rate_bits_per_s as f64 * settings.update.as_secs_f64() / bits,
            price_max: libm::log(1.0 / (1.0 - PROBABILITY_MAX)) / libm::log(settings.phi),
            price: 0.0,
            probability: 0.0,
            arrivals: 0,
            next_update: Instant::ZERO + settings.update,
        }
    }

    pub(super) fn arrived(&mut self, now: Instant, waiting: usize, packet: &Packet, rng: &mut Rng) -> Fate {
        self.catch_up(now, waiting);
        self.arrivals = self.arrivals.saturating_add(1);
        let marked_later = self.settings.marks && packet.ecn.capable;
        if !marked_later && self.strikes(rng) { Fate::Drop } else { Fate::Keep }
    }

    pub(super) fn leaves_marked(
        &mut self,
        now: Instant,
        waiting: usize,
        packet: &Packet,
        rng: &mut Rng,
    ) -> bool {
        // Until it leaves, the packet itself was waiting too.
        self.catch_up(now, waiting + 1);
        self.settings.marks && packet.ecn.capable && self.strikes(rng)
    }

    fn strikes(&self, rng: &mut Rng) -> bool {
        self.probability > 0.0 && rng.unit_f64() < self.probability
    }

    /// Makes up for the periods that ended since this link was last touched: in between, its queue did not change, so
    /// this is exact and needs no events. Once the price is zero and nothing waits, the rest is skipped.
    fn catch_up(&mut self, now: Instant, waiting: usize) {
        if now < self.next_update {
            return;
        }
        let Rem { gamma, alpha, phi, target_packets, update, .. } = self.settings;
        while self.next_update <= now {
            let queue_surplus = alpha * (waiting as f64 - target_packets);
            let surplus = queue_surplus + f64::from(self.arrivals) - self.capacity;
            self.price = (self.price + gamma * surplus).clamp(0.0, self.price_max);
            self.arrivals = 0;
            self.next_update += update;
            if self.price == 0.0 && surplus <= 0.0 {
                let behind = now.saturating_since(self.next_update).as_nanos() / update.as_nanos();
                // Fits: `behind` periods lie before `now`, which itself fits 64 bits of nanoseconds.
                self.next_update += Duration::from_nanos((behind * update.as_nanos()) as u64);
            }
        }
        self.probability = 1.0 - libm::pow(phi, -self.price);
    }
}

//! Random exponential marking (Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001; Purge eq. 1).
//!
//! A price follows the surplus: every period, p ← max(0, p + γ·(α·(b − b*) + x − c)) with the queue `b`, its
//! target `b*`, the arrivals `x` and the capacity `c` of the period. A packet is marked with probability 1 −
//! φ^−p when it leaves; a packet whose sender does not understand marks is dropped with the same probability
//! when it arrives. Marks of several links on a path add up in the exponent, so a sender can read the sum of
//! prices.
//!
//! **Units.** The paper gives neither the unit of b, x and c nor the period. In packets of 1000 B and periods
//! of 2 ms, as in ns-2, the constants work: a price of 693 marks every second packet. In bytes, as the
//! paper's "250 KB" suggests, one period's surplus of 1 KB adds 1 to the price, and all gains are a thousand
//! times too high ([`SurplusUnit::Bytes`]). The paper's price has no upper bound either, so after a flood it
//! needs as long to fall as the flood lasted; ours stops at a probability of 0.99
//! ([`Rem::is_price_bounded`]).
//!
//! Cost: an addition for each packet, a power for each period. Recovery: the price of an idle link decays
//! to zero.

use crate::SettingError;
use flashweir_core::{Duration, Instant, Rng};

/// Settings of REM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rem {
    /// Step of the price for each unit of surplus (γ), above 0. Usual 0.001.
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
    /// True if packets of senders that understand marks are marked instead of dropped.
    pub marks: bool,
    /// Unit of the surplus. Usual packets.
    pub unit: SurplusUnit,
    /// True if the price stops where 99 % are marked; what lies above could only be paid back late. The paper
    /// has no bound.
    pub is_price_bounded: bool,
}

/// Unit of the price's surplus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurplusUnit {
    /// Packets, for which the constants were made.
    Packets,
    /// Bytes, as the paper's buffer sizes are given: gains larger by the size of a packet.
    Bytes,
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
            unit: SurplusUnit::Packets,
            is_price_bounded: true,
        }
    }
}

impl Rem {
    /// Checks that all settings are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), SettingError> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        SettingError::unless(positive(self.gamma), "REM gamma", self.gamma, "above 0")?;
        SettingError::unless(positive(self.alpha), "REM alpha", self.alpha, "above 0")?;
        let phi_ok = self.phi.is_finite() && self.phi > 1.0;
        SettingError::unless(phi_ok, "REM phi", self.phi, "above 1")?;
        let target_ok = self.target_packets.is_finite() && self.target_packets >= 0.0;
        SettingError::unless(target_ok, "REM target_packets", self.target_packets, "at least 0")?;
        let (update_s, update_ok) = (self.update.as_secs_f64(), self.update >= Duration::from_micros(1));
        SettingError::unless(update_ok, "REM update", update_s, "at least 0.000001 seconds")?;
        SettingError::unless(self.packet_bytes > 0, "REM packet_bytes", self.packet_bytes, "at least 1")
    }
}

/// Probability at which a bounded price stops rising.
const PROBABILITY_MAX: f64 = 0.99;
/// Periods that are caught up with one by one after a silence; those beyond are taken in one step, which
/// differs in the last digit alone.
const PERIODS_STEPPED_MAX: u32 = 1_024;

/// The price of one link.
///
/// ```
/// use flashweir_aqm::{Rem, RemPrice};
/// use flashweir_core::Instant;
/// let mut price = RemPrice::new(&Rem::default(), 10_000_000);
/// // Twice what the link carries (2.5 packets in 2 ms), for a second.
/// for ms in 0..1_000 {
///     price.advance(Instant::from_millis(ms), 20);
///     (0..5 * (ms % 2)).for_each(|_| price.count_arrival());
/// }
/// assert!((price.price() - 1.25).abs() < 0.01);
/// ```
#[derive(Clone, Debug)]
pub struct RemPrice {
    settings: Rem,
    /// Packets that the link sends in one period (c).
    capacity: f64,
    /// Step of the price for each packet of surplus.
    gain: f64,
    price_max: f64,
    price: f64,
    probability: f64,
    /// Packets that arrived in this period (x).
    arrivals: u32,
    next_update: Instant,
}

impl RemPrice {
    /// The price of an idle link of this rate, bits a second. `settings` must pass [`Rem::check`].
    #[must_use]
    pub fn new(settings: &Rem, rate_bits_per_s: u64) -> Self {
        let packet_bytes = f64::from(settings.packet_bytes);
        let gain = match settings.unit {
            SurplusUnit::Packets => settings.gamma,
            SurplusUnit::Bytes => settings.gamma * packet_bytes,
        };
        let price_max = libm::log(1.0 / (1.0 - PROBABILITY_MAX)) / libm::log(settings.phi);
        Self {
            settings: *settings,
            capacity: rate_bits_per_s as f64 * settings.update.as_secs_f64() / (8.0 * packet_bytes),
            gain,
            price_max: if settings.is_price_bounded { price_max } else { f64::MAX },
            price: 0.0,
            probability: 0.0,
            arrivals: 0,
            next_update: Instant::ZERO + settings.update,
        }
    }

    /// The price (p), at least 0.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.price
    }

    /// Probability that a packet is marked, from 0 and below 1 (it rounds to 1 where an unbounded price is
    /// beyond 36,000).
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Probability of a mark at a price that is higher by `surcharge`.
    #[must_use]
    pub fn probability_with(&self, surcharge: f64) -> f64 {
        1.0 - libm::pow(self.settings.phi, -(self.price + surcharge))
    }

    /// Counts a packet towards this period's arrivals. Call [`RemPrice::advance`] before.
    pub fn count_arrival(&mut self) {
        self.count_arrivals(1);
    }

    /// The same of several packets.
    pub fn count_arrivals(&mut self, packets: u32) {
        self.arrivals = self.arrivals.saturating_add(packets);
    }

    /// Draws whether one packet is marked or dropped.
    pub fn strikes(&self, rng: &mut Rng) -> bool {
        self.probability > 0.0 && rng.unit_f64() < self.probability
    }

    /// Makes up for the periods that ended until `now`, with `queue_packets` in the queue since the last
    /// call: between two packets a queue does not change, so this is exact and needs no timer. At most 1024
    /// steps.
    pub fn advance(&mut self, now: Instant, queue_packets: usize) {
        if now < self.next_update {
            return;
        }
        let Rem { alpha, phi, target_packets, update, .. } = self.settings;
        let queue_surplus = alpha * (queue_packets as f64 - target_packets);
        let mut steps = 0;
        while self.next_update <= now && steps < PERIODS_STEPPED_MAX {
            let surplus = queue_surplus + f64::from(self.arrivals) - self.capacity;
            self.price = (self.price + self.gain * surplus).clamp(0.0, self.price_max);
            self.arrivals = 0;
            self.next_update += update;
            steps += 1;
            if self.price == 0.0 && surplus <= 0.0 {
                break;
            }
        }
        if self.next_update <= now {
            self.skip(now, queue_surplus - self.capacity);
        }
        self.probability = 1.0 - libm::pow(phi, -self.price);
    }

    /// Takes all remaining periods without arrivals in one step.
    fn skip(&mut self, now: Instant, surplus: f64) {
        let update_ns = self.settings.update.as_nanos();
        let behind = now.saturating_since(self.next_update).as_nanos() / update_ns + 1;
        self.price = (self.price + self.gain * surplus * behind as f64).clamp(0.0, self.price_max);
        // Fits: one period less lies before `now`, which itself fits 64 bits of nanoseconds.
        self.next_update += Duration::from_nanos((behind * update_ns) as u64);
    }
}

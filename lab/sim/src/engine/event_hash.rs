//! The proof that two runs were the same run.

use flashweir_core::{Hasher64, Instant};

/// Folds every handled event into 64 bits: same seed, same settings, same code give the same value on every
/// run and machine, in debug and release. A different value shows that *something* happened differently,
/// however small.
///
/// About 10 ns for each event.
///
/// ```
/// use flashweir_core::Instant;
/// use flashweir_sim::engine::EventHash;
/// let (mut one, mut other) = (EventHash::new(), EventHash::new());
/// one.fold(Instant::ZERO, 1, 2);
/// other.fold(Instant::ZERO, 2, 1);
/// assert_ne!(one.value(), other.value());
/// ```
#[derive(Clone, Debug)]
pub struct EventHash {
    hasher: Hasher64,
    value: u64,
    events: u64,
}

impl EventHash {
    /// The hash of no events. The key is fixed: a simulation has no attacker, and runs must be comparable.
    #[must_use]
    pub fn new() -> Self {
        Self { hasher: Hasher64::new(0, 0), value: 0, events: 0 }
    }

    /// Adds one event: when it happened, what kind it was, and the numbers that tell it from others of its
    /// kind.
    pub fn fold(&mut self, now: Instant, kind: u8, payload: u64) {
        let mut bytes = [0; 25];
        bytes[..8].copy_from_slice(&self.value.to_le_bytes());
        bytes[8..16].copy_from_slice(&now.as_nanos().to_le_bytes());
        bytes[16..24].copy_from_slice(&payload.to_le_bytes());
        bytes[24] = kind;
        self.value = self.hasher.hash(&[&bytes]);
        self.events += 1;
    }

    /// The hash of all events so far, in their order.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Events folded so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }
}

impl Default for EventHash {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal, so that every machine and every build profile is held to the same value.
    #[test]
    fn the_hash_is_the_same_everywhere() {
        let mut hash = EventHash::new();
        for step in 0..100 {
            hash.fold(Instant::from_nanos(step * step), step as u8, !step);
        }
        assert_eq!((hash.value(), hash.events()), (13_550_481_692_712_326_622, 100));
    }
}

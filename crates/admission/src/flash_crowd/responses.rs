//! Counts responses by class and bucket between two drains, without allocating.
//!
//! Latencies are in a hash table of fixed size with linear probing, at most five eighths full; rates have a
//! counter for each bucket. Memory: about 120 kB. Cost of a response: one multiplication and a probe or two.
//! Reading and clearing take time for the cells in use only.

use super::sample::{Counted, LatencyCell, RateCell, UNCLASSED};
use alloc::{boxed::Box, vec, vec::Vec};
use flashweir_core::BitSet;
use flashweir_core::limits::{LATENCY_CELLS, LATENCY_CELLS_UNCLASSED, RATE_CELLS};
use flashweir_core::measure::log_buckets::{BUCKETS, bucket_of};

const _: () = assert!(BUCKETS == RATE_CELLS && BUCKETS == LATENCY_CELLS_UNCLASSED);
/// Places of the hash table, a power of two.
const SLOTS: usize = 8_192;
const SLOTS_LOG2: u32 = SLOTS.ilog2();
const _: () = assert!((LATENCY_CELLS + LATENCY_CELLS_UNCLASSED) * 8 <= SLOTS * 5);

/// Responses since the last drain.
#[derive(Debug)]
pub(super) struct Responses {
    latencies: Box<[Slot]>,
    /// Places in use, in the order in which they were taken.
    used: Vec<u16>,
    rates: Box<[Counted]>,
    /// Buckets of rates in use.
    rates_used: BitSet<{ RATE_CELLS.div_ceil(u64::BITS as usize) }>,
    unclassed: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// One more than the class times [`BUCKETS`] and the bucket; 0 while the place is free.
    key: u32,
    count: Counted,
}

impl Responses {
    pub(super) fn new() -> Self {
        Self {
            latencies: vec![Slot::default(); SLOTS].into_boxed_slice(),
            used: Vec::with_capacity(LATENCY_CELLS + LATENCY_CELLS_UNCLASSED),
            rates: vec![Counted::default(); RATE_CELLS].into_boxed_slice(),
            rates_used: BitSet::default(),
            unclassed: 0,
        }
    }

    pub(super) fn add_latency(&mut self, class: u16, latency_us: u64, is_evidence: bool) {
        let bucket = bucket_of(latency_us);
        let mut place = self.place_of(key_of(class, bucket));
        if self.latencies[place].key == 0 && self.used.len() >= LATENCY_CELLS {
            self.unclassed += 1;
            place = self.place_of(key_of(UNCLASSED, bucket));
        }
        let slot = &mut self.latencies[place];
        if slot.key == 0 {
            let class = if self.used.len() < LATENCY_CELLS { class } else { UNCLASSED };
            slot.key = key_of(class, bucket);
            self.used.push(place as u16);
        }
        slot.count.add_one(is_evidence);
    }

    pub(super) fn add_rate(&mut self, rate_bytes_per_s: f32, is_evidence: bool) {
        // The cast takes NaN and what is below zero to zero.
        let bucket = usize::from(bucket_of(rate_bytes_per_s as u64));
        self.rates[bucket].add_one(is_evidence);
        self.rates_used.insert(bucket);
    }

    /// The limit changed: none of what was counted until now says anything about it.
    pub(super) fn outdate(&mut self) {
        self.used.iter().for_each(|&place| self.latencies[usize::from(place)].count.outdate());
        self.rates_used.iter().for_each(|bucket| self.rates[bucket].outdate());
    }

    /// Takes the counts, each list in order, and the number of responses counted without their class.
    pub(super) fn drain(&mut self) -> (Vec<LatencyCell>, Vec<RateCell>, u64) {
        let latencies = &mut self.latencies;
        let mut cells: Vec<LatencyCell> = self
            .used
            .drain(..)
            .map(|place| core::mem::take(&mut latencies[usize::from(place)]).cell())
            .collect();
        cells.sort_unstable_by_key(|cell| (cell.class, cell.bucket));
        let rates = &mut self.rates;
        let rates = core::mem::take(&mut self.rates_used).iter().map(|bucket| {
            // RATE_CELLS is 960: the cast loses nothing.
            RateCell { bucket: bucket as u16, count: core::mem::take(&mut rates[bucket]) }
        });
        (cells, rates.collect(), core::mem::take(&mut self.unclassed))
    }

    /// Index of a key, or of the free place it would take: there is always a free place.
    fn place_of(&self, key: u32) -> usize {
        // Fibonacci hashing: the upper bits of the product are the well mixed ones.
        let mut place = (key.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOTS_LOG2)) as usize;
        while self.latencies[place].key != 0 && self.latencies[place].key != key {
            place = (place + 1) % SLOTS;
        }
        place
    }
}

impl Slot {
    fn cell(self) -> LatencyCell {
        let (class, bucket) = ((self.key - 1) / BUCKETS as u32, (self.key - 1) % BUCKETS as u32);
        LatencyCell { class: class as u16, bucket: bucket as u16, count: self.count }
    }
}

fn key_of(class: u16, bucket: u16) -> u32 {
    u32::from(class) * BUCKETS as u32 + u32::from(bucket) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;
    use flashweir_core::limits::URL_CLASSES;

    fn total(cells: &[LatencyCell]) -> u64 {
        cells.iter().map(|cell| cell.count.total()).sum()
    }

    #[test]
    fn responses_are_counted_by_class_and_bucket_and_forgotten_by_a_drain() {
        let mut responses = Responses::new();
        responses.add_latency(7, 40, true);
        responses.add_latency(3, 50, true);
        responses.add_latency(7, 40, false);
        responses.add_rate(60.9, true);
        responses.add_rate(f32::NAN, false);
        let (latencies, rates, unclassed) = responses.drain();
        let cell =
            |class, bucket, before, since| LatencyCell { class, bucket, count: Counted { before, since } };
        assert_eq!(latencies, [cell(3, 50, 0, 1), cell(7, 40, 1, 1)]);
        let of = |bucket, before, since| RateCell { bucket, count: Counted { before, since } };
        assert_eq!((rates, unclassed), (vec![of(0, 1, 0), of(60, 0, 1)], 0));
        assert_eq!(responses.drain(), (Vec::new(), Vec::new(), 0));
    }

    #[test]
    fn a_change_of_the_limit_makes_everything_before_it_no_evidence() {
        let mut responses = Responses::new();
        responses.add_latency(7, 40, true);
        responses.add_rate(5.0, true);
        responses.outdate();
        responses.add_latency(7, 40, true);
        let (latencies, rates, _) = responses.drain();
        assert_eq!(latencies[0].count, Counted { before: 1, since: 1 });
        assert_eq!(rates[0].count, Counted { before: 1, since: 0 });
    }

    /// Goal: however many and varied, no response is lost and the cells stay within their bound. Method:
    /// more classes and latencies than there are cells.
    #[test]
    fn responses_beyond_the_cells_are_counted_without_their_class() {
        let (mut responses, mut rng) = (Responses::new(), Rng::new(1));
        for _ in 0..200_000 {
            let class = rng.below(URL_CLASSES as u64) as u16;
            responses.add_latency(class, rng.below(u64::from(u32::MAX)), true);
        }
        let (latencies, _, unclassed) = responses.drain();
        assert_eq!(total(&latencies), 200_000);
        assert!(latencies.len() <= LATENCY_CELLS + LATENCY_CELLS_UNCLASSED, "{}", latencies.len());
        let without: Vec<_> = latencies.iter().copied().filter(|cell| cell.class == UNCLASSED).collect();
        assert!(unclassed > 0 && total(&without) == unclassed, "{unclassed}");
    }
}

//! The receiving half of an end: puts segments in order and decides when to acknowledge.

use super::{TcpSettings, Timer};
use flashweir_core::Instant;
use std::ops::Range;

#[derive(Debug)]
pub(in crate::network) struct Receiver {
    /// The first segment that is missing.
    next: u32,
    /// Segments beyond it, in order, not touching one another; no more than the sender's window can leave
    /// behind.
    beyond: Vec<Range<u32>>,
    /// Number of segments in all, once the last has been seen.
    total: Option<u32>,
    /// Segments in order that nothing has acknowledged yet.
    unacknowledged: u8,
    /// The data will be answered, some time: the acknowledgement of its last segment may wait for that, too.
    pub(in crate::network) will_answer: bool,
    /// A mark was seen and the sender has not said that it slowed down.
    pub(super) echo: bool,
    pub(in crate::network) delay: Timer,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            beyond: Vec::new(),
            total: None,
            unacknowledged: 0,
            will_answer: false,
            echo: false,
            delay: Timer::new(),
        }
    }

    pub(in crate::network) fn next(&self) -> u32 {
        self.next
    }

    /// Returns true if everything the other end has to say has arrived.
    pub(in crate::network) fn is_complete(&self) -> bool {
        self.total == Some(self.next)
    }

    /// Takes a segment; whether it must be acknowledged at once (RFC 5681 §4.2) rather than within the delay.
    pub(super) fn accept(&mut self, now: Instant, sequence: u32, last: bool, settings: &TcpSettings) -> bool {
        if last {
            self.total = Some(sequence + 1);
        }
        if sequence != self.next {
            if sequence > self.next {
                self.keep(sequence);
            }
            return true;
        }
        self.next += 1;
        let filled_a_gap = !self.beyond.is_empty();
        if self.beyond.first().is_some_and(|range| range.start == self.next) {
            self.next = self.beyond.remove(0).end;
        }
        self.unacknowledged += 1;
        let may_wait = self.will_answer || !self.is_complete();
        match settings.acknowledgement_delay {
            Some(delay) if self.unacknowledged < 2 && !filled_a_gap && may_wait => {
                self.delay.set(now + delay);
                false
            }
            _ => true,
        }
    }

    /// Everything received has been acknowledged.
    pub(super) fn acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.delay.clear();
    }

    fn keep(&mut self, sequence: u32) {
        let place = self.beyond.partition_point(|range| range.end < sequence);
        match self.beyond.get_mut(place) {
            Some(range) if range.contains(&sequence) => {}
            Some(range) if range.end == sequence => {
                range.end += 1;
                self.join(place);
            }
            Some(range) if range.start == sequence + 1 => range.start = sequence,
            _ => self.beyond.insert(place, sequence..sequence + 1),
        }
    }

    fn join(&mut self, place: usize) {
        if self.beyond.get(place + 1).is_some_and(|after| after.start == self.beyond[place].end) {
            self.beyond[place].end = self.beyond.remove(place + 1).end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::{Duration, Rng};

    #[test]
    fn acknowledges_every_second_segment_and_gaps_at_once() {
        let settings = TcpSettings::of_2003();
        let mut receiver = Receiver::new();
        let now = Instant::from_millis(5);
        assert!(!receiver.accept(now, 0, false, &settings));
        assert_eq!(receiver.delay.unscheduled(), Some(now + Duration::from_millis(200)));
        assert!(receiver.accept(now, 1, false, &settings));
        receiver.acknowledged();
        assert!(!receiver.delay.is_set());
        assert!(receiver.accept(now, 3, false, &settings));
        assert_eq!(receiver.next(), 2);
        assert!(receiver.accept(now, 2, false, &settings));
        assert_eq!(receiver.next(), 4);
        receiver.acknowledged();
        assert!(receiver.accept(now, 4, true, &settings), "the last segment is acknowledged at once");
        assert!(receiver.is_complete());
    }

    /// Goal: any order, with repetitions, ends complete. Method: compare with a set after every segment.
    #[test]
    fn puts_any_order_together() {
        let settings = TcpSettings::of_2003();
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut receiver = Receiver::new();
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 40 {
                let sequence = rng.below(40) as u32;
                receiver.accept(Instant::ZERO, sequence, sequence == 39, &settings);
                seen.insert(sequence);
                receiver.acknowledged();
                let missing = (0..40).find(|sequence| !seen.contains(sequence)).unwrap_or(40);
                assert_eq!(receiver.next(), missing, "seed {seed}");
                assert!(receiver.beyond.windows(2).all(|pair| pair[0].end < pair[1].start), "seed {seed}");
                let beyond: u32 = receiver.beyond.iter().map(|range| range.end - range.start).sum();
                assert_eq!(missing + beyond, seen.len() as u32, "seed {seed}");
            }
            assert!(receiver.is_complete());
        }
    }
}

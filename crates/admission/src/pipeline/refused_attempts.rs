//! Folds a person's retries into one attempt: *unique offered*.
//!
//! A refused person comes back, and a crowd of refused people would look ever larger to NEWS's condition (2).
//! So each refusal is remembered for 64 s under a hash of who asked for what; an arrival found here is a
//! retry and does not count as unique. People behind one address with the same browser asking for the same
//! page are one person to this table: it undercounts them while they are being refused, which can only make
//! the detector slower to raise a second alarm, never eager. The ceiling's release therefore looks at
//! *offered*.
//!
//! One table for all workers, since a retry arrives on any of them: words of 44 bits of the hash and 20 bits
//! of time, relaxed atomics, two places per key, the older is replaced. A lost race loses one memory of one
//! refusal.
//! Cost: two loads, or one store; 512 KiB in all; wrong recognition of a stranger: 2 · 2^-44 each.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use flashweir_core::{Duration, Instant, limits::REFUSED_ATTEMPTS};

/// Time for which a refusal is remembered: NEWS's flow timeout, and beyond every `Retry-After` we send.
const REMEMBERED_FOR: Duration = Duration::from_secs(64);

const SECONDS_BITS: u32 = 20;
const SECONDS_MASK: u64 = (1 << SECONDS_BITS) - 1;
const _: () = assert!(REFUSED_ATTEMPTS.is_power_of_two());

/// Refusals of the last 64 seconds, shared by all gates of a process.
#[derive(Debug)]
pub struct RefusedAttempts {
    words: Box<[AtomicU64]>,
}

impl Default for RefusedAttempts {
    fn default() -> Self {
        Self { words: (0..REFUSED_ATTEMPTS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl RefusedAttempts {
    /// Records the refusal of `person`. True when it displaces another one that would still be recognised.
    pub fn remember(&self, now: Instant, person: u64) -> bool {
        let [first, second] = self.places(person);
        let word = tag(person) | stamp(now);
        let (in_first, in_second) = (first.load(Relaxed), second.load(Relaxed));
        let keeps_first = in_first & !SECONDS_MASK == tag(person)
            || in_second & !SECONDS_MASK != tag(person) && age_s(now, in_first) >= age_s(now, in_second);
        let (place, old) = if keeps_first { (first, in_first) } else { (second, in_second) };
        place.store(word, Relaxed);
        old & !SECONDS_MASK != tag(person) && age_s(now, old) <= REMEMBERED_FOR.as_secs()
    }

    /// Returns true if `person` was refused within the last 64 seconds.
    #[must_use]
    pub fn is_retry(&self, now: Instant, person: u64) -> bool {
        self.places(person).iter().any(|place| {
            let word = place.load(Relaxed);
            word & !SECONDS_MASK == tag(person) && age_s(now, word) <= REMEMBERED_FOR.as_secs()
        })
    }

    /// Forgets a refused `person` who was let in at last: the attempt is over, and the next one is a new one.
    pub fn forget(&self, person: u64) {
        for place in self.places(person) {
            if place.load(Relaxed) & !SECONDS_MASK == tag(person) {
                place.store(0, Relaxed);
            }
        }
    }

    fn places(&self, person: u64) -> [&AtomicU64; 2] {
        let place = (person as usize) & (REFUSED_ATTEMPTS - 1);
        [&self.words[place], &self.words[place ^ 1]]
    }
}

fn tag(person: u64) -> u64 {
    person & !SECONDS_MASK
}

/// Seconds of `now`, never zero: zero marks a place never used.
fn stamp(now: Instant) -> u64 {
    (now.as_nanos() / 1_000_000_000 + 1) & SECONDS_MASK
}

/// Seconds since the word was written, modulo twelve days; an unused place is the oldest of all.
fn age_s(now: Instant, word: u64) -> u64 {
    if word == 0 { u64::MAX } else { stamp(now).wrapping_sub(word & SECONDS_MASK) & SECONDS_MASK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_person_is_known_for_64_seconds_and_a_stranger_never() {
        let table = RefusedAttempts::default();
        let person = 0xABCD_EF01_2345_6789;
        assert!(!table.is_retry(Instant::ZERO, person));
        table.remember(Instant::ZERO, person);
        assert!(table.is_retry(Instant::from_secs(64), person));
        assert!(!table.is_retry(Instant::from_secs(66), person));
        assert!(!table.is_retry(Instant::ZERO, person ^ (1 << 63)));
        table.forget(person ^ (1 << 63));
        assert!(table.is_retry(Instant::ZERO, person));
        table.forget(person);
        assert!(!table.is_retry(Instant::ZERO, person));
    }

    #[test]
    fn two_people_share_a_pair_of_places_and_the_third_replaces_the_older() {
        let table = RefusedAttempts::default();
        let person = |n: u64| (n << 40) | 6;
        let remember = |at_s, number| table.remember(Instant::from_secs(at_s), person(number));
        let replaced = [remember(1, 1), remember(2, 2), remember(2, 2), remember(3, 3)];
        assert_eq!(replaced, [false, false, false, true], "only the third has no place of its own");
        let now = Instant::from_secs(4);
        assert_eq!([1, 2, 3].map(|n| table.is_retry(now, person(n))), [false, true, true]);
    }
}

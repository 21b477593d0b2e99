//! Integer token bucket (NEWS §6.3 and the prototype's micro-tokens).
//!
//! Decides whether one more event fits under a rate. Refill is lazy, on arrival, and exact: tokens are held in
//! units of 10⁻¹² token because nanoseconds times thousandths of a token per second *is* that unit, so neither
//! a division nor a remainder is ever needed. (The paper scales by 10⁶ with microseconds and whole rates; the
//! idea is the same, the finer unit makes fractional rates exact.)
//!
//! Invariants: `0 ≤ tokens ≤ capacity`; over any interval t at most `burst + rate·t` is admitted; a clock that
//! steps back adds nothing; a new rate settles what the old one earned first. Cost: two multiplications and
//! two comparisons; 40 bytes. The BPF gate is a transliteration of this file.

use flashweir_core::{Instant, Rate};

/// Units of one whole token.
const TOKEN: u64 = 1_000_000_000_000;
/// The largest burst: keeps `tokens + refill` below 2^64 for every rate.
const BURST_MAX: u64 = 1_000_000;
// A refill is clamped to one full bucket, whose product with the rate exceeds the capacity by less than one
// nanosecond's worth: even both together fit.
const _: () =
    assert!(2 * BURST_MAX as u128 * TOKEN as u128 + (Rate::MAX.as_milli() as u128) < u64::MAX as u128);

/// A rate with a burst.
///
/// ```
/// use flashweir_admission::token_bucket::TokenBucket;
/// use flashweir_core::{Instant, Rate};
/// let mut bucket = TokenBucket::full(Instant::ZERO, Rate::from_per_second(2.0), 1);
/// assert!(bucket.admit(Instant::ZERO));
/// assert!(!bucket.admit(Instant::from_millis(499)));
/// assert!(bucket.admit(Instant::from_millis(500)));
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    tokens: u64,
    capacity: u64,
    rate_milli: u64,
    /// After this long an empty bucket is full again: the clamp that keeps refill from overflowing.
    full_after_nanos: u64,
    last: Instant,
}

impl TokenBucket {
    /// A bucket with all its `burst` tokens (at least one, at most a million).
    #[must_use]
    pub fn full(now: Instant, rate: Rate, burst: u64) -> Self {
        let mut bucket = Self::empty(now, rate, burst);
        bucket.tokens = bucket.capacity;
        bucket
    }

    /// A bucket with no tokens yet: what an alarm needs, since the crowd has just spent any burst there was.
    #[must_use]
    pub fn empty(now: Instant, rate: Rate, burst: u64) -> Self {
        let mut bucket = Self { tokens: 0, capacity: TOKEN, rate_milli: 0, full_after_nanos: 0, last: now };
        bucket.set_rate(now, rate, burst);
        bucket
    }

    /// Changes rate and burst from `now` on; what was earned until then was earned at the old rate.
    pub fn set_rate(&mut self, now: Instant, rate: Rate, burst: u64) {
        self.refill(now);
        self.capacity = burst.clamp(1, BURST_MAX) * TOKEN;
        self.tokens = self.tokens.min(self.capacity);
        self.rate_milli = rate.as_milli();
        self.full_after_nanos =
            if self.rate_milli == 0 { 0 } else { self.capacity.div_ceil(self.rate_milli) };
    }

    /// Takes one token if there is one.
    #[must_use]
    pub fn admit(&mut self, now: Instant) -> bool {
        self.refill(now);
        let admitted = self.tokens >= TOKEN;
        if admitted {
            self.tokens -= TOKEN;
        }
        admitted
    }

    /// Gives back a token that [`admit`](Self::admit) took for something that then did not happen.
    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + TOKEN).min(self.capacity);
    }

    /// Whole tokens in the bucket as of the last call.
    #[must_use]
    pub fn whole_tokens(&self) -> u64 {
        self.tokens / TOKEN
    }

    fn refill(&mut self, now: Instant) {
        let elapsed_nanos = now.as_nanos().saturating_sub(self.last.as_nanos()).min(self.full_after_nanos);
        self.tokens = (self.tokens + elapsed_nanos * self.rate_milli).min(self.capacity);
        // Never back: a clock that steps back and forth must not be paid twice for the same time.
        self.last = self.last.max(now);
    }
}

//! Integer token bucket (NEWS §6.3 and the prototype's micro-tokens).
//!
//! Decides whether one more event fits under a rate. Refill is lazy, on arrival, and exact: tokens are held
//! in units of 10⁻¹² token because nanoseconds times thousandths of a token per second *is* that unit, so
//! neither a division nor a remainder is ever needed. (The paper scales by 10⁶ with microseconds and whole
//! rates; the idea is the same, the finer unit makes fractional rates exact.)
//!
//! Some may take tokens that are not there yet, on a credit that all share: the important, so that the others
//! cannot leave them nothing. Refill pays this debt before an event without credit is admitted again.
//!
//! Invariants: `−credit ≤ tokens ≤ capacity`; over any interval t at most `burst + rate·t` is admitted, and
//! on credit as much again as the credit; a clock that steps back adds nothing; a new rate settles what the
//! old one earned first. Cost: two multiplications and two comparisons; 40 bytes. The BPF gate is a
//! transliteration of this file without the credit, and of `tiered_bucket`.

use flashweir_core::{Duration, Instant, Rate};

/// Units of one whole token.
const TOKEN: i64 = 1_000_000_000_000;
/// The largest burst, and the largest credit: keeps `tokens + refill` below 2^63 for every rate.
pub(crate) const BURST_MAX: u64 = 1_000_000;
// A refill is clamped to one full bucket and what it may owe, whose product with the rate exceeds that by
// less than one nanosecond's worth: even together with a full bucket it fits.
const _: () =
    assert!(3 * BURST_MAX as u128 * TOKEN as u128 + (Rate::MAX.as_milli() as u128) < i64::MAX as u128);

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
    /// Below zero: so much is owed.
    tokens: i64,
    capacity: i64,
    rate_milli: u64,
    /// After this long a bucket that owes all it can is full again: the clamp that keeps refill from
    /// overflowing.
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
        self.capacity = burst.clamp(1, BURST_MAX) as i64 * TOKEN;
        self.tokens = self.tokens.min(self.capacity);
        self.rate_milli = rate.as_milli();
        let most = self.capacity as u64 + BURST_MAX * TOKEN as u64;
        self.full_after_nanos = if self.rate_milli == 0 { 0 } else { most.div_ceil(self.rate_milli) };
    }

    /// Takes one token if there is one.
    #[must_use]
    pub fn admit(&mut self, now: Instant) -> bool {
        self.admit_on_credit(now, 0)
    }

    /// Takes one token if there is one, or if no more than `credit` tokens (a million at most) are owed then.
    #[must_use]
    pub fn admit_on_credit(&mut self, now: Instant, credit: u64) -> bool {
        let admitted = self.has_token(now, credit);
        if admitted {
            self.take();
        }
        admitted
    }

    /// Takes one token if at least `reserve` tokens (a million at most) are left then: the reserve is for
    /// others.
    #[must_use]
    pub fn admit_above(&mut self, now: Instant, reserve: u64) -> bool {
        let admitted = self.has_token_above(now, reserve);
        if admitted {
            self.take();
        }
        admitted
    }

    /// Returns true if at least `reserve` tokens (a million at most) would be left without one. Takes none.
    #[must_use]
    pub fn has_token_above(&mut self, now: Instant, reserve: u64) -> bool {
        self.is_left(now, reserve.min(BURST_MAX) as i64 * TOKEN)
    }

    /// Returns true if there is a token, or would be no more than `credit` tokens (a million at most) owed
    /// without it. Takes none.
    #[must_use]
    pub fn has_token(&mut self, now: Instant, credit: u64) -> bool {
        self.is_left(now, -(credit.min(BURST_MAX) as i64 * TOKEN))
    }

    /// Takes the token that [`has_token`](Self::has_token) found.
    pub fn take(&mut self) {
        self.tokens -= TOKEN;
    }

    /// Time of the next token, if none is taken before: now, if there is one; never, at a rate of 0. One
    /// division.
    #[must_use]
    pub fn ready_at(&mut self, now: Instant) -> Instant {
        self.refill(now);
        match (TOKEN - self.tokens).max(0) as u64 {
            0 => now,
            missing if self.rate_milli > 0 => {
                self.last.max(now) + Duration::from_nanos(missing.div_ceil(self.rate_milli))
            }
            _ => Instant::MAX,
        }
    }

    /// The time between two tokens; the longest there is at a rate of 0. One division.
    #[must_use]
    pub fn interval(&self) -> Duration {
        (TOKEN as u64).checked_div(self.rate_milli).map_or(Duration::MAX, Duration::from_nanos)
    }

    /// Whole tokens in the bucket as of the last call; none while some are owed.
    #[must_use]
    pub fn whole_tokens(&self) -> u64 {
        (self.tokens.max(0) / TOKEN) as u64
    }

    /// Whole tokens that fit.
    #[must_use]
    pub fn burst(&self) -> u64 {
        (self.capacity / TOKEN) as u64
    }

    /// Returns true if at least `floor` units would be left without one token.
    fn is_left(&mut self, now: Instant, floor: i64) -> bool {
        self.refill(now);
        self.tokens - TOKEN >= floor
    }

    fn refill(&mut self, now: Instant) {
        let elapsed_nanos = now.as_nanos().saturating_sub(self.last.as_nanos()).min(self.full_after_nanos);
        self.tokens = (self.tokens + (elapsed_nanos * self.rate_milli) as i64).min(self.capacity);
        // Never back: a clock that steps back and forth must not be paid twice for the same time.
        self.last = self.last.max(now);
    }
}

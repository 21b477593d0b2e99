//! The senders to this node, their rates, and the share of the advertised rate that each sender has.
//!
//! A sender is known from its first request on and forgotten after [`SILENT_AFTER`]. Its demand is what it
//! sends; while it uses most of its share it may want any amount, so its demand is unknown and it takes part
//! in the division with its weight alone. A sender that leaves part of its share counts with what it sends,
//! and the others get the rest. Its message names a larger share than that, so that it may rise before the
//! next division: what such senders do not send is not kept idle for them.
//!
//! **A sender that does not cooperate** sends more than its share. The excess is marked
//! ([`Judged::is_over_share`]), for the ladder to discard before any cooperating sender's requests; requests
//! within the share are treated like those of others. The test is a leaky bucket (ITU-T I.371) at
//! [`SHARE_TOLERANCE`] times the share, with what a sender may send before it hears of a smaller share.
//!
//! Memory: [`limits::FEEDBACK_SENDERS`] senders of about 200 bytes. When all are taken, a further sender
//! shares the last entry with all others of its kind: it is judged and limited with them. Cost: one hash
//! probe for a request; O(n log n) for a division.

use crate::division::{Claim, divide};
use crate::field::Field;
use alloc::vec::Vec;
use flashweir_core::hash::mix;
use flashweir_core::{Duration, Instant, Rate, limits};

/// A sender that was silent for this long takes no part in the division.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// A sender that uses its share is silent for this many of its requests with a probability of e⁻⁵, if it
/// sends by chance.
const SILENT_REQUESTS: f64 = 5.0;
/// The time over which a sender's rate is averaged.
const AVERAGED_OVER_S: f64 = 1.0;
/// A sender that uses this part of its share is limited by it.
const BINDS_FROM: f64 = 0.8;
/// A sender counts as limited for this long after it last was, so that it has time to use a larger share.
const LIMITED_FOR: Duration = Duration::from_secs(2);
/// Grant of a sender that is not limited, relative to the rate it sends: it may rise by half before the next
/// division. With [`BINDS_FROM`] at 0.8 a steady sender does not count as limited by it.
const HEADROOM: f64 = 1.5;
const _: () = assert!(1.0 / HEADROOM < BINDS_FROM);
/// Beyond that: a sender of one request a second varies by more than half of that.
const SLACK_RPS: f64 = 2.0;
/// Factor by which a sender may be above its share: clocks and rounding differ.
const SHARE_TOLERANCE: f64 = 1.05;
/// Allowance of a sender beyond its share before it has heard of it, as time at that share.
const LATE_BY: Duration = Duration::from_millis(500);
/// The same as requests, for senders with small shares: a burst of two from each of a sender's workers.
const LATE_REQUESTS: f64 = 8.0;

/// Names a sender until it is forgotten, and none afterwards; to be kept with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSlot {
    /// Index of the sender at that time: it moves when others are forgotten.
    at: u32,
    key: u64,
}

/// A request's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The sender.
    pub slot: SenderSlot,
    /// True if the request is beyond what its sender was given.
    pub is_over_share: bool,
}

/// The senders of one service.
#[derive(Debug)]
pub struct Senders {
    senders: Vec<Sender>,
    /// Places in `senders`, by hash; open addressing, rebuilt when senders are forgotten.
    index: Vec<u32>,
    bound: usize,
    divided_at: Instant,
    /// The share of the last division a sender that comes after it; none while there is no limit.
    newcomer_share: Option<Rate>,
    claims: Vec<Claim>,
    shares: Vec<Rate>,
    order: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    key: u64,
    weight: u32,
    heard: Instant,
    /// Limited requests since the last division.
    count: u32,
    used_rps: f64,
    limited_at: Option<Instant>,
    share: Option<Rate>,
    /// Requests that are ahead of the share, and as of when.
    ahead: f64,
    ahead_at: Instant,
    /// The field signed last, and the sequence number in it.
    pub(crate) signed: Option<(u32, Field)>,
}

const EMPTY: u32 = u32::MAX;

impl Senders {
    /// At most [`limits::FEEDBACK_SENDERS`] senders.
    #[must_use]
    pub fn new() -> Self {
        Self::with_bound(limits::FEEDBACK_SENDERS)
    }

    /// At most `bound` senders, at least one.
    #[must_use]
    pub fn with_bound(bound: usize) -> Self {
        let bound = bound.clamp(1, limits::FEEDBACK_SENDERS);
        Self {
            senders: Vec::new(),
            index: alloc::vec![EMPTY; (2 * bound).next_power_of_two()],
            bound,
            divided_at: Instant::ZERO,
            newcomer_share: None,
            claims: Vec::new(),
            shares: Vec::new(),
            order: Vec::new(),
        }
    }

    /// A request of a sender arrives. `key` is a keyed hash of what identifies the sender; `is_limited` says
    /// whether the request's rank is one of those that are limited, or would be.
    pub fn hear(&mut self, now: Instant, key: u64, weight: u32, is_limited: bool) -> Judged {
        let slot = self.slot(now, key, weight);
        let sender = &mut self.senders[slot.at as usize];
        sender.heard = now;
        let mut is_over_share = false;
        if is_limited {
            sender.count = sender.count.saturating_add(1);
            is_over_share = !sender.conforms(now);
        }
        Judged { slot, is_over_share }
    }

    /// Divides `total`, or none, among those who were heard lately. O(n log n).
    pub fn divide(&mut self, now: Instant, total: Option<Rate>) {
        let span_s = now.saturating_since(self.divided_at).as_secs_f64();
        self.divided_at = now;
        self.forget_silent(now);
        if span_s > 0.0 {
            let kept = libm::exp(-span_s / AVERAGED_OVER_S);
            self.senders.iter_mut().for_each(|sender| sender.measure(now, span_s, kept));
        }
        self.newcomer_share = None;
        let Some(total) = total else {
            return self.senders.iter_mut().for_each(|sender| sender.share = None);
        };
        self.claims.clear();
        self.claims.extend(self.senders.iter().map(|sender| sender.claim(now)));
        let unmet = divide(total, &self.claims, &mut self.shares, &mut self.order);
        for (sender, (claim, &share)) in self.senders.iter_mut().zip(self.claims.iter().zip(&self.shares)) {
            sender.share = Some(sender.headroom(claim, share, unmet));
        }
        // Share of a further sender: no more than an equal part, nor than the rate per unit of weight of
        // senders whose demand is unmet.
        let fair = Rate::from_milli(total.as_milli() / (self.senders.len() as u64 + 1));
        self.newcomer_share = Some(unmet.unwrap_or(fair).min(fair));
    }

    /// A sender's share; none while there is no limit, or before the first division in which it takes part.
    #[must_use]
    pub fn share(&self, slot: SenderSlot) -> Option<Rate> {
        self.senders[self.place(slot)?].share
    }

    /// The sender with this key, if it was heard lately.
    #[must_use]
    pub fn find(&self, key: u64) -> Option<SenderSlot> {
        self.probe(key).ok().map(|at| SenderSlot { at, key })
    }

    /// Number of senders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.senders.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    pub(crate) fn sender_mut(&mut self, slot: SenderSlot) -> Option<&mut Sender> {
        let place = self.place(slot)?;
        self.senders.get_mut(place)
    }

    /// Position of the sender in `senders`; else the position that its key would have in `index`.
    fn probe(&self, key: u64) -> Result<u32, usize> {
        let mask = self.index.len() - 1;
        let mut place = mix(key) as usize & mask;
        // Ends because the index is at most half full.
        loop {
            match self.index[place] {
                EMPTY => return Err(place),
                at if self.senders[at as usize].key == key => return Ok(at),
                _ => place = (place + 1) & mask,
            }
        }
    }

    fn place(&self, slot: SenderSlot) -> Option<usize> {
        let is_there = self.senders.get(slot.at as usize).is_some_and(|sender| sender.key == slot.key);
        if is_there { Some(slot.at as usize) } else { self.probe(slot.key).ok().map(|at| at as usize) }
    }

    fn slot(&mut self, now: Instant, key: u64, weight: u32) -> SenderSlot {
        let place = match self.probe(key) {
            Ok(at) => return SenderSlot { at, key },
            Err(place) => place,
        };
        if self.senders.len() == self.bound {
            let at = self.bound - 1;
            return SenderSlot { at: at as u32, key: self.senders[at].key };
        }
        // It hears of its share with its first response.
        let share = self.newcomer_share;
        self.index[place] = self.senders.len() as u32;
        self.senders.push(Sender {
            key,
            weight: weight.max(1),
            heard: now,
            count: 0,
            used_rps: 0.0,
            limited_at: share.map(|_| now),
            share,
            ahead: 0.0,
            ahead_at: now,
            signed: None,
        });
        SenderSlot { at: self.senders.len() as u32 - 1, key }
    }

    fn forget_silent(&mut self, now: Instant) {
        let count = self.senders.len();
        self.senders.retain(|sender| now.saturating_since(sender.heard) < SILENT_AFTER);
        if self.senders.len() == count {
            return;
        }
        self.index.fill(EMPTY);
        for at in 0..self.senders.len() {
            if let Err(place) = self.probe(self.senders[at].key) {
                self.index[place] = at as u32;
            }
        }
    }
}

impl Default for Senders {
    fn default() -> Self {
        Self::new()
    }
}

impl Sender {
    fn measure(&mut self, now: Instant, span_s: f64, kept: f64) {
        let rate_rps = f64::from(core::mem::take(&mut self.count)) / span_s;
        self.used_rps = kept * self.used_rps + (1.0 - kept) * rate_rps;
        if self.share.is_some_and(|share| self.used_rps >= BINDS_FROM * share.per_second()) {
            self.limited_at = Some(now);
        }
    }

    fn claim(&self, now: Instant) -> Claim {
        let was_limited =
            self.limited_at.is_some_and(|at| now.saturating_since(at) < LIMITED_FOR) && !self.is_silent(now);
        // Before the first share, everything that is sent is what is wanted.
        let is_first = self.share.is_none();
        let demand = (!was_limited && !is_first).then(|| Rate::from_per_second(self.used_rps));
        Claim { weight: self.weight, demand }
    }

    /// Returns whether the sender would have sent if its share were what limits it: one that leaves is not
    /// waited for.
    fn is_silent(&self, now: Instant) -> bool {
        let expected =
            now.saturating_since(self.heard).as_secs_f64() * self.share.map_or(0.0, Rate::per_second);
        expected >= SILENT_REQUESTS
    }

    /// The share in the message of a sender that was given `share`: more, where it wants no more than that,
    /// but not more than the others have.
    fn headroom(&self, claim: &Claim, share: Rate, unmet: Option<Rate>) -> Rate {
        if claim.demand.is_none_or(|demand| share < demand) {
            return share;
        }
        let wide = Rate::from_per_second(HEADROOM * self.used_rps + SLACK_RPS);
        let most =
            unmet.map_or(Rate::MAX, |unmet| Rate::from_milli(unmet.as_milli() * u64::from(self.weight)));
        share.max(wide.min(most))
    }

    /// Returns whether one more request is within the share. Counted in requests, so that a share which was
    /// small for a moment does not count against the sender afterwards.
    fn conforms(&mut self, now: Instant) -> bool {
        let Some(share) = self.share else { return true };
        let share_rps = share.per_second();
        let span_s = now.saturating_since(self.ahead_at).as_secs_f64();
        self.ahead = (self.ahead - SHARE_TOLERANCE * share_rps * span_s).max(0.0);
        self.ahead_at = now;
        let conforms = self.ahead + 1.0 <= LATE_REQUESTS.max(LATE_BY.as_secs_f64() * share_rps);
        self.ahead += f64::from(u8::from(conforms));
        conforms
    }
}

//! Messages of the overloaded node: their content, their receivers, and how often they are renewed.
//!
//! [`Advertiser::refresh`] is called every 100 ms or so with what the ladder asks for; it divides the rate
//! and gives every sender's message a new sequence number. A field is made when a response needs it, so a
//! sender that is silent costs nothing. Without a limit no field is sent: with no overload, feedback is
//! invisible. After a limit has ended, releases are sent for one time to live, so that a sender which missed
//! the first ones need not wait for its limit to expire.

use crate::field::check;
use crate::senders::{Judged, SenderSlot, Senders};
use crate::{Feedback, Field, FieldError, KeyRing, Mac};
use flashweir_core::{Duration, Instant, Rate};

/// Limit that is asked of all senders together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Requests of this rank and less important ones are limited.
    pub from_rank: u8,
    /// Onset levels crossed.
    pub severity: u8,
    /// Maximum rate of the limited ranks from all senders together.
    pub rate: Rate,
}

/// The node's side: its senders, their shares, and the fields that tell them.
#[derive(Debug)]
pub struct Advertiser<M> {
    epoch: u32,
    sequence: u32,
    ttl: Duration,
    keys: KeyRing<M>,
    senders: Senders,
    asks: Option<Advertisement>,
    /// Until when releases are sent.
    releases_until: Instant,
}

impl<M: Mac> Advertiser<M> {
    /// Of a run of the node with the number `epoch`; messages are valid for `ttl`, four times the interval
    /// between refreshes or more.
    ///
    /// # Errors
    /// [`FieldError::Absurd`] for a time to live out of range.
    pub fn new(epoch: u32, ttl: Duration, keys: KeyRing<M>, senders: Senders) -> Result<Self, FieldError> {
        check(&Feedback { epoch, sequence: 0, from_rank: 0, severity: 0, rate: None, ttl })?;
        let releases_until = Instant::ZERO;
        Ok(Self { epoch, sequence: 0, ttl, keys, senders, asks: None, releases_until })
    }

    /// A request arrives: see [`Senders::hear`].
    pub fn hear(&mut self, now: Instant, key: u64, weight: u32, rank: u8) -> Judged {
        let is_limited = self.asks.is_none_or(|asks| rank >= asks.from_rank);
        self.senders.hear(now, key, weight, is_limited)
    }

    /// The sender with this key, if it was heard lately: for messages that go without a response.
    #[must_use]
    pub fn find(&self, key: u64) -> Option<SenderSlot> {
        self.senders.find(key)
    }

    /// Sets the limit that is asked from now on; none where there is no overload. O(n log n) for n senders.
    pub fn refresh(&mut self, now: Instant, asks: Option<Advertisement>) {
        if self.asks.is_some() && asks.is_none() {
            self.releases_until = now + self.ttl;
        }
        self.asks = asks;
        self.sequence = self.sequence.saturating_add(1);
        self.senders.divide(now, asks.map(|asks| asks.rate));
    }

    /// The field for a datagram to this sender; none while nothing is asked, and none without keys, for a
    /// datagram without a tag is not believed. `context` is that of
    /// [`Datagram::context`](crate::Datagram::context). Cost: one HMAC.
    pub fn datagram_field(&mut self, now: Instant, slot: SenderSlot, context: &[u8]) -> Option<Field> {
        let feedback = self.feedback(now, slot).filter(|_| !self.keys.is_empty())?;
        Field::new(&feedback, &self.keys, context).ok()
    }

    /// The field for a response to this sender; none while nothing is asked. `context` is what both ends
    /// know, as with [`Intake::new`](crate::Intake::new).
    pub fn field(&mut self, now: Instant, slot: SenderSlot, context: &[u8]) -> Option<Field> {
        let feedback = self.feedback(now, slot)?;
        let keys = &self.keys;
        let sender = self.senders.sender_mut(slot)?;
        if let Some((_, field)) = sender.signed.filter(|&(signed, _)| signed == feedback.sequence) {
            return Some(field);
        }
        // A rank or severity out of range is the ladder's mistake; then nothing is said.
        let field = Field::new(&feedback, keys, context).ok()?;
        sender.signed = Some((feedback.sequence, field));
        Some(field)
    }

    /// The message for this sender now; none while nothing is asked.
    fn feedback(&self, now: Instant, slot: SenderSlot) -> Option<Feedback> {
        if self.asks.is_none() && now >= self.releases_until {
            return None;
        }
        let (from_rank, severity) = self.asks.map_or((0, 0), |asks| (asks.from_rank, asks.severity));
        let rate = match self.asks {
            // A sender without a share came since the last refresh; it hears of its share after the next.
            Some(_) => Some(self.senders.share(slot)?),
            None => None,
        };
        Some(Feedback {
            epoch: self.epoch,
            sequence: self.sequence,
            from_rank,
            severity,
            rate,
            ttl: self.ttl,
        })
    }

    /// The limit that is asked now.
    #[must_use]
    pub fn asks(&self) -> Option<Advertisement> {
        self.asks
    }

    /// The senders.
    #[must_use]
    pub fn senders(&self) -> &Senders {
        &self.senders
    }

    /// Other keys from now on.
    pub fn set_keys(&mut self, keys: KeyRing<M>) {
        self.keys = keys;
        self.sequence = self.sequence.saturating_add(1);
    }
}

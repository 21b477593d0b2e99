//! The gate: so many in flight, some wait, the rest is refused at once. Integers only.

use super::hold::{Hold, Ticket};
use super::in_flight::{InFlight, Permit};
use super::plan::Plan;
use super::sample::Sample;
use flashweir_core::limits::REQUESTS_HELD;
use flashweir_core::{Duration, Instant};

/// The gate of one service; `T` is what the shell keeps of a request that waits.
#[derive(Debug)]
pub struct SentryGate<T> {
    epoch: u64,
    limit: u32,
    hold_len: usize,
    hold_for: Duration,
    newest_first_after: Duration,
    retry_after: Duration,
    in_flight: InFlight,
    hold: Hold<T>,
}

/// What becomes of a request that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// It waits; [`SentryGate::next`] will say.
    Held(Ticket),
    /// It waits in the place of one that waited too long to be worth it, which is refused.
    HeldInsteadOf(Ticket, T),
    /// Refuse it at once.
    Shed(T),
}

/// What becomes of a request that waited.
#[derive(Debug, PartialEq, Eq)]
pub enum Released<T> {
    /// Send it to the origin.
    Admit(T, Permit),
    /// It could no longer be answered in time: refuse it.
    Expired(T),
}

impl<T> SentryGate<T> {
    /// A gate that follows `plan`; `target` is the response time that is aimed at.
    #[must_use]
    pub fn new(plan: &Plan, target: Duration) -> Self {
        let mut gate = Self {
            epoch: 0,
            limit: 0,
            hold_len: 0,
            hold_for: Duration::ZERO,
            newest_first_after: Duration::ZERO,
            retry_after: Duration::ZERO,
            in_flight: InFlight::new(target * AGES_REACH_TARGETS),
            hold: Hold::new(REQUESTS_HELD),
        };
        gate.take_over(plan);
        gate
    }

    /// Takes over a plan; the same plan twice changes nothing. [`next`](Self::next) is to be asked afterwards.
    pub fn apply(&mut self, plan: &Plan) {
        if plan.epoch != self.epoch {
            self.take_over(plan);
        }
    }

    /// A request arrives. O(1).
    pub fn arrive(&mut self, now: Instant, request: T) -> Arrived<T> {
        self.in_flight.sample().offered += 1;
        if self.hold.is_empty() && self.in_flight.count() < self.limit {
            return Arrived::Admit(request, self.in_flight.begin(now));
        }
        let displaced = if self.hold.len() < self.hold_len {
            None
        } else if self.newest_first(now) {
            self.hold.take_oldest()
        } else {
            self.in_flight.sample().shed += 1;
            return Arrived::Shed(request);
        };
        let held = self.hold.push(now, request);
        self.in_flight.set_waiting(now, true);
        self.in_flight.sample().shed += u64::from(displaced.is_some() || held.is_err());
        match (held, displaced) {
            (Ok(ticket), None) => Arrived::Held(ticket),
            (Ok(ticket), Some(displaced)) => Arrived::HeldInsteadOf(ticket, displaced),
            (Err(request), _) => Arrived::Shed(request),
        }
    }

    /// Who goes next of those who wait, if somebody does. To be asked until there is none after every
    /// [`end`](Self::end), [`apply`](Self::apply) and [`next_expiry`](Self::next_expiry). O(1).
    pub fn next(&mut self, now: Instant) -> Option<Released<T>> {
        let oldest = self.hold.oldest_since()?;
        let released = if now.saturating_since(oldest) >= self.hold_for {
            self.in_flight.sample().shed += 1;
            Released::Expired(self.hold.take_oldest()?)
        } else if self.in_flight.count() < self.limit {
            let next = if self.newest_first(now) { self.hold.take_newest() } else { self.hold.take_oldest() };
            Released::Admit(next?, self.in_flight.begin(now))
        } else {
            return None;
        };
        self.in_flight.set_waiting(now, !self.hold.is_empty());
        Some(released)
    }

    /// When the oldest that waits expires.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.hold.oldest_since().map(|since| since + self.hold_for)
    }

    /// An admitted request is over.
    pub fn end(&mut self, now: Instant, permit: Permit, class: u32, completed: bool) {
        self.in_flight.end(now, permit, class, completed);
    }

    /// The client of one that waits has gone.
    pub fn leave(&mut self, now: Instant, ticket: Ticket) -> Option<T> {
        let left = self.hold.take(ticket);
        self.in_flight.set_waiting(now, !self.hold.is_empty());
        left
    }

    /// How many are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.count()
    }

    /// How many wait.
    #[must_use]
    pub fn held(&self) -> usize {
        self.hold.len()
    }

    /// When a refused client may hope for better.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// Hands over what was measured since the last drain.
    pub fn drain(&mut self, now: Instant) -> Sample {
        // At most REQUESTS_HELD.
        let held = self.hold.len() as u32;
        let mut sample = self.in_flight.drain(now);
        sample.held = held;
        sample
    }

    fn take_over(&mut self, plan: &Plan) {
        self.epoch = plan.epoch;
        self.limit = plan.limit;
        self.hold_len = (plan.hold_len as usize).min(REQUESTS_HELD);
        self.hold_for = plan.hold_for;
        self.newest_first_after = plan.newest_first_after;
        self.retry_after = plan.retry_after;
    }

    /// Once the queue is so old that whoever is at its head will hardly be answered in time, those who came last are
    /// served in time instead.
    fn newest_first(&self, now: Instant) -> bool {
        self.hold.oldest_since().is_some_and(|since| now.saturating_since(since) > self.newest_first_after)
    }
}

/// Ages of requests in flight are told up to so many targets: what takes longer is late, however late.
const AGES_REACH_TARGETS: u32 = 4;

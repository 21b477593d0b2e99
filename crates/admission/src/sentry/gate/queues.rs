//! Queues of a gate: their room, places in them, and requests that have waited for too long.

use super::SentryGate;
use super::answer::{Enqueued, Turn};
use super::arriving::ArrivingRequest;
use super::order::Order;
use crate::sentry::hold::{Dequeued, End, QueueSlot, position_of, queue_of};
use crate::sentry::plan::{ClassPlan, Decide};
use crate::sentry::request::{Position, SentryRequest};
use crate::sentry::room::{QueueState, Room};
use flashweir_core::{Instant, Reason};

impl<T> SentryGate<T> {
    /// Returns true if as many of a class wait that it is no passing matter: a quarter of those for whom
    /// there are places, or a queue that stands.
    #[must_use]
    pub fn is_crowded(&self, class: u8) -> bool {
        let plan = self.plan.classes.get(usize::from(class));
        let held = [Position::Usual, Position::HotSpot]
            .map(|at| self.common.held_in(queue_of(class.into(), at)))
            .into_iter()
            .sum::<u32>();
        let stands = |plan, at| self.room(queue_of(class.into(), at), plan).is_standing;
        plan.is_some_and(|plan| {
            held >= plan.hold_len.div_ceil(SPARE_PART)
                || stands(plan, Position::Usual)
                || stands(plan, Position::HotSpot)
        })
    }

    /// The queues, with the plans of their classes.
    pub(super) fn queues(&self) -> impl Iterator<Item = (usize, &ClassPlan)> {
        let classes = self.plan.classes.iter().enumerate();
        classes.flat_map(|(class, plan)| Position::ALL.map(|position| (queue_of(class, position), plan)))
    }

    /// Waits, if need be instead of another; refused where there is no place to wait.
    pub(super) fn hold_or_shed(
        &mut self,
        now: Instant,
        arriving: ArrivingRequest,
        lane: usize,
        request: T,
    ) -> Enqueued<T> {
        let (queue, target) = (arriving.queue(), arriving.class.target);
        let stands = self.queue_state(queue).is_some_and(|queue_state| queue_state.arrived(now, target));
        let room = Room::of(&arriving.class, stands);
        let places = room.len.div_ceil(if arriving.is_over_share() { SPARE_PART } else { 1 });
        let slot = QueueSlot { queue, lane, cost_us: arriving.cost_us.max(1) };
        let taken = self.common.take_hold(queue, places);
        match (taken, self.queue_state(queue)) {
            (Some(0), Some(queue_state)) => queue_state.filled(now),
            (None, Some(queue_state)) => queue_state.refused(now, target),
            _ => {}
        }
        // A displaced request leaves its place to the arriving one.
        let displaced = if taken.is_some() { None } else { self.displace(now, &arriving, &slot) };
        if taken.is_none() && displaced.is_none() {
            let is_over_share = arriving.is_over_share();
            let reason = if is_over_share { Reason::ClientShare } else { self.no_room(arriving.class.limit) };
            return Enqueued::Shed(request, self.shed(reason, &arriving));
        }
        let ticket = match self.hold.push(now, slot, (arriving.request, request)) {
            Ok(ticket) => ticket,
            // This gate's own bound (no request was displaced: that would have made room).
            Err((_, request)) => {
                self.common.give_back_hold(queue);
                return Enqueued::Shed(request, self.shed(Reason::Capacity, &arriving));
            }
        };
        self.tell_first(now);
        let Some((dequeued, reason)) = displaced else { return Enqueued::Queued(ticket) };
        let (asked, displaced) = dequeued.value;
        let evicted =
            ArrivingRequest { request: asked, class: arriving.class, cost_us: dequeued.slot.cost_us };
        let shed = self.shed(reason, &evicted);
        Enqueued::QueuedInsteadOf(ticket, displaced, shed)
    }

    /// Evicts a queued request of the class in favour of the arriving one: of a client with over twice as
    /// much queued, by cost, or else, once the queue is old, the one that has waited longest.
    fn displace(
        &mut self,
        now: Instant,
        arriving: &ArrivingRequest,
        slot: &QueueSlot,
    ) -> Option<(Dequeued<(SentryRequest, T)>, Reason)> {
        if matches!(self.plan.decide, Decide::Batch(_)) {
            return None;
        }
        let newest_first = self.order(now, slot.queue, &arriving.class) == Order::NewestFirst;
        let heaviest = self.hold.heaviest_lane(slot.queue)?;
        let most_us = self.hold.lane(slot.queue, heaviest).cost_us;
        let own_us = self.hold.lane(slot.queue, slot.lane).cost_us + u64::from(slot.cost_us);
        if newest_first {
            // Of several that wait for about as much, the oldest is the one that would be answered too late.
            return if most_us > 2 * own_us {
                Some((self.hold.take_from_lane(slot.queue, heaviest, End::Oldest)?, Reason::ClientShare))
            } else {
                let reason = self.expired(slot.queue, &arriving.class);
                Some((self.hold.take_oldest(slot.queue)?, reason))
            };
        }
        // Clients that ask for about as much are equal: none of them is refused for asking too much.
        let dequeued =
            (most_us > 2 * own_us).then(|| self.hold.take_from_lane(slot.queue, heaviest, End::Newest));
        Some((dequeued??, Reason::ClientShare))
    }

    /// Bounds in force for a queue.
    pub(super) fn room(&self, queue: usize, class: &ClassPlan) -> Room {
        Room::of(class, self.queue_state(queue).is_some_and(QueueState::stands))
    }

    /// State that decides if a queue stands: none where requests wait for other reasons than want of room,
    /// for rounds, or until the origin would otherwise have nothing to do.
    pub(super) fn queue_state(&self, queue: usize) -> Option<&QueueState> {
        let may_stand =
            !matches!(self.plan.decide, Decide::Batch(_)) && position_of(queue) != Position::OverShare;
        self.common.queue_state(queue).filter(|_| may_stand)
    }

    /// Takes out a request, of any class, that has waited for as long as is worth it.
    pub(super) fn next_expired(&mut self, now: Instant) -> Option<Turn<T>> {
        let is_expired = |queue: usize, class: &ClassPlan| {
            let since = self.hold.oldest_since(queue);
            since.is_some_and(|since| now.saturating_since(since) >= self.room(queue, class).wait)
        };
        let (queue, class) = self.queues().find(|&(queue, class)| is_expired(queue, class))?;
        let (target, reason) = (class.target, self.expired(queue, class));
        let dequeued = self.hold.take_oldest(queue)?;
        if let Some(queue_state) = self.queue_state(queue) {
            queue_state.refused(now, target);
        }
        let is_over_share = position_of(queue) == Position::OverShare;
        Some(self.refuse(dequeued, if is_over_share { Reason::ClientShare } else { reason }))
    }

    /// Reason for refusing the oldest of a queue: that of one that stands would be in time, had it a place.
    pub(super) fn expired(&self, queue: usize, class: &ClassPlan) -> Reason {
        if self.room(queue, class).is_standing { self.no_room(class.limit) } else { Reason::Deadline }
    }
}

/// Clients over their share have this part of a class's places to wait.
const SPARE_PART: u32 = 4;

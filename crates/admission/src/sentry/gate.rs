//! The gate: admits up to the in-flight limit, queues a bounded number, refuses the rest at once. Integers
//! only, no lock, no allocation besides what the queue grows by.
//!
//! A request within its class's guaranteed rate goes at once while fewer than twice the limit are in flight:
//! what was promised beyond what the origin can do must not swamp it. Then, by default (reservation): a class
//! is let in while fewer than *its* limit are in flight (the least important has the lowest), and a request
//! that finds no room waits. Room that is given back goes to the most important that waits at any gate, among
//! equals to the oldest (by about a sixteenth of how long they may wait: to keep what a gate has costs no
//! wake-up of another thread). Inside a class clients take turns by cost (`hold`); once the oldest has waited
//! long, the newest of a client goes first, because it can still be answered in time. A queue that stands has
//! less room (`queues`, by `room`). `batch` and a threshold's share are the two other ways to decide.
//!
//! Gates that do not answer: a gate whose first has waited longer than is worth it no longer holds up the
//! others.

mod answer;
mod arriving;
mod batch;
mod order;
mod pausing;
mod queues;
mod shadow;

pub use answer::{Arrived, Check, Enqueued, Released, Slot, Turn};

use super::common::{Common, Precedence};
use super::hold::{Dequeued, End, Hold, QueueSlot, Ticket, class_of, position_of, queue_of, queues_of};
use super::in_flight::{InFlight, Permit, micros};
use super::plan::{ClassPlan, Decide, Plan};
use super::policy::Policy;
use super::request::{Ending, Position, SentryRequest};
use super::sample::Sample;
use super::service_times::lane_of_cost;
use alloc::sync::Arc;
use arriving::ArrivingRequest;
use batch::Rounds;
use flashweir_core::hash::mix;
use flashweir_core::limits::{CLIENT_LANES, REQUESTS_HELD, SENTRY_IN_FLIGHT};
use flashweir_core::{Duration, Instant, Reason, Shed};
use order::Order;

/// The gate of one service; `T` is what the shell keeps of a request that waits.
#[derive(Debug)]
pub struct SentryGate<T> {
    pub(super) common: Arc<Common>,
    /// Index among the service's gates.
    index: usize,
    pub(super) plan: Plan,
    /// In-flight limit for requests of clients over their share.
    spare_limit: u32,
    /// The target where the ladder begins.
    usual_target: Duration,
    in_flight: InFlight,
    hold: Hold<(SentryRequest, T)>,
    rounds: Rounds,
    /// The first request queued here, as published to other gates.
    first: Precedence,
    /// Counts decisions by share.
    draws: u64,
}

impl<T> SentryGate<T> {
    /// Gate `index` of those that share `common`; it follows `plan`, made for `policy`.
    #[must_use]
    pub fn new(common: Arc<Common>, index: usize, policy: &Policy, plan: &Plan) -> Self {
        let classes = plan.classes.len();
        Self {
            in_flight: InFlight::new(common.clone(), classes, policy.target),
            common,
            index,
            plan: plan.clone(),
            spare_limit: plan.spare_limit(),
            usual_target: policy.usual_target(),
            hold: Hold::new(queues_of(classes), REQUESTS_HELD),
            rounds: Rounds::default(),
            first: Precedence::NONE,
            draws: 0,
        }
    }

    /// Takes over a plan for the same policy; one that is no newer than the plan in force changes nothing.
    /// [`next`](Self::next) is to be asked afterwards.
    pub fn apply(&mut self, plan: &Plan) {
        // A plan for other classes is not for this gate.
        if plan.epoch > self.plan.epoch && plan.classes.len() == self.plan.classes.len() {
            self.plan.clone_from(plan);
            self.spare_limit = plan.spare_limit();
        }
    }

    /// A request arrives at this gate and no other stage has a say:
    /// [`observe_offered`](Self::observe_offered), [`check`](Self::check), and [`commit`](Self::commit) or
    /// [`enqueue`](Self::enqueue).
    pub fn arrive(&mut self, now: Instant, asked: SentryRequest, request: T) -> Arrived<T> {
        self.observe_offered(asked, false);
        match self.check(now, asked) {
            Check::Pass(slot) => Arrived::Admit(request, self.commit(now, now, asked, slot)),
            Check::Shed(shed) => Arrived::Shed(request, shed),
            Check::Wait => match self.enqueue(now, asked, request) {
                Enqueued::Queued(ticket) => Arrived::Held(ticket),
                Enqueued::QueuedInsteadOf(ticket, other, shed) => Arrived::HeldInsteadOf(ticket, other, shed),
                Enqueued::Turn(request, slot) => Arrived::Admit(request, self.commit(now, now, asked, slot)),
                Enqueued::Shed(request, shed) => Arrived::Shed(request, shed),
            },
        }
    }

    /// Counts a request that arrives at the door, before any decision. Its class is always taken as one of
    /// the policy's.
    pub fn observe_offered(&mut self, request: SentryRequest, is_retry: bool) {
        let ArrivingRequest { request, cost_us, .. } = self.arriving(request);
        let counts = self.in_flight.class(request.class.into());
        counts.offered += 1;
        counts.unique_offered += u64::from(!is_retry);
        counts.offered_cost_us += u64::from(cost_us);
    }

    /// Counts a request that another stage refused, at once or after it waited here.
    pub fn observe_refused_elsewhere(&mut self, request: SentryRequest) {
        let ArrivingRequest { request, .. } = self.arriving(request);
        self.in_flight.class(request.class.into()).shed_elsewhere += 1;
    }

    /// Checks if a request may go to the origin now. A slot that comes back is reserved for it, since other
    /// gates share the slots: it is to be [committed](Self::commit) or [cancelled](Self::cancel). A refusal
    /// is counted. O([`CLASSES`](flashweir_core::limits::CLASSES) + [`CLIENT_LANES`]).
    pub fn check(&mut self, now: Instant, request: SentryRequest) -> Check<Slot> {
        let arriving = self.arriving(request);
        if self.take_long(now, &request) {
            let is_guaranteed = self.common.is_within_guarantee(now, arriving.request.class, &arriving.class);
            return Check::Pass(Slot { is_guaranteed, is_long: true });
        }
        let most = self.plan.limit.saturating_mul(GUARANTEED_LIMITS);
        if self.common.is_within_guarantee(now, arriving.request.class, &arriving.class) {
            if self.take(now, most) {
                return Check::Pass(Slot { is_guaranteed: true, is_long: false });
            }
            self.in_flight.class(arriving.request.class.into()).without_room +=
                u64::from(!arriving.request.is_uncounted);
        }
        match self.plan.decide {
            Decide::Reservation => self.check_reserved(now, &arriving),
            Decide::Batch(test) => self.check_in_batch(now, &arriving, &test),
            Decide::Threshold => self.check_at_threshold(now, &arriving),
        }
    }

    /// A request that arrived at `arrived` is sent to the origin, in a slot that was reserved for it.
    pub fn commit(&mut self, now: Instant, arrived: Instant, request: SentryRequest, slot: Slot) -> Permit {
        let ArrivingRequest { request, class, .. } = self.arriving(request);
        if slot.is_guaranteed {
            // Another gate may have used the last of the rate since the check: one too many is no harm.
            let _counted = self.common.is_guaranteed(now, request.class.into(), &class);
        }
        self.in_flight.begin(now, arrived, request, slot.is_long)
    }

    /// Gives a reserved slot back, because another stage refuses the request.
    pub fn cancel(&mut self, slot: Slot) {
        if slot.is_long { self.common.give_back_long() } else { self.common.give_back() }
    }

    /// A request waits for its turn, if need be instead of another; it is refused where the queue has no
    /// place for it.
    pub fn enqueue(&mut self, now: Instant, asked: SentryRequest, request: T) -> Enqueued<T> {
        let arriving = self.arriving(asked);
        if let Decide::Batch(_) = self.plan.decide {
            return self.hold_or_shed(now, arriving, lane_of_cost(arriving.cost_us), request);
        }
        let limit = self.limit_for(&arriving.class, arriving.request.position);
        let is_first = !self.somebody_waits(&arriving);
        let lane = (mix(arriving.request.client_key) % CLIENT_LANES as u64) as usize;
        let queued = self.hold_or_shed(now, arriving, lane, request);
        // A place may have been given back after the look for one, by a gate that did not yet see this
        // request queued.
        if let Enqueued::Queued(ticket) = queued
            && is_first
            && self.common.in_flight() < limit
            && self.take(now, limit)
            && let Some(dequeued) = self.hold.take(ticket)
        {
            self.common.give_back_hold(dequeued.slot.queue);
            self.tell_first(now);
            return Enqueued::Turn(dequeued.value.1, Slot { is_guaranteed: false, is_long: false });
        }
        queued
    }

    /// Dequeues the next request, decided by this gate alone: see [`next_turn`](Self::next_turn).
    pub fn next(&mut self, now: Instant) -> Option<Released<T>> {
        Some(match self.next_turn(now)? {
            Turn::Go { request, asked, arrived, slot } => {
                Released::Admit(request, self.commit(now, arrived, asked, slot))
            }
            Turn::Shed(request, shed) => Released::Shed(request, shed),
        })
    }

    /// Dequeues the next request to admit or to refuse, if any. To be called until there is none, and then
    /// [`who_waits`](Self::who_waits): after every [`end`](Self::end), [`apply`](Self::apply),
    /// [`next_wake`](Self::next_wake) and when another gate says so. Cost as of [`check`](Self::check).
    pub fn next_turn(&mut self, now: Instant) -> Option<Turn<T>> {
        if self.hold.len() == 0 {
            return None;
        }
        let turn = self.next_expired(now).or_else(|| match self.plan.decide {
            Decide::Batch(test) => self.next_in_round(now, &test),
            Decide::Reservation | Decide::Threshold => self.next_reserved(now),
        })?;
        self.tell_first(now);
        Some(turn)
    }

    /// Time at which [`next`](Self::next) is to be asked even if nothing else happens.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        let wakes = self.queues().filter_map(|(queue, class)| {
            let since = self.hold.oldest_since(queue)?;
            let expires = since + self.room(queue, class).wait;
            // Without a delay there is a round whenever `next` is asked.
            let has_rounds = matches!(self.plan.decide, Decide::Batch(_)) && !class.delay.is_zero();
            let round = has_rounds.then(|| self.rounds.next_after(class_of(queue), class.delay, since));
            Some(round.map_or(expires, |round| expires.min(round)))
        });
        wakes.min()
    }

    /// An admitted request is over. Call [`next`](Self::next) of this gate until it returns none, then wake
    /// the gate that [`who_waits`](Self::who_waits) names.
    pub fn end(&mut self, now: Instant, permit: Permit, ending: Ending) {
        self.in_flight.end(now, &self.plan, permit, ending);
    }

    /// Another gate that may have a request for the room that there is: its [`next`](Self::next) is to be
    /// called. O(gates).
    #[must_use]
    pub fn who_waits(&self) -> Option<usize> {
        let (gate, first) = self.common.first_elsewhere(self.index, self.is_spare());
        // In batches those who wait, wait for their rounds, not for room.
        if first == Precedence::NONE || matches!(self.plan.decide, Decide::Batch(_)) {
            return None;
        }
        self.has_room_for(first).then_some(gate)
    }

    /// The client of one that waits has gone.
    pub fn leave(&mut self, now: Instant, ticket: Ticket) -> Option<T> {
        let dequeued = self.take_out(now, ticket)?;
        let (asked, request) = dequeued.value;
        self.in_flight.class(class_of(dequeued.slot.queue)).left += u64::from(!asked.is_uncounted);
        Some(request)
    }

    /// Takes one that waits out of the queue, because another stage refuses it: see
    /// [`observe_refused_elsewhere`](Self::observe_refused_elsewhere).
    pub fn withdraw(&mut self, now: Instant, ticket: Ticket) -> Option<T> {
        Some(self.take_out(now, ticket)?.value.1)
    }

    /// A class's place in the order of importance, 0 the first.
    #[must_use]
    pub fn rank(&self, class: u8) -> u8 {
        self.plan.classes.get(usize::from(class)).map_or(u8::MAX, |class| class.rank)
    }

    /// Returns true if one more of this class is within what it is guaranteed; counts nothing.
    #[must_use]
    pub fn is_within_guarantee(&self, now: Instant, class: u8) -> bool {
        let plan = self.plan.classes.get(usize::from(class));
        plan.is_some_and(|plan| self.common.is_within_guarantee(now, class, plan))
    }

    /// Ratio of the target in force to the usual one: 1 but where a ladder has moved it.
    #[must_use]
    pub fn target_stretch(&self) -> f32 {
        self.plan.explanation.target.as_secs_f32() / self.usual_target.as_secs_f32()
    }

    /// Estimated service time of a request at the origin, microseconds; 0 if nothing is known.
    #[must_use]
    pub fn cost_us(&self, request: &SentryRequest) -> u32 {
        self.plan.costs.of(request.url_class, request.class)
    }

    /// Requests in flight that hold a place, from all gates together.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.common.in_flight()
    }

    /// Requests in flight that hold no place, from all gates together.
    #[must_use]
    pub fn long_in_flight(&self) -> u32 {
        self.common.long()
    }

    /// Requests queued here.
    #[must_use]
    pub fn held(&self) -> usize {
        self.hold.len()
    }

    /// Time that the oldest of a class has waited here; zero if no request of it waits.
    #[must_use]
    pub fn oldest_held(&self, now: Instant, class: usize) -> Duration {
        let class = class.min(self.plan.classes.len() - 1);
        let since = Position::ALL.into_iter().filter_map(|at| self.hold.oldest_since(queue_of(class, at)));
        since.min().map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// Hands over what was measured since the last drain.
    pub fn drain(&mut self, now: Instant) -> Sample {
        let mut sample = self.in_flight.drain(now, &self.plan);
        // At most REQUESTS_HELD.
        sample.held = self.hold.len() as u32;
        for (index, class) in sample.classes.iter_mut().enumerate() {
            let queues = Position::ALL.map(|position| queue_of(index, position));
            class.held = queues.into_iter().map(|queue| self.hold.queue_len(queue)).sum();
            let oldest = queues.into_iter().filter_map(|queue| self.hold.oldest_since(queue)).min();
            class.oldest_held_us = oldest.map_or(0, |since| micros(now.saturating_since(since)));
        }
        sample
    }

    fn take_out(&mut self, now: Instant, ticket: Ticket) -> Option<Dequeued<(SentryRequest, T)>> {
        let dequeued = self.hold.take(ticket)?;
        self.common.give_back_hold(dequeued.slot.queue);
        self.tell_first(now);
        Some(dequeued)
    }

    fn check_reserved(&mut self, now: Instant, arriving: &ArrivingRequest) -> Check<Slot> {
        let limit = self.limit_for(&arriving.class, arriving.request.position);
        if self.somebody_waits(arriving) || !self.take(now, limit) {
            return Check::Wait;
        }
        if let Some(queue_state) = self.queue_state(arriving.queue()) {
            queue_state.passed(now);
        }
        Check::Pass(Slot { is_guaranteed: false, is_long: false })
    }

    fn check_at_threshold(&mut self, now: Instant, arriving: &ArrivingRequest) -> Check<Slot> {
        // Every share of many consecutive requests is right, and no client can tell when its turn is.
        self.draws = self.draws.wrapping_add(1);
        let draw = (mix(self.draws ^ (self.index as u64) << INDEX_SHIFT) >> u32::BITS) as u32;
        let share = arriving.class.admit_share;
        if share < u32::MAX && draw >= share {
            return Check::Shed(self.shed(Reason::Threshold, arriving));
        }
        self.check_reserved(now, arriving)
    }

    /// The most important, if there is room for it and none more important waits elsewhere.
    fn next_reserved(&mut self, now: Instant) -> Option<Turn<T>> {
        let (queue, own) = self.first_with_room()?;
        let class = self.plan.classes[class_of(queue)];
        let (_, elsewhere) = self.common.first_elsewhere(self.index, self.is_spare());
        let is_elsewhere = elsewhere.is_before(own, self.room(queue, &class).wait / SLACK_PART)
            && self.has_room_for(elsewhere);
        if is_elsewhere && !self.is_overdue(now, elsewhere)
            || !self.take(now, self.limit_for(&class, position_of(queue)))
        {
            return None;
        }
        let dequeued = match self.order(now, queue, &class) {
            Order::Fair => self.hold.take_fairly(queue, End::Oldest)?,
            Order::OldestFirst => self.hold.take_oldest(queue)?,
            Order::NewestFirst => {
                let queue = self.newest_queue(class.rank, position_of(queue))?;
                self.hold.take_fairly(queue, End::Newest)?
            }
        };
        Some(self.go(dequeued))
    }

    /// Of the queues of classes worth the same, the one with the newest request: where the newest go first,
    /// the one with the oldest would otherwise have all the room until that one has gone.
    fn newest_queue(&self, rank: u8, position: Position) -> Option<usize> {
        let equal =
            self.queues().filter(|&(queue, class)| class.rank == rank && position_of(queue) == position);
        equal
            .filter_map(|(queue, _)| Some((self.hold.newest_since(queue)?, queue)))
            .max()
            .map(|(_, queue)| queue)
    }

    /// It is the turn of one that waited, for which a slot was [taken](Self::take).
    fn go(&mut self, dequeued: Dequeued<(SentryRequest, T)>) -> Turn<T> {
        let Dequeued { slot: QueueSlot { queue, .. }, since, value: (asked, request) } = dequeued;
        self.common.give_back_hold(queue);
        Turn::Go { request, asked, arrived: since, slot: Slot { is_guaranteed: false, is_long: false } }
    }

    /// One that waited is refused.
    fn refuse(&mut self, dequeued: Dequeued<(SentryRequest, T)>, reason: Reason) -> Turn<T> {
        self.common.give_back_hold(dequeued.slot.queue);
        let (asked, request) = dequeued.value;
        let class = self.plan.classes[class_of(dequeued.slot.queue)];
        let refused = ArrivingRequest { request: asked, class, cost_us: dequeued.slot.cost_us };
        Turn::Shed(request, self.shed(reason, &refused))
    }

    fn shed(&mut self, reason: Reason, arriving: &ArrivingRequest) -> Shed {
        if !arriving.request.is_uncounted {
            let counts = self.in_flight.class(arriving.request.class.into());
            counts.shed += 1;
            counts.shed_by_test += u64::from(matches!(reason, Reason::Threshold | Reason::Batch));
            counts.shed_over_share += u64::from(arriving.is_over_share() || reason == Reason::ClientShare);
            counts.shed_cost_us += u64::from(arriving.cost_us);
        }
        Shed { reason, retry_after: arriving.class.retry_after }
    }

    /// Takes a place in flight, if fewer than `limit` are taken.
    fn take(&mut self, now: Instant, limit: u32) -> bool {
        self.in_flight.take(now, &self.plan, limit)
    }

    /// Counts a request as long, if its class is and no more of them are in flight than the plan allows.
    fn take_long(&mut self, now: Instant, request: &SentryRequest) -> bool {
        if !self.plan.long.has(request.url_class) {
            return false;
        }
        let limit = self.plan.long.limit.unwrap_or(SENTRY_IN_FLIGHT);
        self.in_flight.take_long(now, &self.plan, limit)
    }

    fn no_room(&self, limit: u32) -> Reason {
        // Room beyond this class's own limit is reserved for more important classes.
        let most = self.plan.classes.iter().map(|class| class.limit).max().unwrap_or(limit);
        if limit < most && self.common.in_flight() < most { Reason::Reserved } else { Reason::Capacity }
    }

    /// Returns true if a request is queued at any gate that precedes this one, or came before it.
    fn somebody_waits(&self, arriving: &ArrivingRequest) -> bool {
        let as_important =
            self.plan.classes.iter().enumerate().filter(|(_, class)| class.rank <= arriving.class.rank);
        as_important.into_iter().any(|(index, class)| {
            let held = |position| self.common.held_in(queue_of(index, position)) > 0;
            // Of what is more important all go first; those over their share only where there is room for
            // them.
            let is_more_important = class.rank < arriving.class.rank;
            let last = if is_more_important { Position::HotSpot } else { arriving.request.position };
            Position::ALL.into_iter().take_while(|&position| position <= last).any(held)
                || is_more_important
                    && held(Position::OverShare)
                    && (arriving.is_over_share() || self.is_spare())
        })
    }

    /// In-flight limit of a class; for clients over their share, the number below which the origin would
    /// otherwise not be busy.
    fn limit_for(&self, class: &ClassPlan, position: Position) -> u32 {
        if position == Position::OverShare { self.spare_limit } else { class.limit }
    }

    fn is_spare(&self) -> bool {
        self.common.in_flight() < self.spare_limit
    }

    /// Returns true if the first elsewhere would find room.
    fn has_room_for(&self, first: Precedence) -> bool {
        let limit = self.of_rank(first.rank(), |_, class| self.limit_for(class, first.position()));
        limit.is_some_and(|limit| self.common.in_flight() < limit)
    }

    /// Returns true if the head of the other gate's queue should have been refused by now: that gate does not
    /// respond.
    fn is_overdue(&self, now: Instant, elsewhere: Precedence) -> bool {
        let wait =
            |class: usize, plan: &ClassPlan| self.room(queue_of(class, elsewhere.position()), plan).wait;
        let hold_for = self.of_rank(elsewhere.rank(), wait).unwrap_or(Duration::ZERO);
        let now = Precedence::new(elsewhere.rank(), elsewhere.position(), now);
        elsewhere.is_before(now, hold_for + hold_for / SLACK_PART)
    }

    fn of_rank<V: Ord>(&self, rank: u8, value: impl Fn(usize, &ClassPlan) -> V) -> Option<V> {
        let classes = self.plan.classes.iter().enumerate().filter(|(_, class)| class.rank == rank);
        classes.map(|(index, class)| value(index, class)).max()
    }

    /// The queue whose oldest is the first here, of those for which there may be room.
    fn first_with_room(&self) -> Option<(usize, Precedence)> {
        let is_spare = self.is_spare();
        self.first_of(|position| is_spare || position < Position::OverShare)
    }

    fn first_of(&self, counts: impl Fn(Position) -> bool) -> Option<(usize, Precedence)> {
        let waiting =
            self.queues().filter(|&(queue, _)| counts(position_of(queue))).filter_map(|(queue, class)| {
                let since = self.hold.oldest_since(queue)?;
                Some((Precedence::new(class.rank, position_of(queue), since), queue))
            });
        waiting.min().map(|(first, queue)| (queue, first))
    }

    /// Publishes the first request queued here to other gates.
    fn tell_first(&mut self, now: Instant) {
        // Requests over their share are not published while others wait here, for which there may be room
        // sooner.
        let first =
            self.first_of(|position| position < Position::OverShare).or_else(|| self.first_of(|_| true));
        let first = first.map_or(Precedence::NONE, |(_, first)| first);
        if first != self.first {
            self.first = first;
            self.common.set_first(self.index, first);
            // Requests over their share wait for the spare limit: they do not show that the limit binds.
            self.in_flight.set_waiting(
                now,
                &self.plan,
                first != Precedence::NONE && first.position() < Position::OverShare,
            );
        }
    }
}

/// Multiple of the limit beyond which there is no room at all: guarantees that can be kept never need as
/// much.
const GUARANTEED_LIMITS: u32 = 2;
/// One that waits elsewhere goes first if it is older by this part of how long it may wait.
const SLACK_PART: u32 = 16;
/// Shift of a gate's index above its count of draws, so that gates draw different numbers; no gate draws 2⁴⁸.
const INDEX_SHIFT: u32 = 48;

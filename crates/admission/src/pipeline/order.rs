//! Order of the stages: checks, commits and ends. The only file that asks them one after the other.

use super::bounds::Bounds;
use super::request::{CandidateKey, SlotShare, Waiter};
use super::service::find;
use super::service_stages::{Judgement, figures};
use super::stage::StageName;
use super::{
    AdmissionRequest, Arrival, Asking, CandidateOpinion, Delivery, FlashCrowdOptions, Judged, OriginShare,
    Permit, Pipeline, Refusal, Released, RequestOutcome, ServiceKey, ShadowRefusal, SharedByWorkers, Ticket,
};
use crate::fairness::Cause;
use crate::flash_crowd::{CeilingPriority, GatePair};
use crate::retry_after::AT_A_BOUND;
use crate::sentry::{Check, Enqueued, Position, SentryRequest, Slot, Turn};
use flashweir_core::{Duration, Instant, Reason, Shed, Verdict};

/// The stages that all services of a worker share; those of one service are in [`Service`].
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) bounds: Bounds,
    pub(super) flash_crowd: GatePair,
    pub(super) flash_crowd_options: FlashCrowdOptions,
}

impl Stages {
    /// Stages of worker `worker`, without limits.
    pub(super) fn new(worker: usize, shared: &SharedByWorkers) -> Self {
        Self {
            bounds: Bounds::new(shared.in_gateway.clone()),
            flash_crowd: GatePair::new(worker),
            flash_crowd_options: FlashCrowdOptions::default(),
        }
    }
}

/// Its caller asks nothing any more; one that does again has set a new deadline.
const LATE: Shed = Shed { reason: Reason::CallerDeadline, retry_after: AT_A_BOUND };
/// Few requests are answered in half of the usual time: one with less time left is hopeless.
const QUICK_PART: u32 = 2;

/// Joint result of the checks of a request; it may wait for room at the sentry only.
type Checked = Check<Reserved, (StageName, Shed)>;

/// Shares to be committed.
struct Reserved {
    /// A token of the ceiling's; not where that is in shadow and would have refused.
    takes_token: bool,
    /// Slot at the sentry, if there is a sentry and the class is not exempt.
    slot: Option<Slot>,
    position: Position,
}

/// A request on its way through the checks.
struct Passage<'a> {
    request: &'a AdmissionRequest,
    position: Position,
    /// Its slot, where its turn has come: the sentry is not asked again.
    slot: Option<Slot>,
    /// The first stage in shadow that would have refused it.
    shadow: &'a mut Option<ShadowRefusal>,
    candidate: &'a mut Option<CandidateKey>,
}

impl<T> Pipeline<T> {
    /// A request arrives. O([`CLASSES`](flashweir_core::limits::CLASSES) +
    /// [`CLIENT_LANES`](flashweir_core::limits::CLIENT_LANES)).
    pub fn arrive(&mut self, now: Instant, request: AdmissionRequest, kept: T) -> Arrival<T> {
        let is_retry = request.is_counted() && self.attempts.is_retry(now, request.person_key);
        if request.is_counted() {
            self.observe_offered(&request, is_retry);
        }
        let refused = |refusal| Arrival::Refused(refusal);
        (self.demoted, self.was_person) = (None, false);
        if request.is_late(now) {
            return refused(self.refuse(now, &request, StageName::Bounds, LATE, None, None));
        }
        let (position, demoted) = self.position(now, &request);
        self.demoted = demoted;
        if let Err(shed) = self.stages.bounds.check(&request, position) {
            self.is_short_at(now, &request, position);
            return refused(self.refuse(now, &request, StageName::Bounds, shed, None, demoted));
        }
        let (mut shadow, mut candidate) = (None, None);
        let passage = Passage {
            request: &request,
            position,
            slot: None,
            shadow: &mut shadow,
            candidate: &mut candidate,
        };
        match self.check(now, passage) {
            Check::Pass(reserved) => {
                let permit = self.commit(now, &request, now, is_retry, reserved, candidate);
                Arrival::Admitted(permit, shadow)
            }
            Check::Shed((stage, shed)) => {
                self.stages.bounds.give_back();
                self.is_short_at(now, &request, position);
                refused(self.refuse(now, &request, stage, shed, candidate, demoted))
            }
            Check::Wait => {
                if self.is_crowded(&request) {
                    self.is_short_at(now, &request, position);
                }
                if self.would_be_late(now, &request, position) {
                    self.stages.bounds.give_back();
                    return refused(self.refuse(now, &request, StageName::Bounds, LATE, candidate, demoted));
                }
                let waiter =
                    Waiter { kept, request, is_retry, arrived: now, candidate, shadow, position, demoted };
                self.enqueue(now, waiter)
            }
        }
    }

    /// The next request of a service that waits no longer, if there is one. To be asked until there is none,
    /// and then [`who_waits`](Self::who_waits): after every end, pause or plan, at
    /// [`next_wake`](Self::next_wake), and when another worker says so. Cost as of [`arrive`](Self::arrive).
    pub fn next(&mut self, now: Instant, key: ServiceKey) -> Option<Released<T>> {
        let turn = self.service_mut(key)?.sentry.as_mut()?.gate.next_turn(now)?;
        let released = match turn {
            Turn::Go { request: waiter, slot, .. } => self.take_turn(now, waiter, slot),
            Turn::Shed(waiter, shed) => {
                let refusal = self.refuse_waiting(now, &waiter, StageName::Sentry, shed);
                Released::Refused(waiter.kept, refusal)
            }
        };
        self.drop_if_over(key);
        Some(released)
    }

    /// The deadline of a request that waits is over: it is refused; none if it waits no more.
    pub fn expire(&mut self, now: Instant, ticket: Ticket) -> Option<(T, Refusal)> {
        let service = find(&mut self.services, ticket.service)?;
        let waiter = service.sentry.as_mut()?.gate.withdraw(now, ticket.ticket)?;
        let refusal = self.refuse_waiting(now, &waiter, StageName::Bounds, LATE);
        self.drop_if_over(ticket.service);
        Some((waiter.kept, refusal))
    }

    /// The client of a request that waits has left; none if it waits no more.
    pub fn leave(&mut self, now: Instant, ticket: Ticket) -> Option<T> {
        let service = find(&mut self.services, ticket.service)?;
        let waiter = service.sentry.as_mut()?.gate.leave(now, ticket.ticket)?;
        let left = u64::from(waiter.request.is_counted());
        service.ledger.left += left;
        self.ledger.left += left;
        if let Some((candidate, key)) = service.candidate_of(waiter.candidate) {
            candidate.live_left(now, key);
        }
        self.stages.bounds.give_back();
        self.drop_if_over(ticket.service);
        Some(waiter.kept)
    }

    /// The origin is done with a request: others may have its slot, so [`next`](Self::next) is to be asked.
    pub fn end_at_origin(&mut self, now: Instant, share: OriginShare, outcome: RequestOutcome) {
        let OriginShare { service: key, slot, charge, candidate } = share;
        let Some(service) = self.service_mut(key) else { return };
        service.shares.end(now, charge);
        service.origin_shares -= 1;
        let ending = outcome.at_origin();
        if let Some(sentry) = &mut service.sentry {
            match slot {
                SlotShare::Taken(permit) => sentry.gate.end(now, permit, ending),
                // The origin worked on a request that it completed while the gateway waited for the client.
                SlotShare::Paused(paused) if ending.completed => {
                    let permit = sentry.gate.resume(now, paused);
                    sentry.gate.end(now, permit, ending);
                }
                SlotShare::Paused(_) | SlotShare::None => {}
            }
        }
        if let Some((candidate, key)) = service.candidate_of(candidate) {
            candidate.live_ended(now, key, ending.completed);
        }
        self.drop_if_over(key);
    }

    /// The client of a request at the origin is waited for: others may have its slot meanwhile, so
    /// [`next`](Self::next) is to be asked.
    pub fn pause(&mut self, now: Instant, share: &mut OriginShare) {
        let Some(service) = self.service_mut(share.service) else { return };
        service.shares.pause(now, &mut share.charge);
        let Some(sentry) = service.sentry.as_mut() else { return };
        share.slot = match core::mem::replace(&mut share.slot, SlotShare::None) {
            SlotShare::Taken(permit) => SlotShare::Paused(sentry.gate.pause(now, permit)),
            other => other,
        };
    }

    /// The origin goes on with a request that was paused.
    pub fn resume(&mut self, now: Instant, share: &mut OriginShare) {
        share.charge.resume(now);
        let Some(sentry) = self.service_mut(share.service).and_then(|service| service.sentry.as_mut()) else {
            return;
        };
        share.slot = match core::mem::replace(&mut share.slot, SlotShare::None) {
            SlotShare::Paused(paused) => SlotShare::Taken(sentry.gate.resume(now, paused)),
            other => other,
        };
    }

    /// A request is over. Its share at the origin ends with it, unless it has been taken. If it completed,
    /// its response is on its way to the client, which [`deliver`](Self::deliver) ends.
    pub fn finish(&mut self, now: Instant, permit: Permit, outcome: RequestOutcome) -> Option<Delivery> {
        let key = permit.service;
        if let Some(share) = permit.origin {
            self.end_at_origin(now, share, outcome);
        }
        let is_completed = matches!(outcome, RequestOutcome::Completed(_));
        match (self.judged(key), is_completed) {
            (Judged::Whole, false) => self.stages.flash_crowd.unfinished(),
            (Judged::Delivery, true) => self.stages.flash_crowd.handed_over(),
            _ => {}
        }
        self.ledger.ended += 1;
        if let Some(service) = self.service_mut(key) {
            service.upstream.finish();
            service.ledger.ended += 1;
        }
        self.stages.bounds.give_back();
        self.drop_if_over(key);
        is_completed.then_some(Delivery(()))
    }

    /// A response is no longer on its way: its client `has_all` of it, or is known not to get it. A shell
    /// that cannot know says at once that it has.
    pub fn deliver(&mut self, delivery: Delivery, has_all: bool) {
        let Delivery(()) = delivery;
        match has_all {
            true => self.stages.flash_crowd.completed(),
            false => self.stages.flash_crowd.unfinished(),
        }
    }

    /// The checks in order, from the flash crowd on.
    fn check(&mut self, now: Instant, passage: Passage<'_>) -> Checked {
        let Passage { request, position, slot, shadow, candidate } = passage;
        let Some(service) = find(&mut self.services, request.service) else {
            // A shell asks only for services that it has added; requests for a retired one go elsewhere.
            let shed = Shed { reason: Reason::UpstreamConnections, retry_after: AT_A_BOUND };
            return Check::Shed((StageName::Upstream, shed));
        };
        let mut takes_token = true;
        let ceiling_priority = service.ceiling_priority(now, request, position);
        if let Verdict::Shed(shed) = self.stages.flash_crowd.check(now, request.host_key, ceiling_priority) {
            if !self.stages.flash_crowd_options.is_shadow {
                if request.is_counted() {
                    self.stages.flash_crowd.refuse(request.host_key, ceiling_priority);
                }
                service.cancel(slot);
                return Check::Shed((StageName::FlashCrowd, shed));
            }
            takes_token = false;
            shadow.get_or_insert(ShadowRefusal { stage: StageName::FlashCrowd, shed, sentry: None });
        }
        let has_turn = slot.is_some();
        if let Err(shed) = service.check_between_nodes(now, request, has_turn) {
            service.cancel(slot);
            return Check::Shed((StageName::of(shed.reason), shed));
        }
        if !has_turn {
            *candidate = service.ask_candidate(now, request, position);
        }
        let slot = match service.check_sentry(now, request, position, slot, shadow) {
            Check::Pass(slot) => slot,
            Check::Wait => return Check::Wait,
            Check::Shed(shed) => return Check::Shed((StageName::Sentry, shed)),
        };
        if let Err(shed) = service.upstream.check() {
            service.cancel(slot);
            return Check::Shed((StageName::Upstream, shed));
        }
        Check::Pass(Reserved { takes_token, slot, position })
    }

    /// Every stage has let the request pass: each takes its share.
    fn commit(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        arrived: Instant,
        is_retry: bool,
        reserved: Reserved,
        candidate: Option<CandidateKey>,
    ) -> Permit {
        let key = request.service;
        let mut origin = None;
        if let Some(service) = find(&mut self.services, key) {
            self.stages.flash_crowd.commit(request.host_key, request.ceiling_priority, reserved.takes_token);
            let asked = SentryRequest { position: reserved.position, ..request.for_sentry() };
            let usual_us = service.sentry.as_ref().map_or(0, |sentry| sentry.gate.cost_us(&asked));
            let slot = match (reserved.slot, &mut service.sentry) {
                (Some(slot), Some(sentry)) => SlotShare::Taken(sentry.gate.commit(now, arrived, asked, slot)),
                _ => SlotShare::None,
            };
            service.commit_between_nodes(now, request);
            let charge = service.shares.begin(now, request.class, request.client_key, usual_us);
            if service.is_judged_fairly(now, request) {
                service.fairness.admit(usual_us);
            }
            service.upstream.commit();
            service.ledger.admitted += 1;
            service.ledger.again += u64::from(!request.is_counted());
            service.origin_shares += 1;
            if let Some((policy, key)) = service.candidate_of(candidate) {
                policy.live_let_in(now, key);
            }
            origin = Some(OriginShare { service: key, slot, charge, candidate });
        }
        self.ledger.admitted += 1;
        self.ledger.again += u64::from(!request.is_counted());
        if self.judged(key) == Judged::Whole {
            self.stages.flash_crowd.entered();
        }
        // A retry, or a request that is asked again, may be remembered as refused.
        if is_retry || request.asking == Asking::Again {
            self.attempts.forget(request.person_key);
        }
        Permit { service: key, origin }
    }

    /// Position of the request among those of its class while its service is short, and the reason why
    /// fairness has it come last, if so.
    fn position(&mut self, now: Instant, request: &AdmissionRequest) -> (Position, Option<Cause>) {
        let is_hot =
            self.stages.flash_crowd.is_hot(request.host_key) && !self.stages.flash_crowd_options.is_shadow;
        let service = find(&mut self.services, request.service);
        let service = service.filter(|_| request.ceiling_priority != CeilingPriority::Exempt);
        let Some(service) = service else { return (Position::Usual, None) };
        let Judgement { is_person, demoted } = service.judge_fairly(now, request, &self.evidence);
        self.was_person = is_person;
        // A person's page and its assets are a burst; fairness judges whether there are too many of them.
        let is_over = !is_person && service.shares.is_over(now, request.class, request.client_key);
        match (is_over, demoted) {
            _ if request.asking == Asking::Refresh => (Position::HotSpot, None),
            // The client's own share at the origin is the first reason; a demotion by fairness comes second.
            (true, _) => (Position::OverShare, None),
            (false, Some(_)) => (Position::OverShare, demoted),
            (false, None) if is_hot && service.shares.is_short(now) => (Position::HotSpot, None),
            (false, None) => (Position::Usual, None),
        }
    }

    /// Returns true if a request that has to wait would be answered too late for its caller: see
    /// [`SentryGate::shortest_wait`]. A request that need not wait is sent regardless of the usual time of
    /// the origin, so that a wrong estimate cannot refuse all requests for good.
    ///
    /// [`SentryGate::shortest_wait`]: crate::sentry::SentryGate::shortest_wait
    fn would_be_late(&self, now: Instant, request: &AdmissionRequest, position: Position) -> bool {
        let (Some(deadline), Some(gate)) = (request.deadline, self.sentry(request.service)) else {
            return false;
        };
        let asked = SentryRequest { position, ..request.for_sentry() };
        let service = Duration::from_micros(u64::from(gate.cost_us(&asked) / QUICK_PART));
        deadline <= now + gate.shortest_wait(now, &asked) + service
    }

    /// Returns true if many wait already where this request is to wait.
    fn is_crowded(&self, request: &AdmissionRequest) -> bool {
        self.sentry(request.service).is_some_and(|gate| gate.is_crowded(request.class))
    }

    /// Many requests wait, or one is refused. That of a client over its share says only that others come
    /// first.
    fn is_short_at(&mut self, now: Instant, request: &AdmissionRequest, position: Position) {
        let says_so = position < Position::OverShare && request.is_counted();
        let service = self.service_mut(request.service).filter(|_| says_so);
        service.into_iter().for_each(|service| service.shares.is_short_at(now));
    }

    fn enqueue(&mut self, now: Instant, waiter: Waiter<T>) -> Arrival<T> {
        let key = waiter.request.service;
        let position = waiter.position;
        let asked = SentryRequest { position, ..waiter.request.for_sentry() };
        let service = find(&mut self.services, key);
        let Some((service, candidate)) = service.map(|service| (service, waiter.candidate)) else {
            unreachable!("a service was asked whether the request may wait");
        };
        if let Some((policy, key)) = service.candidate_of(candidate) {
            policy.live_holds(now, key);
        }
        let Some(sentry) = &mut service.sentry else { unreachable!("only a sentry lets requests wait") };
        match sentry.gate.enqueue(now, asked, waiter) {
            Enqueued::Queued(ticket) => Arrival::Queued(Ticket { service: key, ticket, position }, None),
            Enqueued::QueuedInsteadOf(ticket, other, shed) => {
                let refusal = self.refuse_waiting(now, &other, StageName::Sentry, shed);
                Arrival::Queued(Ticket { service: key, ticket, position }, Some((other.kept, refusal)))
            }
            Enqueued::Turn(waiter, slot) => match self.take_turn(now, waiter, slot) {
                Released::Admitted(_, permit, shadow) => Arrival::Admitted(permit, shadow),
                Released::Refused(_, refusal) => Arrival::Refused(refusal),
            },
            Enqueued::Shed(waiter, shed) => {
                Arrival::Refused(self.refuse_waiting(now, &waiter, StageName::Sentry, shed))
            }
        }
    }

    /// A request that waited has a slot: the other stages are asked again, for a ceiling may have closed
    /// meanwhile.
    fn take_turn(&mut self, now: Instant, waiter: Waiter<T>, slot: Slot) -> Released<T> {
        if waiter.request.is_late(now) {
            // Its turn came before the shell noticed.
            if let Some(service) = self.service_mut(waiter.request.service) {
                service.cancel(Some(slot));
            }
            let refusal = self.refuse_waiting(now, &waiter, StageName::Bounds, LATE);
            return Released::Refused(waiter.kept, refusal);
        }
        let Waiter { request, mut shadow, mut candidate, .. } = waiter;
        let passage = Passage {
            request: &request,
            position: waiter.position,
            slot: Some(slot),
            shadow: &mut shadow,
            candidate: &mut candidate,
        };
        match self.check(now, passage) {
            Check::Pass(reserved) => {
                let permit = self.commit(now, &request, waiter.arrived, waiter.is_retry, reserved, candidate);
                Released::Admitted(waiter.kept, permit, shadow)
            }
            Check::Shed((stage, shed)) => {
                let refusal = self.refuse_waiting(now, &waiter, stage, shed);
                Released::Refused(waiter.kept, refusal)
            }
            Check::Wait => unreachable!("a request that has a slot does not wait for one"),
        }
    }

    /// Refuses a request that has a place in the gateway.
    fn refuse_waiting(&mut self, now: Instant, waiter: &Waiter<T>, stage: StageName, shed: Shed) -> Refusal {
        self.stages.bounds.give_back();
        self.refuse(now, &waiter.request, stage, shed, waiter.candidate, waiter.demoted)
    }

    /// Charges a refusal to one stage.
    fn refuse(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        stage: StageName,
        mut shed: Shed,
        candidate: Option<CandidateKey>,
        demoted: Option<Cause>,
    ) -> Refusal {
        if demoted.is_some() && shed.reason == Reason::ClientShare {
            shed.reason = Reason::FairShare;
        }
        debug_assert_eq!(stage, StageName::of(shed.reason), "{:?}", shed.reason);
        let is_counted = request.is_counted();
        if is_counted {
            self.ledger.refuse(stage);
            self.attempts_replaced += u64::from(self.attempts.remember(now, request.person_key));
        }
        let mut refusal = Refusal { stage, shed, sentry: None, candidate: None, demoted };
        let Some(service) = self.service_mut(request.service) else { return refusal };
        if is_counted {
            service.ledger.refuse(stage);
        }
        if is_counted && shed.reason != Reason::CallerDeadline {
            service.fairness.refuse(now);
        }
        if let Some(sentry) = service.sentry_for(request) {
            if stage == StageName::Sentry {
                refusal.sentry = Some(figures(&sentry.gate, now, request.class));
            } else if is_counted {
                sentry.gate.observe_refused_elsewhere(request.for_sentry());
            }
        }
        if let Some(asked) = candidate
            && let Some((policy, key)) = service.candidate_of(candidate)
        {
            refusal.candidate = Some(CandidateOpinion {
                decision: policy.decision(key),
                class: asked.class,
                in_flight: policy.in_flight(),
            });
            policy.live_refused(now, key);
        }
        refusal
    }
}

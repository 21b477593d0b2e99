//! The gate: workers, each with the gateway's own pipeline, and the planners of its stages.

use super::counts::{GateCounts, Ledger};
use super::demoted::Demoted;
use super::flash_crowd::FlashCrowdPlanning;
use super::reason::{Refusal, ShedReason};
use super::sentry::SentryPlanning;
use super::simulated_request::{Acknowledged, Decided, ReleasedTry, SimulatedRequest, Ticked};
use super::witness::How;
use super::worker::{Waiting, Worker};
use super::{LimitTaken, PlanTaken, Policy};
use crate::request::slab::Id;
use crate::request::{ClassModel, Demotions};
use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::flash_crowd::{CeilingPriority, Response};
use flashweir_admission::ladder::Rungs;
use flashweir_admission::pipeline::{
    self, AdmissionRequest, Arrival, Asking, Delivery, GatewayCount, Judged, Permit, Released,
    RequestOutcome, ServiceSettings, SharedByWorkers, StageName, Ticket,
};
use flashweir_admission::retry_after::{AT_A_BOUND, RetryAfter};
use flashweir_admission::sentry::Plan;
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_core::hash::mix;
use flashweir_core::{Hasher64, Instant, Rate, Rng};
use std::sync::Arc;

/// The gate with its policy.
#[derive(Debug)]
pub(in crate::request) struct GateStage {
    workers: Vec<Worker>,
    flash_crowd: Option<FlashCrowdPlanning>,
    sentry: Option<SentryPlanning>,
    /// A rate set by hand, which has no planner.
    static_rate: Option<TokenBucket>,
    in_gateway: Arc<GatewayCount>,
    most_in_flight: usize,
    hasher: Hasher64,
    /// Spreads `Retry-After`: by person where the flash-crowd stage knows persons, else at random.
    jitter_seed: u64,
    jitter: Rng,
    /// Of each class of the scenario.
    ceiling_priorities: Vec<CeilingPriority>,
    /// Of each class: whether its people are one client.
    are_one_client: Vec<bool>,
    ledger: Ledger,
    demotions: Demoted,
}

impl GateStage {
    pub(in crate::request) fn new(
        policy: &Policy,
        classes: &[ClassModel],
        most_in_flight: Option<u64>,
        seed: u64,
    ) -> Self {
        let keys = Rng::new(seed).fork(GATE);
        let count = policy.workers();
        let flash_crowd =
            policy.flash_crowd_policy().map(|policy| FlashCrowdPlanning::new(policy, count, keys.fork(2)));
        let sentry = policy.sentry_policy().map(|policy| {
            let classes = classes.iter().map(|class| class.policy_class).collect();
            // Where both planners lose samples, they lose different ones.
            let losses = keys.fork(if flash_crowd.is_some() { 4 } else { 2 });
            SentryPlanning::new(policy, classes, count, losses, keys.fork(3))
        });
        let static_rate = match policy {
            Policy::StaticRate { rate, burst } => Some(TokenBucket::full(Instant::ZERO, *rate, *burst)),
            Policy::None | Policy::Pipeline(_) => None,
        };
        let shared = SharedByWorkers::default();
        let most_in_flight = most_in_flight.map_or(usize::MAX, |most| most as usize);
        let options = flash_crowd.as_ref().map(FlashCrowdPlanning::options).unwrap_or_default();
        let workers = (0..count).map(|index| {
            let of_sentry =
                sentry.as_ref().map(|sentry| (&sentry.common, sentry.policy(), &sentry.plan, false));
            let service = ServiceSettings { sentry: of_sentry, upstream_capacity: usize::MAX };
            Worker::new(index, &shared, (most_in_flight, options), service)
        });
        let mut key = keys.fork(0);
        Self {
            workers: workers.collect(),
            flash_crowd,
            sentry,
            static_rate,
            in_gateway: shared.in_gateway.clone(),
            most_in_flight,
            hasher: Hasher64::new(key.next_u64(), key.next_u64()),
            jitter_seed: keys.fork(1).next_u64(),
            jitter: keys.fork(1),
            ceiling_priorities: classes.iter().map(|class| class.ceiling_priority).collect(),
            are_one_client: classes.iter().map(|class| class.is_one_client).collect(),
            ledger: Ledger::new(classes.len()),
            demotions: Demoted::new(classes.len()),
        }
    }

    /// The keys that the gateway's classifier would make of a request's head; none where no policy looks at
    /// them.
    pub(in crate::request) fn classify(
        &self,
        class: u16,
        host: u32,
        person: u64,
        document: u32,
    ) -> SimulatedRequest {
        // Persons are numbered within their class.
        let connection_key = mix((u64::from(class) << 48) ^ person);
        let client = if self.are_one_client[usize::from(class)] { 0 } else { person };
        let mut person_key = 0;
        if self.flash_crowd.is_some() || self.sentry.is_some() {
            let mut who = [0; 14];
            who[..8].copy_from_slice(&client.to_le_bytes());
            who[8..12].copy_from_slice(&document.to_le_bytes());
            who[12..].copy_from_slice(&class.to_le_bytes());
            person_key = self.hasher.hash(&[&who]);
        }
        let client_key = mix((u64::from(class) << 48) ^ client);
        let signs = RequestSigns::default();
        SimulatedRequest { person_key, class, document, host, client_key, connection_key, signs }
    }

    /// Decides one request.
    pub(in crate::request) fn decide(
        &mut self,
        now: Instant,
        attempt: Id,
        asked: &SimulatedRequest,
    ) -> Decided {
        self.ledger.change(asked.class, |counts| counts.received += 1);
        let is_full = self.in_gateway.get() >= self.most_in_flight;
        if let Some(bucket) = &mut self.static_rate
            && !is_full
            && !bucket.admit(now)
        {
            self.ledger.change(asked.class, |counts| counts.shed += 1);
            return Decided::Refused(Refusal { reason: ShedReason::StaticRate, retry_after_s: None });
        }
        let place = self.place(asked);
        let class = self.sentry_class(asked.class);
        let ceiling_priority = self.ceiling_priorities[usize::from(asked.class)];
        let worker = &mut self.workers[place];
        let request = AdmissionRequest {
            service: worker.service,
            class,
            ceiling_priority,
            client_key: asked.client_key,
            url_class: asked.url_class(),
            host_key: host_key(asked.host),
            person_key: asked.person_key,
            candidate: None,
            is_beyond_sender_share: false,
            deadline: None,
            closed: None,
            signs: asked.signs,
            asking: Asking::First,
        };
        let waiting = Waiting { attempt, class: asked.class, person_key: asked.person_key };
        let arrival = worker.pipeline.arrive(now, request, waiting);
        self.demotions.record(now, asked, worker.pipeline.demoted());
        if let Some(sentry) = self.sentry.as_mut().filter(|_| ceiling_priority != CeilingPriority::Exempt) {
            let is_long = sentry.in_force().long.has(asked.url_class());
            let SentryPlanning { classes, witness, .. } = sentry;
            witness.arrived(place, class.into(), attempt, &arrival, is_long, |other| {
                usize::from(classes[usize::from(other.class)])
            });
        }
        self.decided(asked, arrival)
    }

    fn decided(&mut self, asked: &SimulatedRequest, arrival: Arrival<Waiting>) -> Decided {
        match arrival {
            Arrival::Admitted(permit, shadow) => {
                let is_shadow = shadow.is_some();
                self.ledger.change(asked.class, |counts| {
                    counts.admitted += 1;
                    counts.shed_in_shadow += u64::from(is_shadow);
                });
                Decided::Admitted(permit)
            }
            Arrival::Refused(refusal) => {
                self.ledger.change(asked.class, |counts| counts.shed += 1);
                Decided::Refused(self.refusal(&refusal, asked.person_key))
            }
            Arrival::Queued(ticket, displaced) => {
                self.ledger.change(asked.class, |counts| counts.held += 1);
                let Some((other, refusal)) = displaced else { return Decided::Held(ticket) };
                self.ledger.change(other.class, |counts| {
                    counts.held -= 1;
                    counts.shed += 1;
                });
                Decided::HeldInsteadOf(ticket, other.attempt, self.refusal(&refusal, other.person_key))
            }
        }
    }

    /// The next of those who were held that waits no longer, if there is one.
    pub(in crate::request) fn release(&mut self, now: Instant) -> Option<ReleasedTry> {
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            if !worker.looks {
                continue;
            }
            if let Some(released) = worker.pipeline.next(now, worker.service) {
                worker.offers_room = true;
                return Some(self.released(index, released));
            }
            worker.looks = false;
            // No request here takes the room that there is: one at another worker may.
            if std::mem::take(&mut worker.offers_room)
                && let Some(other) = worker.pipeline.who_waits(worker.service)
            {
                self.tell(now, other);
            }
        }
        None
    }

    fn released(&mut self, worker: usize, released: Released<Waiting>) -> ReleasedTry {
        let (Released::Admitted(who, ..) | Released::Refused(who, _)) = &released;
        let who = *who;
        let class = usize::from(self.sentry_class(who.class));
        self.ledger.change(who.class, |counts| {
            counts.held -= 1;
            match released {
                Released::Admitted(..) => counts.admitted += 1,
                Released::Refused(..) => counts.shed += 1,
            }
        });
        let witness = self.sentry.as_mut().map(|sentry| &mut sentry.witness);
        match released {
            Released::Admitted(_, permit, _) => {
                witness
                    .into_iter()
                    .for_each(|witness| witness.admitted(worker, class, How::AfterWaiting(who.attempt)));
                ReleasedTry::Admitted(who.attempt, permit)
            }
            Released::Refused(_, refusal) => {
                witness
                    .into_iter()
                    .for_each(|witness| witness.shed(worker, class, Some(who.attempt), refusal.stage));
                ReleasedTry::Refused(who.attempt, self.refusal(&refusal, who.person_key))
            }
        }
    }

    /// A worker that is to be called, and when: because a queue timeout expires or a batch round is due
    /// there, or because it was notified of a plan or of room. To be asked until there is none.
    pub(in crate::request) fn next_call(&mut self, now: Instant) -> Option<(Instant, u16)> {
        let mut workers = self.workers.iter_mut().zip(0..);
        workers.find_map(|(worker, index)| Some((worker.next_call(now)?, index)))
    }

    /// A worker is called: [`release`](Self::release) is to be asked.
    pub(in crate::request) fn call(&mut self, now: Instant, worker: u16) {
        if let Some(sentry) = &self.sentry {
            self.workers[usize::from(worker)].hear(now, sentry.in_force());
        }
    }

    /// The client of a try that is held has gone.
    pub(in crate::request) fn leave(&mut self, now: Instant, asked: &SimulatedRequest, ticket: Ticket) {
        let place = self.place(asked);
        if let Some(who) = self.workers[place].pipeline.leave(now, ticket) {
            let class = usize::from(self.sentry_class(who.class));
            self.sentry.iter_mut().for_each(|sentry| sentry.witness.left(place, class, who.attempt));
            self.ledger.change(asked.class, |counts| {
                counts.held -= 1;
                counts.left += 1;
            });
        }
    }

    /// An admitted request is over, and how; its whole answer, if there is one, sets out.
    pub(in crate::request) fn finish(
        &mut self,
        now: Instant,
        asked: &SimulatedRequest,
        permit: Permit,
        outcome: RequestOutcome,
    ) -> Option<Delivery> {
        self.ledger.change(asked.class, |counts| counts.ended += 1);
        let place = self.place(asked);
        let worker = &mut self.workers[place];
        let delivery = worker.pipeline.finish(now, permit, outcome);
        worker.look();
        delivery
    }

    /// An answer's client has all of it, or is known not to get it.
    pub(in crate::request) fn deliver(
        &mut self,
        asked: &SimulatedRequest,
        delivery: Option<Delivery>,
        has_all: bool,
    ) {
        let place = self.place(asked);
        if let Some(delivery) = delivery {
            self.workers[place].pipeline.deliver(delivery, has_all);
        }
    }

    /// A whole answer to what was admitted at `started` reached its client.
    pub(in crate::request) fn observe(
        &mut self,
        now: Instant,
        asked: &SimulatedRequest,
        started: Instant,
        answered: impl FnOnce() -> Acknowledged,
    ) {
        let place = self.place(asked);
        if !self.flash_crowd.as_mut().is_some_and(|stage| stage.measures(now, place)) {
            return;
        }
        let Acknowledged { bytes, handed, at, rate_bytes_per_s } = answered();
        let worker = &self.workers[place];
        let latency_s = match worker.pipeline.judged(worker.service) {
            Judged::Delivery => at.saturating_since(handed).as_secs_f32(),
            Judged::Whole => {
                let latency = at.saturating_since(started);
                latency.as_secs_f32() / worker.pipeline.target_stretch(worker.service)
            }
        };
        let url_class = asked.url_class();
        let response = Response { started, bytes, latency_s, rate_bytes_per_s, url_class };
        self.workers[place].pipeline.observe_response(response);
    }

    /// Time at which [`tick`](Self::tick) is next due.
    pub(in crate::request) fn next_tick_at(&self) -> Option<Instant> {
        let flash_crowd = self.flash_crowd.as_ref().map(FlashCrowdPlanning::next_tick_at);
        let sentry = self.sentry.as_ref().map(SentryPlanning::next_tick_at);
        flash_crowd.into_iter().chain(sentry).min()
    }

    /// Samples, plans, stages: what the gateway's planner loops do. `lost_feedback` of the samples get lost.
    pub(in crate::request) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Ticked {
        let mut ticked = Ticked::default();
        if let Some(planning) = self.flash_crowd.as_mut().filter(|planning| planning.next_tick_at() <= now) {
            for worker in &mut self.workers {
                planning.observe(now, &worker.pipeline.drain_flash_crowd(now), lost_feedback);
            }
            let (plan, explanation) = planning.plan(now);
            self.workers.iter_mut().for_each(|worker| worker.pipeline.apply_flash_crowd(now, &plan));
            ticked.flash_crowd = Some(PlanTaken { at: now, explanation });
        }
        if let Some(planning) = self.sentry.as_mut().filter(|planning| planning.next_tick_at() <= now) {
            for worker in &mut self.workers {
                if let Some(sample) = worker.pipeline.drain_sentry(now, worker.service) {
                    planning.observe(now, sample, lost_feedback);
                }
            }
            ticked.sentry = Some(LimitTaken { at: now, plan: planning.plan(now) });
            (0..self.workers.len()).for_each(|worker| self.tell(now, worker));
        }
        ticked
    }

    /// The sentry's plan in force.
    pub(in crate::request) fn sentry_plan(&self) -> Option<&Plan> {
        self.sentry.as_ref().map(|sentry| &sentry.plan)
    }

    /// A ladder holds the backlog, or none does: see [`in_order`](flashweir_admission::ladder::in_order).
    pub(in crate::request) fn obey_ladder(&mut self, ladder: Option<(Rungs, Rate)>) {
        self.sentry.iter_mut().for_each(|sentry| sentry.obey_ladder(ladder.clone()));
    }

    pub(in crate::request) fn counts(&self) -> GateCounts {
        self.ledger.all
    }

    /// The same by class, in the scenario's order.
    pub(in crate::request) fn counts_by_class(&self) -> &[GateCounts] {
        &self.ledger.classes
    }

    /// Takes the demotions by fairness, by class.
    pub(in crate::request) fn demotions(&mut self) -> Vec<Demotions> {
        self.demotions.take()
    }

    /// Checks the invariants of the pipelines, and of the policy's own state.
    pub(in crate::request) fn check(&self, now: Instant) -> Result<(), String> {
        self.check_conservation()?;
        let Some(sentry) = &self.sentry else { return Ok(()) };
        if let Some(worker) = self.workers.iter().position(Worker::spins) {
            return Err(format!("worker {worker} is to look again and again at this very moment"));
        }
        let waiting = self.workers.iter().map(|worker| worker.pipeline.waiting(worker.service) as u64).sum();
        let is_looked_after = self.workers.iter().any(|worker| worker.is_awaited(now));
        // Exempt requests are none of the sentry's.
        let of_sentry = self.ledger.classes.iter().zip(&self.ceiling_priorities);
        let of_sentry =
            of_sentry.filter(|(_, ceiling_priority)| **ceiling_priority != CeilingPriority::Exempt);
        let counts = of_sentry.fold(GateCounts::default(), |sum, (class, _)| sum.plus(class));
        sentry.check(&counts, waiting, is_looked_after)
    }

    /// Offered are the admitted, the refused, each by one stage, those who left and those who wait; and what
    /// is in the gateway is what all of them hold.
    fn check_conservation(&self) -> Result<(), String> {
        let mut in_gateway = 0;
        for (index, worker) in self.workers.iter().enumerate() {
            let ledger = worker.pipeline.ledger();
            let waiting = worker.pipeline.waiting(worker.service) as u64;
            if ledger.offered != ledger.admitted + ledger.shed() + ledger.left + waiting {
                return Err(format!("worker {index}: {ledger:?} and {waiting} waiting do not add up"));
            }
            in_gateway += ledger.in_flight() + waiting;
        }
        match self.in_gateway.get() as u64 {
            counted if counted != in_gateway => {
                Err(format!("{counted} requests in the gateway by its count, but {in_gateway} are"))
            }
            _ => Ok(()),
        }
    }

    /// Notifies a worker of a plan or of room. A single worker takes it up at once: it is where it happens.
    fn tell(&mut self, now: Instant, worker: usize) {
        let Some(sentry) = &mut self.sentry else { return };
        if let [only] = &mut self.workers[..] {
            only.hear(now, sentry.in_force());
        } else {
            self.workers[worker].tell(now, &mut sentry.crossings);
        }
    }

    /// The worker that has this client's connection; without a sentry, the person key decides.
    fn place(&self, asked: &SimulatedRequest) -> usize {
        let key = if self.sentry.is_some() { mix(asked.connection_key) } else { asked.person_key };
        ((u128::from(key) * self.workers.len() as u128) >> 64) as usize
    }

    fn sentry_class(&self, class: u16) -> u8 {
        self.sentry.as_ref().map_or(0, |sentry| sentry.class(class))
    }

    /// A refusal as the client receives it.
    fn refusal(&mut self, refusal: &pipeline::Refusal, person_key: u64) -> Refusal {
        let after = refusal.shed.retry_after;
        // At most 60 s.
        let told_s = if self.flash_crowd.is_some() {
            RetryAfter::new(after, person_key, self.jitter_seed).jittered_s as u16
        } else if refusal.stage == StageName::Bounds {
            AT_A_BOUND.as_secs() as u16
        } else {
            RetryAfter::new(after, self.jitter.next_u64(), 0).jittered_s as u16
        };
        Refusal { reason: ShedReason::Gateway(refusal.shed.reason), retry_after_s: Some(told_s) }
    }
}

/// Key of a hot spot. Hosts are few, and their numbers are not chosen to collide: a mixer suffices.
pub(in crate::request) fn host_key(host: u32) -> u64 {
    mix(u64::from(host) + 1)
}

/// Names the gate's fork of the seed: "gate" in ASCII.
const GATE: u64 = 0x6761_7465 << 32;

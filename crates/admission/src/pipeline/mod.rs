//! The only place where controllers meet: the stages of one worker, in one order, and the permits they give
//! together.
//!
//! ```text
//! arrive ─► bounds ─► flash crowd ─► ladder ─► gapping ─► sentry ─► upstream ─► Permit ─► end_at_origin ─► finish
//!             │           │            │          │         ├─ queue ─► next: the same checks again, from the flash crowd on
//!             ▼           ▼            ▼          ▼         ▼           ▼
//!          Refusal, charged to exactly one stage
//! ```
//!
//! *Two phases.* A check takes nothing; only when every stage passes does each take its share. Two things are
//! shared by workers and therefore reserved by the check, inside their stages, and cancelled when a later
//! stage refuses: slots at the origin and places in the gateway. A request that waits holds its place in the
//! gateway, for it is there, and nothing else: when its turn comes every stage is asked again, because a
//! ceiling may have closed meanwhile.
//!
//! *One permit* carries all shares. The share at the origin may end before the request does
//! (`Permit::take_origin_share`), and pause while a client is waited for. Both end exactly once, with an
//! [`RequestOutcome`]; the shell sees to it that what is dropped ends as [`RequestOutcome::Abandoned`].
//!
//! *Demand* is counted once, at the door, before any decision: offered, and offered without recognised
//! retries (`refused_attempts`). Each refusal is charged to one stage in a ledger, from which every stage's
//! sample gets its flow. A request that is asked again, or that the shell sends for itself, is neither demand
//! nor charged ([`Asking`]); admitted, it takes its shares like others.
//!
//! *Clients' shares* are asked once, before the stages, and give a request its position in its class:
//! `shares` by what each client's requests took at the origin, [`fairness`](crate::fairness) by what clients
//! that behave alike are offered together.
//!
//! *Shadow.* Any stage may be in shadow: its opinion is recorded with the admission and does not bind. A
//! *candidate* is a second policy of a stage that has a planner (`flash_crowd::candidate`,
//! `sentry::candidate`), asked beside the live one, which binds no request either.
//!
//! *Services* come and go with the configuration. One that is retired takes no requests and keeps its stages
//! until its last request has ended, so a reload loses nothing. A service that has gone answers one question
//! still: which other worker waits for the slot that its last request gave back.
//!
//! A new controller is one folder, its entry of [`StageName`] and its lines in `order`. Cost: see
//! `benches/decisions`; no allocation but what queues grow by, integers only.

mod admissible;
mod between_nodes;
mod bounds;
mod connections;
mod copies;
mod gateway_count;
mod ledger;
mod order;
mod refused_attempts;
mod request;
mod service;
mod service_stages;
mod shares;
mod stage;
mod verdict;

pub use admissible::{AdmissibleRate, ServiceDemand, admissible_rate};
pub use connections::ConnectionPipeline;
pub use copies::CopyPermit;
pub use gateway_count::GatewayCount;
pub use ledger::Ledger;
pub use refused_attempts::RefusedAttempts;
pub use request::{
    AdmissionRequest, Arrival, Asking, CandidateOpinion, Delivery, FailureSource, OriginReport, OriginShare,
    Permit, Refusal, Released, RequestOutcome, SentryFigures, ServiceKey, ShadowRefusal, Ticket,
};
pub use service::ServiceSettings;
pub use stage::{Resource, StageName};
pub use verdict::{LoadCause, LoadVerdict, Situation, VerdictKeeper};

use crate::fairness::{Cause, Evidence, FairnessStatus, RequestSigns};
use crate::flash_crowd::{self, Agreement, Response};
use crate::gapping::Restriction;
use crate::ladder;
use crate::sentry::{self, CandidateGate, Compared, SentryGate};
use alloc::sync::Arc;
use alloc::vec::Vec;
use flashweir_core::{Duration, Instant};
use ledger::FlowMark;
use order::Stages;
use service::Service;

/// The stages of one worker. `T` is what the shell keeps of a request that waits.
#[derive(Debug)]
pub struct Pipeline<T> {
    worker: usize,
    attempts: Arc<RefusedAttempts>,
    attempts_replaced: u64,
    evidence: Arc<Evidence>,
    /// Of the request that arrived last.
    demoted: Option<Cause>,
    was_person: bool,
    stages: Stages,
    flash_crowd_mark: FlowMark,
    flash_crowd_candidate_mark: FlowMark,
    /// By [`ServiceKey`]; one that has gone keeps its place until another is added.
    services: Vec<Service<T>>,
    /// Counts the services that were added.
    serial: u32,
    ledger: Ledger,
}

/// Number of entries that had to make room for others in tables of bounded size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replacements {
    /// Hosts in the table of what arrives.
    pub hosts: u64,
    /// Refusals that would still have been recognised when their clients come again.
    pub refused_attempts: u64,
}

/// Configuration of the flash-crowd stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCrowdOptions {
    /// It only records.
    pub is_shadow: bool,
    /// It judges the whole time of every response, as its authors do.
    pub judges_whole: bool,
}

/// Part of a response's time that a stage judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// From the moment the request was sent to the origin to its end.
    Whole,
    /// From the moment the gateway had the response to its end, and what the client was waited for before.
    Delivery,
}

/// State shared by the pipelines of all workers.
#[derive(Clone, Debug, Default)]
pub struct SharedByWorkers {
    /// Recognises retries, on any worker.
    pub attempts: Arc<RefusedAttempts>,
    /// Requests in the gateway.
    pub in_gateway: Arc<GatewayCount>,
    /// Evidence of clients that behave like people, over all workers.
    pub evidence: Arc<Evidence>,
}

impl<T> Pipeline<T> {
    /// The pipeline of worker `worker`, without services.
    #[must_use]
    pub fn new(worker: usize, shared: &SharedByWorkers) -> Self {
        Self {
            worker,
            attempts: shared.attempts.clone(),
            attempts_replaced: 0,
            evidence: shared.evidence.clone(),
            demoted: None,
            was_person: false,
            stages: Stages::new(worker, shared),
            flash_crowd_mark: FlowMark::default(),
            flash_crowd_candidate_mark: FlowMark::default(),
            services: Vec::new(),
            serial: 0,
            ledger: Ledger::default(),
        }
    }

    /// Settings of the stages that all services share; requests in the gateway at most.
    pub fn configure(&mut self, requests_in_flight_max: usize, flash_crowd: FlashCrowdOptions) {
        self.stages.bounds.set_max(requests_in_flight_max);
        self.stages.flash_crowd_options = flash_crowd;
    }

    /// A service that takes requests from now on.
    pub fn add_service(&mut self, settings: ServiceSettings<'_>) -> ServiceKey {
        let place = self.services.iter().position(|service| service.is_gone).unwrap_or(self.services.len());
        self.serial = self.serial.wrapping_add(1);
        let key = ServiceKey { place: place as u32, serial: self.serial };
        let service = Service::new(self.worker, key, settings);
        match self.services.get_mut(place) {
            Some(gone) => *gone = service,
            None => self.services.push(service),
        }
        key
    }

    /// Forgets the service once its last request has ended. The caller has no further request for it: one
    /// would be decided as before.
    pub fn retire_service(&mut self, key: ServiceKey) {
        if let Some(service) = self.service_mut(key) {
            service.is_retired = true;
        }
        self.drop_if_over(key);
    }

    /// Requests that the service's connections can carry at once.
    pub fn set_upstream_capacity(&mut self, key: ServiceKey, capacity: usize) {
        if let Some(service) = self.service_mut(key) {
            service.upstream.set_capacity(capacity);
        }
    }

    /// Another policy to compare with the service's, or none; what the one before it was comparing is
    /// forgotten.
    pub fn set_candidate(&mut self, key: ServiceKey, candidate: Option<CandidateGate>) {
        if let Some(service) = self.service_mut(key) {
            service.set_candidate(candidate);
        }
    }

    /// Takes over a plan of the flash-crowd planner.
    pub fn apply_flash_crowd(&mut self, now: Instant, plan: &flash_crowd::Plan) {
        self.stages.flash_crowd.apply(now, plan);
    }

    /// Another policy to compare with that of the flash-crowd stage, with its plan in force, or none.
    /// Measurements of an earlier candidate are discarded.
    pub fn set_flash_crowd_candidate(&mut self, now: Instant, plan: Option<&flash_crowd::Plan>) {
        self.stages.flash_crowd.set_candidate(self.worker, now, plan);
        self.flash_crowd_candidate_mark.advance(&self.ledger, StageName::FlashCrowd);
    }

    /// Takes over a plan of the flash-crowd stage's candidate, if it has one.
    pub fn apply_flash_crowd_candidate(&mut self, now: Instant, plan: &flash_crowd::Plan) {
        self.stages.flash_crowd.apply_candidate(now, plan);
    }

    /// Takes over a plan of a service's sentry. [`next`](Self::next) is to be asked afterwards.
    pub fn apply_sentry(&mut self, key: ServiceKey, plan: &sentry::Plan) {
        if let Some(sentry) = self.service_mut(key).and_then(|service| service.sentry.as_mut()) {
            sentry.gate.apply(plan);
        }
    }

    /// Takes over what a service's ladder discards from now on.
    pub fn apply_ladder(&mut self, key: ServiceKey, orders: ladder::Orders) {
        if let Some(service) = self.service_mut(key) {
            service.between_nodes.obey(orders);
        }
    }

    /// Sets the restriction that a service's upstream asks of this worker from now on, or lifts it.
    pub fn apply_gapping(&mut self, now: Instant, key: ServiceKey, restriction: Option<Restriction>) {
        if let Some(service) = self.service_mut(key) {
            service.between_nodes.restrict(now, restriction);
        }
    }

    /// A class's place in the order of importance, 0 the first, by the sentry's plan in force; none where
    /// there is no sentry.
    #[must_use]
    pub fn rank(&self, key: ServiceKey, class: u8) -> Option<u8> {
        self.sentry(key).map(|gate| gate.rank(class))
    }

    /// Takes over a plan of a service's candidate.
    pub fn apply_candidate(&mut self, key: ServiceKey, plan: &sentry::Plan) {
        if let Some((candidate, _)) = self.service_mut(key).and_then(|service| service.candidate.as_mut()) {
            candidate.apply(plan);
        }
    }

    /// Factor by which the responses of a service may take longer than usual under its target in force. Their
    /// measured times are to be divided by it, so that the other stages' references hold: a slower answer
    /// that was planned is no worse.
    #[must_use]
    pub fn target_stretch(&self, key: ServiceKey) -> f32 {
        self.sentry(key).map_or(1.0, SentryGate::target_stretch)
    }

    /// Part of a response's time that the flash-crowd stage is to judge for this service. The origin's part
    /// is the sentry's where there is one that acts; the published rules judge the whole.
    #[must_use]
    pub fn judged(&self, key: ServiceKey) -> Judged {
        let sentry = self.service(key).and_then(|service| service.sentry.as_ref());
        match sentry.is_some_and(|sentry| !sentry.is_shadow) && !self.stages.flash_crowd_options.judges_whole
        {
            true => Judged::Delivery,
            false => Judged::Whole,
        }
    }

    /// A whole response is fit to be judged.
    pub fn observe_response(&mut self, response: Response) {
        self.stages.flash_crowd.observe_response(response);
    }

    /// Number of times that the tables of bounded size have made room since the pipeline was made.
    #[must_use]
    pub fn replacements(&self) -> Replacements {
        Replacements {
            hosts: self.stages.flash_crowd.hosts_replaced(),
            refused_attempts: self.attempts_replaced,
        }
    }

    /// Drains the measurements of the flash-crowd stage since the last time.
    pub fn drain_flash_crowd(&mut self, now: Instant) -> flash_crowd::Sample {
        let unique_offered = self.ledger.unique_offered - self.flash_crowd_mark.unique_offered();
        let flow = self.flash_crowd_mark.advance(&self.ledger, StageName::FlashCrowd);
        self.stages.flash_crowd.drain(now, flow, unique_offered)
    }

    /// Drains the measurements of the flash-crowd stage's candidate since the last time, and the comparison.
    pub fn drain_flash_crowd_candidate(&mut self, now: Instant) -> Option<(flash_crowd::Sample, Agreement)> {
        let mark = &mut self.flash_crowd_candidate_mark;
        let unique_offered = self.ledger.unique_offered - mark.unique_offered();
        let flow = mark.advance(&self.ledger, StageName::FlashCrowd);
        self.stages.flash_crowd.drain_candidate(now, flow, unique_offered)
    }

    /// Drains the measurements of a service's sentry since the last time; none where it has no sentry.
    pub fn drain_sentry(&mut self, now: Instant, key: ServiceKey) -> Option<sentry::Sample> {
        let service = self.service_mut(key)?;
        let flow = service.mark.advance(&service.ledger, StageName::Sentry);
        let mut sample = service.sentry.as_mut()?.gate.drain(now);
        sample.flow = flow;
        Some(sample)
    }

    /// Drains the measurements of a service's candidate since the last time, and the comparisons.
    pub fn drain_candidate(
        &mut self,
        now: Instant,
        key: ServiceKey,
    ) -> Option<(sentry::Sample, Vec<Compared>)> {
        self.service_mut(key)?.candidate.as_mut().map(|(candidate, _)| candidate.drain(now))
    }

    /// Time at which [`next`](Self::next) is to be asked for a service even if nothing else happens.
    /// O(classes).
    #[must_use]
    pub fn next_wake(&self, key: ServiceKey) -> Option<Instant> {
        self.sentry(key)?.next_wake()
    }

    /// Another worker that may have a request for the room that this service has, once [`next`](Self::next)
    /// has none here.
    #[must_use]
    pub fn who_waits(&self, key: ServiceKey) -> Option<usize> {
        let service = self.services.get(key.place as usize).filter(|service| service.key == key)?;
        service.sentry.as_ref()?.gate.who_waits()
    }

    /// The services, retired ones included.
    pub fn services(&self) -> impl Iterator<Item = ServiceKey> + use<T> {
        let present = self.services.iter().filter(|service| !service.is_gone);
        present.map(|service| service.key).collect::<Vec<_>>().into_iter()
    }

    /// Returns true if the service is there, be it retired.
    #[must_use]
    pub fn has_service(&self, key: ServiceKey) -> bool {
        self.service(key).is_some()
    }

    /// Outcomes of the requests that arrived at this worker.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Outcomes of those for one service.
    #[must_use]
    pub fn service_ledger(&self, key: ServiceKey) -> Option<&Ledger> {
        Some(&self.service(key)?.ledger)
    }

    /// The requests that wait at this worker for one service.
    #[must_use]
    pub fn waiting(&self, key: ServiceKey) -> usize {
        self.sentry(key).map_or(0, SentryGate::held)
    }

    /// Requests at the origin, of all workers.
    #[must_use]
    pub fn at_origin(&self, key: ServiceKey) -> u32 {
        self.sentry(key).map_or(0, SentryGate::in_flight)
    }

    /// Virtual requests at the origin under the candidate policy, of all workers.
    #[must_use]
    pub fn at_origin_of_candidate(&self, key: ServiceKey) -> u32 {
        let candidate = self.service(key).and_then(|service| service.candidate.as_ref());
        candidate.map_or(0, |(candidate, _)| candidate.in_flight())
    }

    /// Expected time of a request at the origin, microseconds; 0 if unknown.
    #[must_use]
    pub fn cost_us(&self, request: &AdmissionRequest) -> u32 {
        self.sentry(request.service).map_or(0, |gate| gate.cost_us(&request.for_sentry()))
    }

    /// Reason why the request that arrived last comes after the others of its class, if fairness found it
    /// over its share.
    #[must_use]
    pub fn demoted(&self) -> Option<Cause> {
        self.demoted
    }

    /// Returns true if the client of the request that arrived last behaves like a person.
    #[must_use]
    pub fn was_person(&self) -> bool {
        self.was_person
    }

    /// A request is answered without the stages: it is evidence of a person all the same. Whether its client
    /// behaves like one.
    pub fn observe_conduct(&self, now: Instant, signs: &RequestSigns) -> bool {
        signs.person_key != 0 && self.evidence.observe(now, signs.person_key, signs.conduct).is_person
    }

    /// Returns true if a service is short, for all or for those who come last: only then are the values of a
    /// request's signs evaluated.
    #[must_use]
    pub fn compares_clients(&self, now: Instant, key: ServiceKey) -> bool {
        self.service(key).is_some_and(|service| service.is_short(now))
    }

    /// Fairness figures of a service's clients at this worker.
    #[must_use]
    pub fn fairness(&self, now: Instant, key: ServiceKey) -> FairnessStatus {
        self.service(key).map(|service| service.fairness.status(now)).unwrap_or_default()
    }

    /// Requests refused by a candidate's bound on what is compared, since the last time.
    pub fn take_candidate_overflows(&mut self) -> u64 {
        self.services.iter_mut().map(|service| core::mem::take(&mut service.candidate_overflows)).sum()
    }

    /// Wait of the oldest request of a class at this worker.
    #[must_use]
    pub fn oldest_waiting(&self, now: Instant, key: ServiceKey, class: usize) -> Duration {
        self.sentry(key).map_or(Duration::ZERO, |gate| gate.oldest_held(now, class))
    }

    /// Demand, counted once.
    fn observe_offered(&mut self, request: &AdmissionRequest, is_retry: bool) {
        self.ledger.offered += 1;
        self.ledger.unique_offered += u64::from(!is_retry);
        self.stages.flash_crowd.observe_offered(request.host_key);
        if let Some(service) = self.service_mut(request.service) {
            service.ledger.offered += 1;
            service.ledger.unique_offered += u64::from(!is_retry);
            if let Some(sentry) = service.sentry_for(request) {
                sentry.gate.observe_offered(request.for_sentry(), is_retry);
            }
        }
    }

    fn sentry(&self, key: ServiceKey) -> Option<&SentryGate<request::Waiter<T>>> {
        Some(&self.service(key)?.sentry.as_ref()?.gate)
    }

    fn service(&self, key: ServiceKey) -> Option<&Service<T>> {
        self.services.get(key.place as usize).filter(|service| service.is(key))
    }

    fn service_mut(&mut self, key: ServiceKey) -> Option<&mut Service<T>> {
        service::find(&mut self.services, key)
    }

    fn drop_if_over(&mut self, key: ServiceKey) {
        if let Some(service) = self.service_mut(key)
            && service.is_over()
        {
            service.is_gone = true;
            service.set_candidate(None);
        }
    }
}

//! One worker's pipeline with what its decisions need: the plans in force, and the refusals remembered.

use super::hosted::{Hosted, HostedCandidate, HostedSentry};
use super::offered_request::OfferedRequest;
use super::waiting::Waiting;
use crate::decisions::{Decisions, PlanInForce, Record};
use crate::feedback::{EVERYBODY_ELSE, Sender};
use crate::flash_crowd_candidate::CandidateFollower;
use crate::refusal::Refusal;
use crate::sentry::{Basis, Candidate, CandidateExplanation, Refused, Sentry};
use crate::settings::upstream_capacity;
use crate::shared::{Live, Shared};
use crate::status::ceiling_for;
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::fairness::{Cause, FairnessStatus};
use flashweir_admission::flash_crowd::Plan;
use flashweir_admission::pipeline::{
    self, AdmissionRequest, FlashCrowdOptions, Pipeline, ServiceKey, ServiceSettings,
};
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::sentry::CandidateGate;
use flashweir_config::FlashCrowdMode;
use flashweir_core::{Duration, Instant, Reason, Shed};
use flashweir_telemetry::{Bound, ClassMetrics, WorkerMetrics};
use slab::Slab;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// The pipeline of one worker.
pub(super) struct WorkerPipeline {
    pub(super) pipeline: Pipeline<usize>,
    /// The handlers of requests that wait.
    pub(super) waiting: Slab<Waiting>,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    plan: Rc<PlanInForce>,
    pub(super) flash_crowd_candidate: Option<CandidateFollower>,
    pub(super) decisions: Decisions,
    pub(super) worker: usize,
    pub(super) shared: Arc<Shared>,
    metrics: Arc<WorkerMetrics>,
    /// By key: the services of the pipeline, and some that have gone.
    pub(super) hosted: Vec<Hosted>,
}

impl WorkerPipeline {
    /// Without a service.
    pub(super) fn new(worker: usize, shared: Arc<Shared>) -> Self {
        Self {
            pipeline: Pipeline::new(worker, &shared.pipelines),
            waiting: Slab::new(),
            plan: Rc::new(PlanInForce(shared.plan.load_full())),
            latest: Cache::new(shared.plan.clone()),
            flash_crowd_candidate: None,
            // A worker's number fits eight bits: there are at most `limits::WORKERS` of them.
            decisions: Decisions::new(shared.boot, worker as u8),
            worker,
            metrics: shared.telemetry.worker(worker),
            shared,
            hosted: Vec::new(),
        }
    }

    /// See [`PipelineHost::configure`](super::PipelineHost::configure).
    pub(super) fn configure(&mut self, live: &Live) -> (Vec<ServiceKey>, Vec<ServiceKey>) {
        let flash_crowd = &live.config.flash_crowd;
        let options = FlashCrowdOptions {
            is_shadow: flash_crowd.shadow,
            judges_whole: flash_crowd.mode != FlashCrowdMode::Repaired,
        };
        self.pipeline.configure(live.config.bounds.max_requests_in_flight, options);
        let (now, candidate) = (self.shared.clock.now(), live.flash_crowd_candidate.as_ref());
        CandidateFollower::change(&mut self.flash_crowd_candidate, now, candidate, &mut self.pipeline);
        self.hosted.iter_mut().for_each(|hosted| hosted.is_current = false);
        let (mut keys, mut new) = (Vec::new(), Vec::new());
        for (index, service) in live.config.services.iter().enumerate() {
            let (sentry, candidate) = (live.sentries[index].as_ref(), live.candidates[index].as_ref());
            let capacity = upstream_capacity(live.upstreams[index].settings());
            let key = self.kept(&service.name, sentry).unwrap_or_else(|| {
                let key = self.add(&service.name, sentry, capacity);
                new.extend(sentry.map(|_| key));
                key
            });
            self.pipeline.set_upstream_capacity(key, capacity);
            self.set_candidate(key, candidate);
            let control = self.shared.telemetry.control();
            let slots = service.classes.iter().map(|class| control.class_slot(&service.name, &class.name));
            let slots = slots.collect();
            if let Some(hosted) = self.hosted_mut(key) {
                (hosted.slots, hosted.is_current) = (slots, true);
            }
            keys.push(key);
        }
        for hosted in self.hosted.iter_mut().filter(|hosted| !hosted.is_current) {
            hosted.is_retired = true;
            self.pipeline.retire_service(hosted.key);
        }
        let pipeline = &self.pipeline;
        self.hosted.retain(|hosted| pipeline.has_service(hosted.key));
        (keys, new)
    }

    /// A service that stays as it is: of the same name, with the same sentry or none.
    fn kept(&self, name: &str, sentry: Option<&Arc<Sentry>>) -> Option<ServiceKey> {
        let is_same = |hosted: &&Hosted| match (&hosted.sentry, sentry) {
            (Some(known), Some(sentry)) => Arc::ptr_eq(&known.sentry, sentry),
            (None, None) => hosted.name == name,
            _ => false,
        };
        self.hosted.iter().filter(|hosted| !hosted.is_retired).find(is_same).map(|hosted| hosted.key)
    }

    fn add(&mut self, name: &str, sentry: Option<&Arc<Sentry>>, upstream_capacity: usize) -> ServiceKey {
        let plan = sentry.map(|sentry| sentry.plan.load_full());
        let of_sentry = sentry
            .zip(plan.as_deref())
            .map(|(sentry, plan)| (&sentry.common, &*sentry.policy, plan, sentry.shadow));
        let key = self.pipeline.add_service(ServiceSettings { sentry: of_sentry, upstream_capacity });
        let sentry = sentry.zip(plan.as_ref()).map(|(sentry, plan)| HostedSentry::new(sentry, plan));
        let slots = Box::default();
        self.hosted.push(Hosted {
            key,
            name: name.to_owned(),
            slots,
            sentry,
            candidate: None,
            is_current: true,
            is_retired: false,
        });
        key
    }

    fn set_candidate(&mut self, key: ServiceKey, candidate: Option<&Arc<Candidate>>) {
        let Some(hosted) = self.hosted.iter_mut().find(|hosted| hosted.key == key) else { return };
        let is_same = match (&hosted.candidate, candidate) {
            (Some(known), Some(candidate)) => Arc::ptr_eq(&known.candidate, candidate),
            (None, None) => true,
            _ => false,
        };
        if is_same || hosted.sentry.is_none() {
            return;
        }
        hosted.candidate = candidate.map(|candidate| HostedCandidate {
            latest: Cache::new(candidate.sentry.plan.clone()),
            basis: Rc::new(Basis::of(&candidate.sentry, &candidate.sentry.plan.load())),
            candidate: candidate.clone(),
        });
        let gate = candidate.map(|candidate| {
            let Sentry { common, policy, plan, .. } = &*candidate.sentry;
            CandidateGate::new(common.clone(), self.worker, policy, &plan.load())
        });
        self.pipeline.set_candidate(key, gate);
    }

    pub(super) fn hosted(&self, key: ServiceKey) -> Option<&Hosted> {
        self.hosted.iter().find(|hosted| hosted.key == key)
    }

    pub(super) fn hosted_mut(&mut self, key: ServiceKey) -> Option<&mut Hosted> {
        self.hosted.iter_mut().find(|hosted| hosted.key == key)
    }

    /// Follows the plan of the flash-crowd planner, and of its candidate's: one relaxed load and a comparison
    /// for each unless it changed.
    pub(super) fn follow_flash_crowd(&mut self, now: Instant) {
        if let Some(candidate) = &mut self.flash_crowd_candidate {
            candidate.follow(now, &mut self.pipeline);
        }
        let latest = self.latest.load();
        if Arc::ptr_eq(latest, &self.plan.0) {
            return;
        }
        self.pipeline.apply_flash_crowd(now, latest);
        self.plan = Rc::new(PlanInForce(latest.clone()));
    }

    /// Follows the plans of a service's planners, likewise.
    pub(super) fn follow_service(&mut self, now: Instant, key: ServiceKey) {
        let Some(hosted) = self.hosted.iter_mut().find(|hosted| hosted.key == key) else { return };
        if let Some(hosted) = &mut hosted.sentry {
            let latest = hosted.latest.load();
            if latest.epoch != hosted.plan.epoch {
                self.pipeline.apply_sentry(key, latest);
                let latest = latest.clone();
                hosted.follows(latest);
            }
            let HostedSentry { latest_orders, orders, .. } = hosted;
            let latest_orders = latest_orders.load();
            if !Arc::ptr_eq(latest_orders, orders) {
                *orders = latest_orders.clone();
                self.pipeline.apply_ladder(key, orders.ladder);
                let restriction = orders.restrictions.get(self.worker).copied().flatten();
                self.pipeline.apply_gapping(now, key, restriction);
            }
        }
        if let Some(HostedCandidate { candidate, latest, basis }) = &mut hosted.candidate {
            let latest = latest.load();
            if latest.epoch != basis.epoch {
                self.pipeline.apply_candidate(key, latest);
                *basis = Rc::new(Basis::of(&candidate.sentry, latest));
            }
        }
    }

    pub(super) fn hear(&mut self, key: ServiceKey, class: u8, sender: Sender<'_>) -> bool {
        let Some(rank) = self.pipeline.rank(key, class) else { return false };
        let hosted = self.hosted_mut(key).and_then(|hosted| hosted.sentry.as_mut());
        let Some(HostedSentry { orders, hearing, .. }) = hosted else { return false };
        let is_limited = rank >= orders.from_rank;
        match sender {
            Sender::Node(node) => hearing.hear(node, is_limited, orders.senders.get(&node.key)),
            Sender::Client | Sender::NotAsked => {
                hearing.hear_other(is_limited, orders.senders.get(&EVERYBODY_ELSE))
            }
        }
    }

    /// Fairness at this worker, over all services.
    pub(super) fn fairness(&self, now: Instant) -> FairnessStatus {
        let all = self.hosted.iter().map(|hosted| self.pipeline.fairness(now, hosted.key));
        all.fold(FairnessStatus::default(), |sum, status| sum.plus(&status))
    }

    /// Counts for the request's class.
    pub(super) fn count_class(&self, key: ServiceKey, class: u8, count: impl FnOnce(&ClassMetrics)) {
        // After a reload a request that waited may be of a class that is gone.
        if let Some(&slot) = self.hosted(key).and_then(|hosted| hosted.slots.get(usize::from(class))) {
            count(self.metrics.classes.of(slot));
        }
    }

    /// A refusal: counted, remembered, and as the client is answered.
    pub(super) fn shed(
        &mut self,
        now: Instant,
        asked: &OfferedRequest,
        refusal: &pipeline::Refusal,
        cost_us: u32,
    ) -> Refusal {
        let AdmissionRequest { service: key, class, .. } = asked.request;
        let reason = refusal.shed.reason;
        self.metrics.requests.shed.increment(reason);
        if let Some(bound) = bound_of(reason) {
            self.metrics.bound_hits.increment(bound);
        }
        self.count_class(key, class, |class| {
            class.shed.increment(reason);
            class.unmet_us.add(cost_us.into());
        });
        let by_sentry = refusal
            .sentry
            .as_ref()
            .and_then(|figures| self.by_sentry(key, figures, refusal.candidate.as_ref()));
        self.remember_demoted(now, asked, refusal.shed, by_sentry, refusal.demoted)
    }

    /// A stage in shadow would have refused a request that was let in.
    pub(super) fn shed_in_shadow(
        &mut self,
        now: Instant,
        asked: &OfferedRequest,
        refusal: &pipeline::ShadowRefusal,
    ) {
        let AdmissionRequest { service: key, class, .. } = asked.request;
        self.metrics.requests.shadow_shed.increment();
        let figures = refusal.sentry.as_ref();
        if figures.is_some() {
            self.count_class(key, class, |class| class.shadow_shed.increment());
        }
        let by_sentry = figures.and_then(|figures| self.by_sentry(key, figures, None));
        self.remember(now, asked, refusal.shed, by_sentry, true);
    }

    pub(super) fn remember(
        &mut self,
        now: Instant,
        asked: &OfferedRequest,
        shed: Shed,
        by_sentry: Option<Refused>,
        shadow: bool,
    ) -> Refusal {
        self.remember_record(now, asked, shed, by_sentry, (shadow, None))
    }

    /// A refusal of a request that came after the others because of what it has in common with many, if so.
    fn remember_demoted(
        &mut self,
        now: Instant,
        asked: &OfferedRequest,
        shed: Shed,
        by_sentry: Option<Refused>,
        demoted: Option<Cause>,
    ) -> Refusal {
        self.remember_record(now, asked, shed, by_sentry, (false, demoted))
    }

    fn remember_record(
        &mut self,
        now: Instant,
        asked: &OfferedRequest,
        shed: Shed,
        by_sentry: Option<Refused>,
        (shadow, demoted): (bool, Option<Cause>),
    ) -> Refusal {
        let Shed { reason, retry_after } = shed;
        let retry_after = RetryAfter::new(retry_after, asked.request.person_key, self.shared.seed);
        let plan = self.plan.clone();
        let is_ceiling = reason == Reason::FlashCrowd;
        let ceiling = is_ceiling.then(|| ceiling_for(&plan.0.limit, asked.request.host_key)).flatten();
        let id = self.decisions.remember(Record {
            at: now,
            reason,
            shadow,
            demoted,
            host_key: asked.request.host_key,
            retry_after_s: retry_after.jittered_s,
            plan,
            sentry: by_sentry.clone(),
        });
        let is_impatient = !shadow && self.is_impatient(now, asked, reason, retry_after);
        Refusal { id, reason, retry_after, ceiling, by_sentry, is_impatient }
    }

    /// Returns whether the client's source ignores `Retry-After`, as this refusal shows or those before it.
    fn is_impatient(
        &self,
        now: Instant,
        asked: &OfferedRequest,
        reason: Reason,
        retry_after: RetryAfter,
    ) -> bool {
        // These say nothing of how much there is to do.
        let is_counted = !matches!(reason, Reason::Draining | Reason::CallerDeadline);
        let Some(source) = asked.source.filter(|_| is_counted) else { return false };
        let retry_after = Duration::from_secs(retry_after.jittered_s);
        let (is_listed, is_new) =
            self.shared.impatient.refused(now, source, asked.request.signs.person_key, retry_after);
        self.metrics.fairness.listed.add(is_new.into());
        is_listed
    }

    /// Grounds of a refusal by the sentry.
    fn by_sentry(
        &self,
        key: ServiceKey,
        figures: &pipeline::SentryFigures,
        candidate: Option<&pipeline::CandidateOpinion>,
    ) -> Option<Refused> {
        let hosted = self.hosted(key)?;
        let of_candidate = hosted.candidate.as_ref().zip(candidate);
        Some(Refused {
            class: figures.class,
            in_flight: figures.in_flight,
            waiting: figures.waiting,
            oldest_waiting_us: figures.oldest_waiting_us,
            basis: hosted.sentry.as_ref()?.basis(),
            candidate: of_candidate.map(|(hosted, opinion)| CandidateExplanation {
                decision: opinion.decision,
                class: opinion.class,
                in_flight: opinion.in_flight,
                basis: hosted.basis.clone(),
            }),
        })
    }
}

/// The bound behind a refusal, where it is one.
fn bound_of(reason: Reason) -> Option<Bound> {
    match reason {
        Reason::RequestsInFlight => Some(Bound::RequestsInFlight),
        Reason::UpstreamConnections => Some(Bound::UpstreamConnections),
        Reason::Connections => Some(Bound::Connections),
        Reason::ConnectionsPerClient => Some(Bound::ConnectionsPerClient),
        // Limits of controllers, and a gateway that stops.
        _ => None,
    }
}

impl fmt::Debug for WorkerPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPipeline").field("worker", &self.worker).finish_non_exhaustive()
    }
}

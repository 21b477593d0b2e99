//! One worker's pipeline with what the gateway keeps beside it: plans, waiting handlers, remembered refusals.

use super::slow_clients::{SlowClients, Yielding};
use super::wait::Waiting;
use crate::classify::Classified;
use crate::decisions::{Decisions, Explained, PlanInForce, Record};
use crate::feedback::{EVERYBODY_ELSE, Hearing, Orders, Sender};
use crate::flash_crowd_candidate::{CandidateFollower, FlashCrowdSample};
use crate::impatient::ImpatientSources;
use crate::refusal::Refusal;
use crate::sentry::{Basis, Candidate, CandidateExplanation, GateSample, Refused, Sentry};
use crate::settings::upstream_capacity;
use crate::shared::{Live, Shared};
use crate::status::ceiling_for;
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::fairness::{Cause, FairnessStatus};
use flashweir_admission::flash_crowd::{Plan, Response};
use flashweir_admission::pipeline::{
    self, Delivery, FlashCrowdOptions, Pipeline, Replacements, ServiceKey, ServiceSettings,
};
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::sentry::{self, CandidateGate};
use flashweir_config::FlashCrowdMode;
use flashweir_core::{DecisionId, Duration, Instant, Reason, Shed};
use flashweir_telemetry::{Bound, ClassMetrics, ClassSlot, WorkerMetrics};
use http::HeaderValue;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// A worker's pipeline; never leaves the worker's thread.
pub(crate) struct PipelineHost {
    pub(super) worker: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: Arc<WorkerMetrics>,
    /// Channel for sentries' samples.
    pub(super) gate_samples: mpsc::Sender<GateSample>,
    /// Requests whose clients may be slower than the origin.
    slow_clients: RefCell<SlowClients>,
    /// Wakes the worker's sweeper.
    sweep_wanted: Rc<Notify>,
    pub(super) inner: RefCell<Inner>,
}

pub(super) struct Inner {
    pub(super) pipeline: Pipeline<usize>,
    /// The handlers of requests that wait.
    pub(super) waiting: Slab<Waiting>,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    plan: Rc<PlanInForce>,
    flash_crowd_candidate: Option<CandidateFollower>,
    decisions: Decisions,
    worker: usize,
    jitter_seed: u64,
    impatient: Arc<ImpatientSources>,
    metrics: Arc<WorkerMetrics>,
    /// By key: the services of the pipeline, and some that have gone.
    hosted: Vec<Hosted>,
}

/// A service of the pipeline.
pub(super) struct Hosted {
    key: ServiceKey,
    name: String,
    /// Slots of the counters of its classes.
    slots: Box<[ClassSlot]>,
    pub(super) sentry: Option<HostedSentry>,
    pub(super) candidate: Option<HostedCandidate>,
    is_current: bool,
    /// It takes no requests any more, even if a later configuration has a service of the same name.
    is_retired: bool,
}

pub(super) struct HostedSentry {
    pub(super) sentry: Arc<Sentry>,
    latest: Cache<Arc<ArcSwap<sentry::Plan>>, Arc<sentry::Plan>>,
    basis: Rc<Basis>,
    latest_orders: Cache<Arc<ArcSwap<Orders>>, Arc<Orders>>,
    /// Orders that the pipeline has taken over.
    orders: Arc<Orders>,
    pub(super) hearing: Hearing,
    /// Time at which the attendant looks again by itself.
    pub(super) looks_at: Cell<Option<Instant>>,
    /// Time of its last report, and the worker's busy time by then.
    busy: Cell<(Instant, Duration)>,
}

pub(super) struct HostedCandidate {
    pub(super) candidate: Arc<Candidate>,
    latest: Cache<Arc<ArcSwap<sentry::Plan>>, Arc<sentry::Plan>>,
    basis: Rc<Basis>,
}

impl PipelineHost {
    /// The pipeline of worker `worker`, with the services of the configuration in force; their keys, in its
    /// order.
    pub(crate) fn new(
        worker: usize,
        shared: Arc<Shared>,
        gate_samples: mpsc::Sender<GateSample>,
        sweep_wanted: Rc<Notify>,
    ) -> Rc<Self> {
        let metrics = shared.telemetry.worker(worker);
        let inner = Inner {
            pipeline: Pipeline::new(worker, &shared.pipelines),
            waiting: Slab::new(),
            plan: Rc::new(PlanInForce(shared.plan.load_full())),
            latest: Cache::new(shared.plan.clone()),
            flash_crowd_candidate: None,
            // A worker's number fits eight bits: there are at most `limits::WORKERS` of them.
            decisions: Decisions::new(shared.boot, worker as u8),
            worker,
            jitter_seed: shared.seed,
            impatient: shared.impatient.clone(),
            metrics: metrics.clone(),
            hosted: Vec::new(),
        };
        Rc::new(Self {
            worker,
            metrics,
            gate_samples,
            slow_clients: RefCell::default(),
            sweep_wanted,
            inner: RefCell::new(inner),
            shared,
        })
    }

    /// Takes over a configuration: services whose policy is as before stay, the others end with their last
    /// request. The keys of its services, in its order, and those of them that are new and have a sentry to
    /// be [attended](Self::attend).
    pub(crate) fn configure(&self, live: &Live) -> (Vec<ServiceKey>, Vec<ServiceKey>) {
        let inner = &mut *self.inner.borrow_mut();
        let flash_crowd = &live.config.flash_crowd;
        let options = FlashCrowdOptions {
            is_shadow: flash_crowd.shadow,
            judges_whole: flash_crowd.mode != FlashCrowdMode::Repaired,
        };
        inner.pipeline.configure(live.config.bounds.max_requests_in_flight, options);
        let (now, candidate) = (self.shared.clock.now(), live.flash_crowd_candidate.as_ref());
        CandidateFollower::change(&mut inner.flash_crowd_candidate, now, candidate, &mut inner.pipeline);
        inner.hosted.iter_mut().for_each(|hosted| hosted.is_current = false);
        let (mut keys, mut new) = (Vec::new(), Vec::new());
        for (index, service) in live.config.services.iter().enumerate() {
            let (sentry, candidate) = (live.sentries[index].as_ref(), live.candidates[index].as_ref());
            let capacity = upstream_capacity(live.upstreams[index].settings());
            let key = inner.kept(&service.name, sentry).unwrap_or_else(|| {
                let key = inner.add(&service.name, sentry, capacity);
                new.extend(sentry.map(|_| key));
                key
            });
            inner.pipeline.set_upstream_capacity(key, capacity);
            inner.set_candidate(self.worker, key, candidate);
            let control = self.shared.telemetry.control();
            let slots = service.classes.iter().map(|class| control.class_slot(&service.name, &class.name));
            if let Some(hosted) = inner.hosted_mut(key) {
                (hosted.slots, hosted.is_current) = (slots.collect(), true);
            }
            keys.push(key);
        }
        for hosted in inner.hosted.iter_mut().filter(|hosted| !hosted.is_current) {
            hosted.is_retired = true;
            inner.pipeline.retire_service(hosted.key);
        }
        let pipeline = &inner.pipeline;
        inner.hosted.retain(|hosted| pipeline.has_service(hosted.key));
        (keys, new)
    }

    /// The decision with this id, with its grounds.
    pub(crate) fn explain(&self, id: DecisionId) -> Option<Explained> {
        self.inner.borrow().decisions.explain(id)
    }

    /// Requests that were let in and have not ended, or wait.
    pub(crate) fn requests_open(&self) -> usize {
        let inner = self.inner.borrow();
        let waiting: usize = inner.hosted.iter().map(|hosted| inner.pipeline.waiting(hosted.key)).sum();
        inner.pipeline.ledger().in_flight() as usize + waiting
    }

    /// A whole response, or a part of a long one, is fit to be judged.
    pub(crate) fn observe_response(&self, response: Response) {
        self.inner.borrow_mut().pipeline.observe_response(response);
    }

    /// A request of this sender arrives for a class of a service; whether it is beyond the sender's share.
    pub(crate) fn hear(&self, now: Instant, key: ServiceKey, class: u8, sender: Sender<'_>) -> bool {
        if matches!(sender, Sender::NotAsked) {
            return false;
        }
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_service(now, key);
        inner.hear(key, class, sender)
    }

    /// Returns whether the service is short now, so that its clients are compared by what their requests
    /// show.
    pub(crate) fn compares_clients(&self, now: Instant, key: ServiceKey) -> bool {
        self.inner.borrow().pipeline.compares_clients(now, key)
    }

    /// A class's rank by importance, 0 the first; none where the service has no sentry, which alone ranks
    /// classes.
    pub(crate) fn rank(&self, key: ServiceKey, class: u8) -> Option<u8> {
        self.inner.borrow().pipeline.rank(key, class)
    }

    /// The overload field for a response to a node in front.
    pub(crate) fn overload_field(&self, key: ServiceKey, sender: u64) -> Option<HeaderValue> {
        let inner = self.inner.borrow();
        let orders = &inner.hosted(key)?.sentry.as_ref()?.orders;
        orders.senders.get(&sender)?.field.clone()
    }

    /// A response of this upstream of a service carried such a field, or none.
    pub(crate) fn hear_upstream(&self, key: ServiceKey, upstream: usize, field: Option<&[u8]>) {
        let inner = &mut *self.inner.borrow_mut();
        if let Some(hosted) = inner.hosted_mut(key).and_then(|hosted| hosted.sentry.as_mut()) {
            hosted.hearing.hear_upstream(upstream, field);
        }
    }

    /// A response of this service said for how long its quota is spent, if it did.
    pub(crate) fn hear_quota(&self, key: ServiceKey, reset: Option<Duration>) {
        let Some(reset) = reset else { return };
        let inner = &mut *self.inner.borrow_mut();
        if let Some(hosted) = inner.hosted_mut(key).and_then(|hosted| hosted.sentry.as_mut()) {
            hosted.hearing.hear_quota(reset);
        }
    }

    /// A response is no longer on its way: see
    /// [`Pipeline::deliver`](flashweir_admission::pipeline::Pipeline::deliver).
    pub(crate) fn deliver(&self, delivery: Delivery, has_all: bool) {
        self.inner.borrow_mut().pipeline.deliver(delivery, has_all);
    }

    /// Measurements of the flash-crowd stage and of its candidate since the last call.
    pub(crate) fn drain_flash_crowd(&self, now: Instant) -> FlashCrowdSample {
        let Inner { pipeline, flash_crowd_candidate, .. } = &mut *self.inner.borrow_mut();
        FlashCrowdSample {
            live: pipeline.drain_flash_crowd(now),
            cached: Vec::new(),
            spared: 0,
            candidate: flash_crowd_candidate.as_ref().and_then(|follower| follower.drain(now, pipeline)),
        }
    }

    /// Replacements in the tables of bounded size so far: those of the pipeline, and the refusals that can be
    /// explained.
    pub(crate) fn replacements(&self) -> (Replacements, u64) {
        let inner = self.inner.borrow();
        (inner.pipeline.replacements(), inner.decisions.replaced())
    }

    /// The client of this request may be slower than the origin.
    pub(super) fn watch(&self, request: &Rc<Yielding>) {
        self.slow_clients.borrow_mut().watch(request);
        self.sweep_wanted.notify_one();
    }

    /// No request's client may be slower than the origin.
    pub(crate) fn watches_none(&self) -> bool {
        self.slow_clients.borrow().is_empty()
    }

    /// Takes the slots of those whose clients were too slow.
    pub(crate) fn sweep_slow_clients(&self, now: Instant) {
        self.slow_clients.borrow_mut().sweep(now);
    }
}

impl HostedSentry {
    /// Utilisation of the worker since the last report, thousandths; `busy` is its busy time since it
    /// started. It decides in the same thread in which it does everything else.
    pub(super) fn deciding_milli(&self, now: Instant, busy: Duration) -> u32 {
        let (before, busy_before) = self.busy.replace((now, busy));
        let span_us = now.saturating_since(before).as_micros();
        if span_us == 0 || before == Instant::ZERO {
            return 0;
        }
        // At most 1,000, so it fits.
        (busy.saturating_sub(busy_before).as_micros() * 1_000 / span_us).min(1_000) as u32
    }
}

impl Inner {
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
        let sentry = sentry.zip(plan.as_deref()).map(|(sentry, plan)| HostedSentry {
            latest: Cache::new(sentry.plan.clone()),
            basis: Rc::new(Basis::of(sentry, plan)),
            latest_orders: Cache::new(sentry.orders.clone()),
            orders: Arc::default(),
            hearing: Hearing::default(),
            sentry: sentry.clone(),
            looks_at: Cell::new(None),
            busy: Cell::new((Instant::ZERO, Duration::ZERO)),
        });
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

    fn set_candidate(&mut self, worker: usize, key: ServiceKey, candidate: Option<&Arc<Candidate>>) {
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
            CandidateGate::new(common.clone(), worker, policy, &plan.load())
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
        if let Some(HostedSentry { sentry, latest, basis, latest_orders, orders, .. }) = &mut hosted.sentry {
            let latest = latest.load();
            if latest.epoch != basis.epoch {
                self.pipeline.apply_sentry(key, latest);
                *basis = Rc::new(Basis::of(sentry, latest));
            }
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

    fn hear(&mut self, key: ServiceKey, class: u8, sender: Sender<'_>) -> bool {
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
        key: ServiceKey,
        asked: &Classified,
        refusal: &pipeline::Refusal,
        cost_us: u32,
    ) -> Refusal {
        let reason = refusal.shed.reason;
        self.metrics.requests.shed.increment(reason);
        if let Some(bound) = bound_of(reason) {
            self.metrics.bound_hits.increment(bound);
        }
        self.count_class(key, asked.class, |class| {
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
        key: ServiceKey,
        asked: &Classified,
        refusal: &pipeline::ShadowRefusal,
    ) {
        self.metrics.requests.shadow_shed.increment();
        let figures = refusal.sentry.as_ref();
        if figures.is_some() {
            self.count_class(key, asked.class, |class| class.shadow_shed.increment());
        }
        let by_sentry = figures.and_then(|figures| self.by_sentry(key, figures, None));
        self.remember(now, asked, refusal.shed, by_sentry, true);
    }

    pub(super) fn remember(
        &mut self,
        now: Instant,
        asked: &Classified,
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
        asked: &Classified,
        shed: Shed,
        by_sentry: Option<Refused>,
        demoted: Option<Cause>,
    ) -> Refusal {
        self.remember_record(now, asked, shed, by_sentry, (false, demoted))
    }

    fn remember_record(
        &mut self,
        now: Instant,
        asked: &Classified,
        shed: Shed,
        by_sentry: Option<Refused>,
        (shadow, demoted): (bool, Option<Cause>),
    ) -> Refusal {
        let Shed { reason, retry_after } = shed;
        let retry_after = RetryAfter::new(retry_after, asked.person_key, self.jitter_seed);
        let plan = self.plan.clone();
        let is_ceiling = reason == Reason::FlashCrowd;
        let ceiling = is_ceiling.then(|| ceiling_for(&plan.0.limit, asked.host_key)).flatten();
        let id = self.decisions.remember(Record {
            at: now,
            reason,
            shadow,
            demoted,
            host_key: asked.host_key,
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
        asked: &Classified,
        reason: Reason,
        retry_after: RetryAfter,
    ) -> bool {
        // These say nothing of how much there is to do.
        let is_counted = !matches!(reason, Reason::Draining | Reason::CallerDeadline);
        let Some(source) = asked.source.filter(|_| is_counted) else { return false };
        let retry_after = Duration::from_secs(retry_after.jittered_s);
        let (is_listed, is_new) = self.impatient.refused(now, source, asked.signs.person_key, retry_after);
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
            basis: hosted.sentry.as_ref()?.basis.clone(),
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

impl fmt::Debug for PipelineHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineHost").field("worker", &self.worker).finish_non_exhaustive()
    }
}

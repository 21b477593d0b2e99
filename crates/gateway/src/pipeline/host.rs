//! One worker's pipeline as the rest of the gateway uses it.

use super::slow_clients::{SlowClients, Yielding};
use super::worker_pipeline::WorkerPipeline;
use crate::decisions::Explained;
use crate::feedback::Sender;
use crate::flash_crowd_candidate::FlashCrowdSample;
use crate::sentry::GateSample;
use crate::shared::{Live, Shared};
use flashweir_admission::flash_crowd::Response;
use flashweir_admission::pipeline::{Delivery, Replacements, ServiceKey};
use flashweir_core::{DecisionId, Duration, Instant};
use flashweir_telemetry::WorkerMetrics;
use http::HeaderValue;
use std::cell::RefCell;
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
    pub(super) inner: Rc<RefCell<WorkerPipeline>>,
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
        let inner = WorkerPipeline::new(worker, shared.clone());
        Rc::new(Self {
            worker,
            metrics,
            gate_samples,
            slow_clients: RefCell::default(),
            sweep_wanted,
            inner: Rc::new(RefCell::new(inner)),
            shared,
        })
    }

    /// Takes over a configuration: services whose policy is as before stay, the others end with their last
    /// request. The keys of its services, in its order, and those of them that are new and have a sentry to
    /// be [attended](Self::attend).
    pub(crate) fn configure(&self, live: &Live) -> (Vec<ServiceKey>, Vec<ServiceKey>) {
        self.inner.borrow_mut().configure(live)
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
        let WorkerPipeline { pipeline, flash_crowd_candidate, .. } = &mut *self.inner.borrow_mut();
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

impl fmt::Debug for PipelineHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineHost").field("worker", &self.worker).finish_non_exhaustive()
    }
}

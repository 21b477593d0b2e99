//! State shared on one worker's thread: its part of the gateway, and the configuration that it follows.

use crate::acks::{Acks, Finished, Pushed};
use crate::cache::WorkerCache;
use crate::classify::{Classified, Classifier};
use crate::connection::Client;
use crate::feedback::{OVERLOAD, SENDER, Sender, SenderNames, TrailerQuota, spent_for};
use crate::pipeline::PipelineHost;
use crate::replication::WorkerReplication;
use crate::sentry::GateSample;
use crate::settings::serve_settings;
use crate::shared::{Live, Shared};
use crate::slow_readers::SlowReaders;
use crate::transfers::Transfers;
use crate::upload::{SilentOrigins, UploadBody, UploadRoom};
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_config::Service;
use flashweir_core::{Hasher64, Instant, Rng};
use flashweir_http::client::ClientNetwork;
use flashweir_http::fields::Hop;
use flashweir_http::serve::Server;
use flashweir_http::upstream::{UpstreamBody, Upstreams};
use flashweir_telemetry::{Bound, Unmeasured, WorkerMetrics};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// RFC 9218.
const PRIORITY: HeaderName = HeaderName::from_static("priority");
/// Its values by rank; the last for all later ones.
static URGENCIES: [HeaderValue; 8] = [
    HeaderValue::from_static("u=0"),
    HeaderValue::from_static("u=1"),
    HeaderValue::from_static("u=2"),
    HeaderValue::from_static("u=3"),
    HeaderValue::from_static("u=4"),
    HeaderValue::from_static("u=5"),
    HeaderValue::from_static("u=6"),
    HeaderValue::from_static("u=7"),
];

/// State that all connections of one worker share; never leaves its thread.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    /// State that all workers share.
    pub(crate) shared: Arc<Shared>,
    /// Metrics of this worker.
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// Decides who is let in.
    pub(crate) pipeline: Rc<PipelineHost>,
    /// Stored responses.
    pub(crate) cache: WorkerCache,
    /// Routing of requests in a cluster.
    pub(crate) replication: WorkerReplication,
    /// Requests' bodies that are waited for.
    pub(crate) uploads: Rc<UploadRoom>,
    /// Responses whose clients may read too slowly.
    pub(crate) readers: SlowReaders,
    /// Responses on their way to the client.
    pub(crate) transfers: RefCell<Transfers>,
    /// Responses whose acknowledgement is awaited.
    pub(crate) acks: RefCell<Acks>,
    /// Wakes the sweeper when there is something to sweep.
    pub(crate) sweep_wanted: Rc<Notify>,
    /// Cancelled when connections are to end gracefully.
    pub(crate) draining: CancellationToken,
    /// One entry for each connection being served.
    pub(crate) connections: TaskTracker,
    current: RefCell<Rc<Current>>,
}

/// The configuration in force as this worker uses it.
#[derive(Debug)]
pub(crate) struct Current {
    /// The configuration in force.
    pub(crate) live: Arc<Live>,
    /// Serves connections with the configured bounds and timeouts.
    pub(crate) server: Server,
    /// Connections to each service's upstreams, in the configuration's order; kept over reloads that leave
    /// them alone.
    pub(crate) upstreams: Vec<Rc<Upstreams<UploadBody>>>,
    /// The pipeline's key of each service, in the same order.
    pub(crate) services: Vec<ServiceKey>,
    /// A number for each service and its servers, in the same order: what is stored of one is never
    /// another's.
    pub(crate) service_numbers: Vec<u64>,
    /// Services whose origins let expectations pass, in the same order.
    pub(crate) silent_origins: SilentOrigins,
    /// Finds a request's service and makes the stages' keys.
    pub(crate) classifier: Classifier,
    /// Recognises nodes in front.
    pub(crate) senders: SenderNames,
    /// Name of this gateway for upstreams that sign their messages.
    pub(crate) own_name: Option<HeaderValue>,
}

/// Number that separates the random draws of routing from those of the upstreams, which are numbered by
/// service.
const REPLICATION_DRAWS: u64 = u64::MAX;

impl WorkerContext {
    /// Of worker `index`, with the configuration in force; and the services that have a sentry to be
    /// attended.
    pub(crate) fn new(
        index: usize,
        shared: Arc<Shared>,
        gate_samples: mpsc::Sender<GateSample>,
    ) -> (Rc<Self>, Vec<ServiceKey>) {
        let live = shared.live.load_full();
        let sweep_wanted = Rc::<Notify>::default();
        let pipeline = PipelineHost::new(index, shared.clone(), gate_samples, sweep_wanted.clone());
        let (services, new) = pipeline.configure(&live);
        let rng = Rng::new(shared.seed).fork(index as u64);
        let current = Current::new(&shared, live, services, None, &rng);
        let metrics = shared.telemetry.worker(index);
        let context = Rc::new(Self {
            cache: WorkerCache::new(shared.clone(), metrics.clone()),
            replication: WorkerReplication::new(&shared, metrics.clone(), rng.fork(REPLICATION_DRAWS)),
            uploads: UploadRoom::new(metrics.clone(), sweep_wanted.clone()),
            metrics,
            pipeline,
            readers: SlowReaders::default(),
            transfers: RefCell::default(),
            acks: RefCell::default(),
            sweep_wanted,
            draining: CancellationToken::new(),
            connections: TaskTracker::new(),
            current: RefCell::new(Rc::new(current)),
            shared,
        });
        (context, new)
    }

    /// The configuration in force; a request keeps the one it began with.
    pub(crate) fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// Takes over the configuration now in force. The services that are new and have a sentry to be attended.
    pub(crate) fn reload(&self) -> Vec<ServiceKey> {
        let live = self.shared.live.load_full();
        let before = self.current();
        let rng = Rng::new(self.shared.seed ^ self.shared.clock.now().as_nanos());
        let (services, new) = self.pipeline.configure(&live);
        let current = Current::new(&self.shared, live, services, Some(&before), &rng);
        self.cache.configure(&current.live.config);
        *self.current.borrow_mut() = Rc::new(current);
        new
    }

    /// Says in a request that is sent on who sends it, and how important it is here: see `[feedback]`.
    pub(crate) fn sign(&self, current: &Current, classified: &Classified, fields: &mut HeaderMap) {
        if let Some(name) = &current.own_name {
            fields.insert(SENDER, name.clone());
        }
        let config = &current.live.config;
        if config.feedback.sends_priority
            && config.services[classified.service].classes.len() > 1
            && let Some(rank) = self.pipeline.rank(current.services[classified.service], classified.class)
        {
            fields.insert(PRIORITY, URGENCIES[usize::from(rank).min(URGENCIES.len() - 1)].clone());
        }
    }

    /// Keeps what a response of an upstream says of that upstream's overload, and of a quota that is obeyed.
    /// Its trailers may say more of the latter.
    pub(crate) fn hear_upstream(
        &self,
        current: &Current,
        service: usize,
        response: &Response<UpstreamBody<UploadBody>>,
    ) -> Option<TrailerQuota> {
        let key = current.services[service];
        let mut lines = response.headers().get_all(OVERLOAD).iter().map(HeaderValue::as_bytes);
        // Of several lines it cannot be known which is the node's. What stands for them is no message.
        let field = match (lines.next(), lines.next()) {
            (Some(_), Some(_)) => Some(&b"several lines"[..]),
            (first, _) => first,
        };
        self.pipeline.hear_upstream(key, response.body().upstream(), field);
        let config = &current.live.config;
        if !(config.services[service].upstream.obeys_quota && config.feedback.is_enabled) {
            return None;
        }
        self.pipeline.hear_quota(key, spent_for(Some(response.status()), response.headers()));
        Some(TrailerQuota::new(key))
    }

    /// Waits for the client to have a response before judging it.
    pub(crate) fn await_acknowledgement(&self, now: Instant, finished: Finished) {
        let unmeasured = &self.metrics.measurement.unmeasured;
        // The guard must be gone before anything else may look at the list.
        let pushed = self.acks.borrow_mut().push(now, finished);
        match pushed {
            Pushed::Taken => self.sweep_wanted.notify_one(),
            Pushed::LeftOut(delivery) => {
                unmeasured.increment(Unmeasured::LeftOut);
                self.pipeline.deliver(delivery, true);
            }
            Pushed::Full(delivery) => {
                self.pipeline.deliver(delivery, true);
                self.metrics.bound_hits.increment(Bound::AcksAwaited);
                unmeasured.increment(Unmeasured::AcksOverflow);
            }
        }
    }
}

impl Current {
    fn new(
        shared: &Shared,
        live: Arc<Live>,
        services: Vec<ServiceKey>,
        before: Option<&Self>,
        rng: &Rng,
    ) -> Self {
        let upstreams = live.upstreams.iter().enumerate().map(|(index, wanted)| {
            let mut known = before.iter().flat_map(|before| &before.upstreams);
            let kept = known.find(|upstreams| Arc::ptr_eq(upstreams.shared(), wanted)).cloned();
            kept.unwrap_or_else(|| {
                let upstreams = Upstreams::new(wanted.clone(), rng.fork(index as u64));
                Rc::new(upstreams.repeating(UploadBody::copy))
            })
        });
        Self {
            server: Server::new(serve_settings(&live.config)),
            silent_origins: SilentOrigins::new(live.upstreams.len()),
            upstreams: upstreams.collect(),
            services,
            service_numbers: live.config.services.iter().map(|service| number(shared, service)).collect(),
            classifier: Classifier::new(
                shared.hasher,
                Hasher64::new(shared.url_key.0, shared.url_key.1),
                &live.config,
            ),
            senders: SenderNames::new(&live.config.feedback, shared.hasher),
            // A gateway's name fits a field.
            own_name: (!live.config.feedback.keys.is_empty())
                .then(|| HeaderValue::from_str(&live.config.gateway.name).ok())
                .flatten(),
            live,
        }
    }

    /// Source network of a request's connection, if new ones from there may be refused should its clients
    /// ignore `Retry-After`.
    pub(crate) fn source(
        &self,
        classified: &Classified,
        client: &Client,
        hop: &Hop,
        sender: Sender<'_>,
    ) -> Option<ClientNetwork> {
        // Without signs no client is judged, or this one is exempt. Nodes and proxies speak for many.
        let is_judged = classified.signs.person_key != 0
            && classified.ceiling_priority != CeilingPriority::Exempt
            && self.live.config.fairness.drops_impatient;
        let speaks_for_others = hop.is_peer_trusted || matches!(sender, Sender::Node(_));
        (is_judged && !speaks_for_others).then_some(client.source).flatten()
    }
}

/// Of a service with these servers, in this order.
fn number(shared: &Shared, service: &Service) -> u64 {
    let urls = service.upstream.urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    shared.hasher.hash(&[service.name.as_bytes(), urls.as_bytes()])
}

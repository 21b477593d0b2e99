//! State shared on one worker's thread: its part of the gateway, and the configuration that it follows.

use crate::access_log::WorkerLog;
use crate::cache::WorkerCache;
use crate::current::CurrentConfig;
use crate::pipeline::PipelineHost;
use crate::replication::WorkerReplication;
use crate::responses::Responses;
use crate::sentry::GateSample;
use crate::shared::Shared;
use crate::upload::UploadRoom;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_core::Rng;
use flashweir_http::pipe::Pipes;
use flashweir_telemetry::WorkerMetrics;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
    pub(crate) cache: Rc<WorkerCache>,
    /// Routing of requests in a cluster.
    pub(crate) replication: Rc<WorkerReplication>,
    /// Requests' bodies that are waited for.
    pub(crate) uploads: Rc<UploadRoom>,
    /// Responses on their way to clients.
    pub(crate) responses: Rc<Responses>,
    /// Lines of the access log, where one is written.
    pub(crate) access_log: Option<Rc<WorkerLog>>,
    /// Wakes the sweeper when there is something to sweep.
    pub(crate) sweep_wanted: Rc<Notify>,
    /// Cancelled when connections are to end gracefully.
    pub(crate) draining: CancellationToken,
    /// One entry for each connection being served.
    pub(crate) connections: TaskTracker,
    current: RefCell<Rc<CurrentConfig>>,
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
        let current = CurrentConfig::new(&shared, live, services, None, &rng);
        let metrics = shared.telemetry.worker(index);
        let access_log = current.live.config.log.access.as_ref().zip(shared.access_lines.clone());
        let access_log =
            access_log.map(|(config, lines)| WorkerLog::new(config, lines, shared.clock, metrics.clone()));
        let context = Rc::new(Self {
            access_log,
            cache: Rc::new(WorkerCache::new(shared.clone(), metrics.clone())),
            replication: WorkerReplication::new(&shared, metrics.clone(), rng.fork(REPLICATION_DRAWS)),
            responses: Responses::new(
                shared.clone(),
                metrics.clone(),
                pipeline.clone(),
                Pipes::new(shared.pipes_per_worker),
                sweep_wanted.clone(),
            ),
            uploads: UploadRoom::new(metrics.clone(), sweep_wanted.clone()),
            metrics,
            pipeline,
            sweep_wanted,
            draining: CancellationToken::new(),
            connections: TaskTracker::new(),
            current: RefCell::new(Rc::new(current)),
            shared,
        });
        (context, new)
    }

    /// The configuration in force; a request keeps the one it began with.
    pub(crate) fn current(&self) -> Rc<CurrentConfig> {
        self.current.borrow().clone()
    }

    /// Takes over the configuration now in force. The services that are new and have a sentry to be attended.
    pub(crate) fn reload(&self) -> Vec<ServiceKey> {
        let live = self.shared.live.load_full();
        let before = self.current();
        let rng = Rng::new(self.shared.seed ^ self.shared.clock.now().as_nanos());
        let (services, new) = self.pipeline.configure(&live);
        let current = CurrentConfig::new(&self.shared, live, services, Some(&before), &rng);
        self.cache.configure(&current.live.config);
        *self.current.borrow_mut() = Rc::new(current);
        new
    }
}

//! The components' metrics: a file for each, with what is counted, its labels and how it is exported, and
//! here the one list of them: where a worker and a control thread count, and which groups each shell exports.

mod access_log;
mod bounds;
mod cache;
mod candidate;
mod classes;
mod cluster;
mod connections;
mod egress;
mod fairness;
mod feedback;
mod flash_crowd;
mod flash_crowd_candidate;
mod kernel;
mod kubernetes;
mod link;
mod process;
mod provisioning;
mod replication;
mod requests;
mod responses;
mod sentry;
mod tables;
mod uploads;
mod upstream;
mod verdict;

pub use access_log::*;
pub use bounds::*;
pub use cache::*;
pub use candidate::*;
pub use classes::*;
pub use cluster::*;
pub use connections::*;
pub use egress::*;
pub use fairness::*;
pub use feedback::*;
pub use kernel::*;
pub use kubernetes::*;
pub use link::*;
pub use process::*;
pub use provisioning::*;
pub use replication::*;
pub use requests::*;
pub use responses::*;
pub use tables::*;
pub use uploads::*;
pub use upstream::*;

use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Arc;

use self::candidate::CandidateMetrics;
use self::classes::{ClassFigures, ClassGroup};
use self::flash_crowd::FlashCrowdMetrics;
use self::flash_crowd_candidate::FlashCrowdCandidateMetrics;
use self::kernel::{KernelMetrics, ObserverGroup};
use self::link::LinkMetrics;
use self::process::{BuildGroup, ProcessGroup, WorkersGroup};
use self::sentry::SentryMetrics;
use self::upstream::UpstreamsInUse;
use self::verdict::VerdictMetrics;
use crate::Telemetry;
use crate::by_class::ByClass;
use crate::counter::{Counter, CounterSet};
use crate::histogram::{FINE_BOUNDS_NS, Histogram};
use crate::label::Label as _;
use crate::log::Happening;

/// Written by one worker alone, read by scrapes.
#[derive(Debug, Default)]
pub struct WorkerMetrics {
    /// Requests and what became of them.
    pub requests: RequestMetrics,
    /// Responses as clients see them.
    pub responses: ResponseMetrics,
    /// Connections from clients.
    pub connections: ConnectionMetrics,
    /// Requests' bodies that are waited for.
    pub uploads: UploadMetrics,
    /// Lines of the access log.
    pub access_log: AccessLogMetrics,
    /// Exchanges with upstreams.
    pub upstream: UpstreamMetrics,
    /// Measurements that reach the detector.
    pub measurement: MeasurementMetrics,
    /// Answers from the cache, and what it does for them.
    pub cache: CacheMetrics,
    /// Fair shares among clients.
    pub fairness: FairnessMetrics,
    /// Destinations of the requests of a cluster of replicas.
    pub replication: ReplicationMetrics,
    /// Counts of each class of each service.
    pub classes: ClassTable,
    /// Number of times each bound was met.
    pub bound_hits: CounterSet<Bound>,
    /// Number of replacements in each table of bounded size.
    pub table_replacements: CounterSet<Table>,
}

/// Written by the control thread alone, read by scrapes.
#[derive(Debug)]
pub struct ControlMetrics {
    /// Time of one planner tick.
    pub planner_tick: Histogram,
    /// Samples the planner took from workers.
    pub samples_judged: Counter,
    /// Reloads of the configuration file.
    pub config_reloads: CounterSet<Outcome>,
    /// Reloads of the certificate.
    pub certificate_reloads: CounterSet<Outcome>,
    /// Writes of the state file.
    pub state_writes: CounterSet<Outcome>,
    pub(crate) draining: AtomicBool,
    pub(crate) open_files_limit: AtomicUsize,
    pub(crate) connections_limit: AtomicUsize,
    pub(crate) verdict: Arc<VerdictMetrics>,
    pub(crate) flash_crowd: Arc<FlashCrowdMetrics>,
    pub(crate) flash_crowd_candidate: Arc<FlashCrowdCandidateMetrics>,
    pub(crate) upstreams_in_use: Arc<UpstreamsInUse>,
    pub(crate) cache: Arc<CacheFigures>,
    pub(crate) impatience: Arc<ImpatienceFigures>,
    /// Copies and reports of a cluster of replicas.
    pub replication: Arc<ReplicationFigures>,
    pub(crate) classes: Arc<ByClass<ClassFigures>>,
    /// Fields of upstreams that tell of overload, by how they were taken.
    pub feedback_fields: CounterSet<FieldOutcome>,
    /// Datagrams of upstreams that tell of overload, by what became of them.
    pub feedback_datagrams: EgressDatagrams,
    /// Datagrams sent to nodes in front that are asked for less and send nothing.
    pub feedback_datagrams_sent: Counter,
    pub(crate) feedback: Arc<FeedbackMetrics>,
    /// Reports of gateways to this one, where it leads.
    pub cluster_reports: CounterSet<ReportOutcome>,
    /// Answers to this gateway's reports.
    pub cluster_broadcasts: CounterSet<BroadcastOutcome>,
    pub(crate) cluster: Arc<ClusterMetrics>,
    pub(crate) sentries: Arc<SentryMetrics>,
    pub(crate) candidates: Arc<CandidateMetrics>,
    pub(crate) kernel: Arc<KernelMetrics>,
    pub(crate) link: Arc<LinkMetrics>,
}

impl Default for ControlMetrics {
    fn default() -> Self {
        Self {
            planner_tick: Histogram::new(FINE_BOUNDS_NS),
            samples_judged: Counter::default(),
            config_reloads: CounterSet::default(),
            certificate_reloads: CounterSet::default(),
            state_writes: CounterSet::default(),
            draining: AtomicBool::new(false),
            open_files_limit: AtomicUsize::new(0),
            connections_limit: AtomicUsize::new(0),
            verdict: Arc::default(),
            flash_crowd: Arc::default(),
            flash_crowd_candidate: Arc::default(),
            upstreams_in_use: Arc::default(),
            cache: Arc::default(),
            impatience: Arc::default(),
            replication: Arc::default(),
            classes: Arc::default(),
            feedback_fields: CounterSet::default(),
            feedback_datagrams: CounterSet::default(),
            feedback_datagrams_sent: Counter::default(),
            feedback: Arc::default(),
            cluster_reports: CounterSet::default(),
            cluster_broadcasts: CounterSet::default(),
            cluster: Arc::default(),
            sentries: Arc::default(),
            candidates: Arc::default(),
            kernel: Arc::default(),
            link: Arc::default(),
        }
    }
}

impl Telemetry {
    /// Metrics of a gateway with this many workers; `version` is the one in `flashweir_build_info`.
    #[must_use]
    pub fn gateway(workers: usize, version: &'static str) -> Self {
        let mut all = Self::new(workers);
        all.register_workers(|worker| &worker.requests);
        all.register_workers(|worker| &worker.bound_hits);
        all.register_workers(|worker| &worker.table_replacements);
        all.register_workers(|worker| &worker.fairness);
        all.register(all.control.impatience.clone());
        all.register_workers(|worker| &worker.responses);
        all.register_workers(|worker| &worker.measurement);
        all.register_workers(|worker| &worker.connections);
        all.register_workers(|worker| &worker.uploads);
        all.register_workers(|worker| &worker.access_log);
        all.register_workers(|worker| &worker.upstream);
        all.register_workers(|worker| &worker.cache);
        all.register(all.control.cache.clone());
        all.register_workers(|worker| &worker.replication);
        all.register(all.control.replication.clone());
        all.register(all.control.upstreams_in_use.clone());
        all.register(all.control.verdict.clone());
        all.register(all.control.flash_crowd.clone());
        let (workers, classes) = (Arc::clone(&all.workers), all.control.classes.clone());
        all.register(Arc::new(ClassGroup { workers, classes }));
        all.register(all.control.sentries.clone());
        let control = all.control();
        all.register(Arc::new(FeedbackGroup(control)));
        all.register(Arc::new(ClusterGroup(all.control())));
        all.register(all.control.candidates.clone());
        all.register(all.control.flash_crowd_candidate.clone());
        all.register(all.control.kernel.clone());
        let (control, workers) = (all.control(), all.workers.len());
        all.register(Arc::new(WorkersGroup { control, workers }));
        all.register_process(Happening::ALL, version);
        all
    }

    /// Metrics of a router, which has no workers.
    #[must_use]
    pub fn router(version: &'static str) -> Self {
        let mut all = Self::new(0);
        all.register(all.control.flash_crowd.clone());
        all.register(all.control.kernel.clone());
        all.register(Arc::new(ObserverGroup(all.control.kernel.clone())));
        all.register(all.control.link.clone());
        let happenings = &[Happening::CauseChanged, Happening::StateFile, Happening::Kernel];
        all.register_process(happenings, version);
        all
    }

    /// Metrics of an egress, which has no workers and whose targets the group reads.
    #[must_use]
    pub fn egress(targets: EgressGroup, version: &'static str) -> Self {
        let mut all = Self::new(0);
        all.register(Arc::new(targets));
        all.register_process(&[Happening::BadRequest], version);
        all
    }

    pub(crate) fn register_build(&mut self, version: &'static str) {
        self.register(Arc::new(BuildGroup { version }));
    }

    fn register_process(&mut self, happenings: &'static [Happening], version: &'static str) {
        let (control, warnings) = (self.control(), self.warnings());
        self.register(Arc::new(ProcessGroup { control, warnings, happenings, version }));
    }
}

//! State that all threads of one gateway see: read-mostly values behind atomic pointers, and counts.

use crate::access_log::AccessLines;
use crate::agents::Machines;
use crate::bounds::Bounds;
use crate::cache::CacheShared;
use crate::cluster::Cluster;
use crate::descriptors;
use crate::flash_crowd_candidate::FlashCrowdCandidate;
use crate::impatient::ImpatientSources;
use crate::replication::ReplicationShared;
use crate::sentry::{Candidate, Rest, Sentry};
use crate::turned_away::TurnedAway;
use arc_swap::{ArcSwap, ArcSwapOption};
use flashweir_admission::flash_crowd::{Baseline, Plan};
use flashweir_admission::pipeline::{LoadVerdict, SharedByWorkers};
use flashweir_config::{Config, Service};
use flashweir_core::Hasher64;
use flashweir_http::client::TrustedProxies;
use flashweir_http::tls::ServerTls;
use flashweir_http::upstream::UpstreamShared;
use flashweir_runtime::{Clock, UrlKey, random_u64};
use flashweir_telemetry::{Happening, Telemetry, Warnings};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One gateway's common ground. Workers read it; the control thread replaces what changes.
pub(crate) struct Shared {
    /// The one clock.
    pub(crate) clock: Clock,
    /// Separates this run's decision ids from those of other runs.
    pub(crate) boot: u16,
    /// Seeds what may be random: jitter, choice of upstream.
    pub(crate) seed: u64,
    /// Under a key drawn at start, for tables that clients can fill.
    pub(crate) hasher: Hasher64,
    /// The key of URL classes: as that one, but kept with what is learned of the classes.
    pub(crate) url_key: UrlKey,
    /// The configuration in force.
    pub(crate) live: ArcSwap<Live>,
    /// The plan in force.
    pub(crate) plan: Arc<ArcSwap<Plan>>,
    /// Cause of the present load.
    pub(crate) verdict: ArcSwap<LoadVerdict>,
    /// This gateway as one of several, where limits are shared.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// The agents' reports on the servers' machines.
    pub(crate) machines: ArcSwap<Machines>,
    /// The planner's learned baseline, for `/status` and the state file; refreshed once a second.
    pub(crate) baseline: ArcSwap<Baseline>,
    /// Lets the sentries' planner rest while no request comes.
    pub(crate) rest: Arc<Rest>,
    /// State that the pipelines of all workers share.
    pub(crate) pipelines: SharedByWorkers,
    /// Sources of clients that ignore `Retry-After`.
    pub(crate) impatient: Arc<ImpatientSources>,
    /// Counts of refusals in the kernel, before a worker saw the request, for the planner.
    pub(crate) turned_away: TurnedAway,
    /// Document of the gate in the kernel for `/status`, where there is one.
    pub(crate) kernel_told: ArcSwapOption<serde_json::Value>,
    /// State that the workers' caches share.
    pub(crate) cache: CacheShared,
    /// State that the threads of a node of a cluster share.
    pub(crate) replication: ReplicationShared,
    /// Connections and requests of all workers.
    pub(crate) bounds: Arc<Bounds>,
    /// Every metric.
    pub(crate) telemetry: Telemetry,
    /// Log lines that load could make frequent.
    pub(crate) warnings: Arc<Warnings>,
    /// Takes the workers' lines of the access log, where one is written.
    pub(crate) access_lines: Option<AccessLines>,
    /// Addresses for clients (with the ports the system chose for port 0).
    pub(crate) listening_on: Vec<SocketAddr>,
    /// Addresses that redirect to HTTPS.
    pub(crate) redirecting_on: Vec<SocketAddr>,
    /// Pipes that each worker may have.
    pub(crate) pipes_per_worker: usize,
    draining: AtomicBool,
    has_successor: AtomicBool,
}

/// A configuration in force and what was built from it.
pub(crate) struct Live {
    /// The checked configuration.
    pub(crate) config: Config,
    /// Health and in-flight counts of each service's upstreams, in the configuration's order; kept over
    /// reloads that leave them alone.
    pub(crate) upstreams: Vec<Arc<UpstreamShared>>,
    /// The sentry of each service, in the configuration's order; `None` where policing is off. Kept over
    /// reloads that leave the policy alone.
    pub(crate) sentries: Vec<Option<Arc<Sentry>>>,
    /// The candidate of each service's sentry, in the configuration's order. Kept over reloads that leave it
    /// alone.
    pub(crate) candidates: Vec<Option<Arc<Candidate>>>,
    /// The candidate of the flash-crowd stage's policy. Kept over reloads that leave both alone.
    pub(crate) flash_crowd_candidate: Option<Arc<FlashCrowdCandidate>>,
    /// Certificates, when clients speak TLS; kept over reloads that leave their files alone.
    pub(crate) tls: Option<Arc<ServerTls>>,
    /// Proxies whose statement of the client's address is accepted.
    pub(crate) trusted_proxies: TrustedProxies,
}

impl Live {
    /// Each service as configured, with its upstreams.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&Service, &Arc<UpstreamShared>)> {
        self.config.services.iter().zip(&self.upstreams)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("listening_on", &self.listening_on).finish_non_exhaustive()
    }
}

/// The parts of which [`Shared::new`] makes the state.
pub(crate) struct Parts {
    pub(crate) live: Live,
    pub(crate) workers: usize,
    pub(crate) listening_on: Vec<SocketAddr>,
    pub(crate) redirecting_on: Vec<SocketAddr>,
    pub(crate) access_lines: Option<AccessLines>,
    /// Under which URL classes were learned; `None` to draw one.
    pub(crate) url_key: Option<UrlKey>,
}

impl Shared {
    /// Draws this run's keys from the operating system.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let (key0, key1, seed) = (random_u64(), random_u64(), random_u64());
        let hasher = Hasher64::new(key0, key1);
        let telemetry = Telemetry::gateway(parts.workers, env!("CARGO_PKG_VERSION"));
        let warnings = telemetry.warnings();
        let cache = CacheShared::new(&parts.live.config.cache, parts.workers);
        let cluster = Cluster::new(&parts.live.config, random_u64(), parts.workers);
        let replication = ReplicationShared::new(&parts.live.config.replication, parts.workers);
        let max_connections = parts.live.config.bounds.max_connections;
        telemetry.control().set_connection_limits(descriptors::limit(), max_connections);
        Arc::new(Self {
            clock: Clock::start(),
            boot: random_u64() as u16,
            seed,
            hasher,
            url_key: parts.url_key.unwrap_or_else(|| (random_u64(), random_u64())),
            live: ArcSwap::from_pointee(parts.live),
            plan: Arc::new(ArcSwap::from_pointee(Plan::open(parts.workers))),
            verdict: ArcSwap::default(),
            cluster,
            machines: ArcSwap::default(),
            baseline: ArcSwap::default(),
            rest: Arc::default(),
            pipelines: SharedByWorkers::default(),
            impatient: Arc::new(ImpatientSources::new(hasher)),
            turned_away: TurnedAway::default(),
            kernel_told: ArcSwapOption::empty(),
            cache,
            replication,
            bounds: Bounds::new(hasher),
            telemetry,
            warnings,
            access_lines: parts.access_lines,
            listening_on: parts.listening_on,
            redirecting_on: parts.redirecting_on,
            pipes_per_worker: descriptors::pipes_per_worker(descriptors::limit(), parts.workers),
            draining: AtomicBool::new(false),
            has_successor: AtomicBool::new(false),
        })
    }

    /// Returns whether the gateway is about to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Returns whether new work is refused because the gateway is about to stop. With a successor that takes
    /// new connections it is not: the requests of those that were accepted are the last.
    pub(crate) fn refuses_new_work(&self) -> bool {
        self.is_draining() && !self.has_successor.load(Ordering::Relaxed)
    }

    /// The sockets for clients outlive this process: another one takes new connections.
    pub(crate) fn expect_successor(&self) {
        self.has_successor.store(true, Ordering::Relaxed);
    }

    /// From now on no connection is accepted.
    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.telemetry.control().set_draining(true);
    }

    /// Counts and, not too often, logs what happened. Name no client address and no URL.
    pub(crate) fn warn(&self, happening: Happening, message: fmt::Arguments<'_>) {
        self.warnings.warn(self.clock.now(), happening, message);
    }
}

//! Builds a gateway from its configuration, in the order in which things may fail: files, ports, threads.

use crate::access_log;
use crate::admin::AdminServer;
use crate::cluster::{Cluster, Means};
use crate::commands::{WorkerEnds, connect};
use crate::control::{Control, Planners, Signals};
use crate::descriptors;
use crate::error::GatewayError;
use crate::flash_crowd_candidate::FlashCrowdCandidate;
use crate::kernel::KernelGuard;
use crate::listening::Listening;
use crate::planner_task::NewsStation;
use crate::recording;
use crate::sentry::SentryStation;
use crate::services::{candidates, sentries, upstreams};
use crate::shared::{Live, Parts, Shared};
use crate::state_file;
use crate::worker;
use flashweir_config::{Config, Overrides};
use flashweir_core::{Duration, limits};
use flashweir_http::client::TrustedProxies;
use flashweir_http::listen::WorkerListeners;
use flashweir_http::tls::ServerTls;
use flashweir_kernel::notify_ready;
use flashweir_runtime::{ClusterLink, Drain, ReadyFile, StateFile};
use std::fmt;
use std::future::pending;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use tokio::sync::watch;
use tokio::task::LocalSet;

/// Time that the last lines of the access log get to be written.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// A gateway to run.
#[derive(Debug)]
pub struct Launch {
    /// The checked configuration.
    pub config: Config,
    /// The file it came from: read again on SIGHUP.
    pub config_file: Option<PathBuf>,
    /// The flags that win over the file, at every reload too.
    pub overrides: Overrides,
    /// File in which the planners' inputs and decisions are recorded.
    pub record: Option<PathBuf>,
    /// URLs of the servers that take requests now, from outside; they win over file and flags once there are
    /// any.
    pub servers: Option<watch::Receiver<Vec<String>>>,
    /// Carrier of the messages of gateways that share a limit, where the configuration says that another
    /// crate does: in Kubernetes.
    pub cluster: Option<ClusterLink>,
    /// Listening sockets that take the place of the configured addresses, where there are any: those of
    /// the service manager.
    pub listeners: Vec<TcpListener>,
    /// The file that says where it listens, once it does.
    pub ready_file: Option<ReadyFile>,
}

/// Runs a gateway on this thread and one more for each worker, until SIGTERM or SIGINT has drained it.
///
/// # Errors
/// As [`Gateway::bind`] and [`Gateway::serve`].
pub fn run(launch: Launch) -> Result<(), GatewayError> {
    Gateway::bind(launch)?.serve(pending())
}

/// A gateway whose ports are bound and that does not accept yet.
pub struct Gateway {
    shared: Arc<Shared>,
    listeners: Vec<WorkerListeners>,
    worker_ends: Vec<WorkerEnds>,
    admin: AdminServer,
    admin_address: SocketAddr,
    datagrams_address: Option<SocketAddr>,
    ready_file: Option<ReadyFile>,
    /// Ends the thread of the access log.
    access_drain: Option<Drain>,
    planners: Planners,
    control: Control,
}

impl Gateway {
    /// Raises the limit on open files, reads certificates and state, puts the gate in the kernel before its
    /// interfaces where one is configured, takes every port; starts no thread.
    ///
    /// # Errors
    /// [`GatewayError`] naming what cannot be had; then no port is held.
    pub fn bind(launch: Launch) -> Result<Self, GatewayError> {
        let Launch { mut config, config_file, overrides, record, servers, cluster, listeners, ready_file } =
            launch;
        let workers = worker_count(&config);
        let refuse_only = descriptors::fit(&mut config, workers, descriptors::raise_limit());
        let tls = match &config.listen.tls {
            Some(files) => Some(Arc::new(ServerTls::open(&files.certificate, &files.key)?)),
            None => None,
        };
        let upstreams = upstreams(&config, workers, None)?;
        // Attached before a port opens, so that nothing is held when it cannot be.
        let mut kernel = KernelGuard::open(&config)?;
        let Listening { listeners, serving: listening_on, redirecting: redirecting_on } =
            Listening::open(&config.listen, &listeners, workers)?;
        let cluster = Means::open(&config.cluster, cluster)?;
        let datagrams = config.feedback.udp.map(bind_datagrams).transpose()?;
        if let Some(kernel) = &mut kernel {
            kernel.protect(&config, &listening_on, config.listen.tls.is_some())?;
        }
        let access_log = config.log.access.as_ref().map(access_log::open).transpose()?;
        let (access_lines, access_drain) = access_log.unzip();
        let recorder = record.map(|file| recording::start(&file, &config, workers)).transpose()?;
        let state_file = state_file::configured(&config);
        let learned = state_file.as_ref().map(StateFile::load_or_begin_anew).unwrap_or_default();
        let saved_url_key = || state_file.as_ref().and_then(StateFile::saved_url_key);
        let url_key = Cluster::url_key(&config).or_else(saved_url_key);
        let trusted_proxies = TrustedProxies::new(config.client.trusted_proxies.clone());
        let sentries = sentries(&config, workers, None);
        let candidates = candidates(&config, workers, None);
        let flash_crowd_candidate = FlashCrowdCandidate::of(&config, workers, None);
        let live =
            Live { config, upstreams, sentries, candidates, flash_crowd_candidate, tls, trusted_proxies };
        let shared =
            Shared::new(Parts { live, workers, listening_on, redirecting_on, access_lines, url_key });
        shared.bounds.set_refuse_only_most(refuse_only);
        if listeners[0].outlive_the_process() {
            shared.expect_successor();
        }
        let (ends, worker_ends) = connect(workers);
        let admin = AdminServer::bind(shared.clone(), config_file.as_deref(), ends.commands.clone())?;
        let admin_address = admin.address().map_err(GatewayError::Start)?;
        let sampling = (ends.sample_wanted, ends.samples);
        let news = NewsStation::new(shared.clone(), workers, sampling, learned, recorder.as_ref());
        let sentries = SentryStation::new(shared.clone(), ends.gate_samples, recorder);
        let control = Control {
            shared: shared.clone(),
            workers,
            config_file,
            overrides,
            servers,
            commands: ends.commands,
            cluster,
            stopped: ends.stopped,
        };
        let datagrams_address =
            datagrams.as_ref().map(UdpSocket::local_addr).transpose().map_err(GatewayError::Start)?;
        let planners = Planners { news, sentries, kernel, datagrams };
        Ok(Self {
            shared,
            listeners,
            worker_ends,
            admin,
            admin_address,
            datagrams_address,
            ready_file,
            access_drain,
            planners,
            control,
        })
    }

    /// Addresses for clients; the system chose the ports that were configured as 0.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.shared.listening_on
    }

    /// Address of the admin listener.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Serves until SIGTERM or SIGINT, or until `stop` resolves; then drains.
    ///
    /// # Errors
    /// [`GatewayError::RequestsCut`] when requests were still under way at the end of `bounds.drain_timeout`;
    /// [`GatewayError::Worker`] or [`GatewayError::Start`] when the operating system refused something.
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<(), GatewayError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(GatewayError::Start)?;
        let signals = {
            let _context = runtime.enter();
            Signals::register()?
        };
        for (index, (listeners, ends)) in self.listeners.into_iter().zip(self.worker_ends).enumerate() {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            // Not joined: each reports its end through its channel, and a stuck one must not keep the
            // process.
            thread.spawn(move || worker::run(index, shared, listeners, ends)).map_err(GatewayError::Start)?;
        }
        if let Some(file) = &self.ready_file {
            let roles = [
                ("listen", self.shared.listening_on.as_slice()),
                ("admin", &[self.admin_address]),
                ("feedback_udp", self.datagrams_address.as_slice()),
                ("redirect", self.shared.redirecting_on.as_slice()),
            ];
            file.write(&roles).map_err(GatewayError::Start)?;
        }
        if let Err(error) = notify_ready() {
            tracing::warn!(
                "no message to the service manager that the gateway serves (NOTIFY_SOCKET): {error}"
            );
        }
        let outcome =
            LocalSet::new().block_on(&runtime, self.control.run(self.admin, self.planners, signals, stop));
        // The workers have handed their last lines over.
        self.access_drain.into_iter().for_each(|drain| drain.wait(LAST_LINES_WITHIN));
        outcome
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

/// The socket on which datagrams of upstreams arrive.
fn bind_datagrams(address: SocketAddr) -> Result<UdpSocket, GatewayError> {
    let socket = UdpSocket::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    socket.map_err(|source| GatewayError::Datagrams { address, source })
}

/// One for each core unless configured, and never more than decision ids can name.
fn worker_count(config: &Config) -> usize {
    let cores = || thread::available_parallelism().ok();
    config.gateway.workers.or_else(cores).map_or(1, NonZeroUsize::get).min(limits::WORKERS)
}

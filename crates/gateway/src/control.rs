//! The control thread: signals, reloads, health checks, and the orderly end.

use crate::admin::AdminServer;
use crate::agents::watch_agents;
use crate::cluster;
use crate::commands::{Command, Stopped};
use crate::error::GatewayError;
use crate::feedback::receiver;
use crate::kernel::KernelGuard;
use crate::planner_task::{NewsStation, UnattendedNews};
use crate::reload::reload;
use crate::replication;
use crate::sentry::{SentryStation, UnattendedSentries};
use crate::shared::Shared;
use crate::state_file;
use crate::upstream_watch::watch_upstreams;
use crate::watch::{watch_certificates, watch_memory};
use flashweir_config::Overrides;
use flashweir_core::Duration;
use flashweir_kernel::notify_stopping;
use flashweir_runtime::planner_loop::{self, Beat, StallWatch, Unattended};
use flashweir_runtime::{HeldLease, outlive_user_signals};
use flashweir_telemetry::Outcome;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio_util::sync::CancellationToken;

/// A worker that has not reported this long after its time to drain is over is stuck and left behind.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Resolves when there is such a task and it ends.
async fn end_of(task: &mut Option<JoinHandle<()>>) {
    match task {
        // It only ends by a panic, which has been reported on standard error.
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

/// Resolves when other servers take requests from now on; never, where nothing outside says so.
async fn next_servers(servers: &mut Option<watch::Receiver<Vec<String>>>) -> Vec<String> {
    if let Some(servers) = servers {
        while servers.changed().await.is_ok() {
            let urls = servers.borrow_and_update().clone();
            if !urls.is_empty() {
                return urls;
            }
        }
    }
    std::future::pending().await
}

/// State of the control thread.
pub(crate) struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: usize,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) overrides: Overrides,
    /// URLs of the servers that take requests, from outside.
    pub(crate) servers: Option<watch::Receiver<Vec<String>>>,
    pub(crate) commands: Vec<mpsc::Sender<Command>>,
    /// Resources for sharing limits with other gateways.
    pub(crate) cluster: cluster::Means,
    pub(crate) stopped: mpsc::Receiver<Stopped>,
}

/// The planners that run on this thread.
pub(crate) struct Planners {
    /// Ceilings against flash crowds.
    pub(crate) news: NewsStation,
    /// Limits on what goes to the origins.
    pub(crate) sentries: SentryStation,
    /// Ceilings in the kernel, where it has a gate.
    pub(crate) kernel: Option<KernelGuard>,
    /// Socket for the datagrams of upstreams.
    pub(crate) datagrams: Option<UdpSocket>,
}

/// Signals that end the gateway or make it reload its configuration. Registered before the first request can
/// be answered: a client that has had an answer may send one, and unregistered it would end the process.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Must be called in the control thread's runtime.
    pub(crate) fn register() -> Result<Self, GatewayError> {
        let listen_for = |kind| signal(kind).map_err(GatewayError::Start);
        outlive_user_signals().map_err(GatewayError::Start)?;
        Ok(Self {
            terminate: listen_for(SignalKind::terminate())?,
            interrupt: listen_for(SignalKind::interrupt())?,
            hang_up: listen_for(SignalKind::hangup())?,
        })
    }
}

impl Control {
    /// Runs until a signal or `stop` ends it and the gateway has drained.
    pub(crate) async fn run(
        mut self,
        admin: AdminServer,
        planners: Planners,
        signals: Signals,
        stop: impl Future<Output = ()>,
    ) -> Result<(), GatewayError> {
        let mut stop = pin!(stop);
        let Signals { mut terminate, mut interrupt, mut hang_up } = signals;
        let admin_address = admin.address().map_err(GatewayError::Start)?;
        spawn_local(admin.serve());
        let beats = [Beat::default(), Beat::default()];
        let [news_beat, sentries_beat] = beats.clone();
        let news = spawn_local(planner_loop::run(planners.news, news_beat));
        let sentries = spawn_local(planner_loop::run(planners.sentries, sentries_beat));
        let stall_watch = self.watch_planners(beats).map_err(GatewayError::Start)?;
        let leave_kernel = CancellationToken::new();
        let in_kernel =
            |guard: KernelGuard| spawn_local(guard.run(self.shared.clone(), leave_kernel.clone()));
        let mut kernel = planners.kernel.map(in_kernel);
        if let Some(socket) = planners.datagrams {
            let socket = tokio::net::UdpSocket::from_std(socket).map_err(GatewayError::Start)?;
            spawn_local(receiver::receive(socket, self.shared.clone()));
        }
        let lease = self.join_cluster();
        self.watch();
        self.tell_start(admin_address);
        self.tell_candidates();
        let is_terminated = loop {
            tokio::select! {
                _ = terminate.recv() => break true,
                _ = interrupt.recv() => break false,
                () = &mut stop => break false,
                _ = hang_up.recv() => self.reload().await,
                urls = next_servers(&mut self.servers) => {
                    self.overrides.upstream_urls = urls;
                    self.reload().await;
                }
                () = end_of(&mut kernel) => {
                    tracing::error!("the gate in the kernel was taken away by a bug: it refuses no connection until a restart");
                    kernel = None;
                    self.shared.kernel_told.store(None);
                }
                // A worker stops by itself only when it cannot run at all.
                Some(stopped) = self.stopped.recv() => {
                    let why = stopped.failure.unwrap_or_else(|| "without an order to stop".to_owned());
                    return Err(GatewayError::Worker(why));
                }
            }
        };
        let leaves_gate = is_terminated && self.shared.live.load().config.kernel.pin.is_some();
        if !leaves_gate {
            self.take_gate_away(kernel.take()).await;
        }
        let outcome = self.drain().await;
        cluster::leave(lease).await;
        leave_kernel.cancel();
        if let Some(kernel) = kernel {
            // It ends at once, or has ended by a panic, which has been reported.
            let _ = kernel.await;
            tracing::info!("the gate in the kernel stays, pinned, for the gateway that comes next");
        }
        // The planner is asked nothing after this: what it published last is what is kept.
        drop(stall_watch);
        news.abort();
        sentries.abort();
        self.save_baseline();
        outcome
    }

    /// Reports, leads and follows from now on; returns the lease, where there may be one to give up.
    fn join_cluster(&mut self) -> Option<watch::Receiver<Option<HeldLease>>> {
        let means = std::mem::replace(&mut self.cluster, cluster::Means::None);
        let lease = means.lease();
        spawn_local(cluster::run(self.shared.clone(), means));
        lease
    }

    /// Looks from now on after what changes beside the requests.
    fn watch(&self) {
        spawn_local(watch_upstreams(self.shared.clone()));
        spawn_local(watch_agents(self.shared.clone()));
        spawn_local(replication::attend(self.shared.clone()));
        spawn_local(watch_certificates(self.shared.clone()));
        spawn_local(watch_memory(self.shared.clone()));
    }

    /// Sees, from its own thread, whether this one still runs the planners.
    fn watch_planners(&self, [news, sentries]: [Beat; 2]) -> io::Result<StallWatch> {
        let shared = &self.shared;
        let loops: Vec<(Beat, Box<dyn Unattended>)> = vec![
            (news, Box::new(UnattendedNews::new(shared.clone()))),
            (sentries, Box::new(UnattendedSentries::new(shared.clone()))),
        ];
        StallWatch::start(loops, shared.clock, shared.warnings.clone())
    }

    /// Takes the gate away. From here on the gateway itself answers new clients that it is stopping.
    async fn take_gate_away(&self, task: Option<JoinHandle<()>>) {
        let Some(task) = task else { return };
        task.abort();
        // Over once the gate is gone; it was aborted, so there is nothing to hear of it.
        let _ = task.await;
        self.shared.kernel_told.store(None);
    }

    fn tell_start(&self, admin_address: SocketAddr) {
        let live = self.shared.live.load();
        tracing::info!(
            listening_on = ?self.shared.listening_on,
            admin = %admin_address,
            services = live.config.services.len(),
            upstreams = live.config.services.iter().map(|service| service.upstream.urls.len()).sum::<usize>(),
            workers = self.workers,
            kernel = ?live.config.kernel.interfaces,
            shadow = live.config.flash_crowd.shadow,
            "flashweir {} serves",
            env!("CARGO_PKG_VERSION"),
        );
        if !admin_address.ip().is_loopback() && live.config.admin.token.is_none() {
            tracing::warn!(
                "the admin listener on {admin_address} is open to every host that reaches that address: it shows clients' \
                 addresses and purges the cache; bind it to 127.0.0.1, set admin.token_file, or let a firewall close it"
            );
        }
    }

    async fn reload(&self) {
        let outcome = match reload(&self.shared, self.config_file.as_deref(), &self.overrides, self.workers) {
            Ok(()) => {
                for worker in &self.commands {
                    // A full queue means a stuck worker; the others must not wait for it.
                    if worker.try_send(Command::Reload).is_err() {
                        tracing::error!("a worker did not take the new configuration");
                    }
                }
                tracing::info!("the configuration was reloaded");
                self.tell_candidates();
                Outcome::Ok
            }
            Err(error) => {
                tracing::error!("{error}; the configuration in force is kept");
                Outcome::Failed
            }
        };
        self.shared.telemetry.control().config_reloads.increment(outcome);
    }

    /// Logs which policies are compared with another one, if any is.
    fn tell_candidates(&self) {
        let live = self.shared.live.load();
        if let Some(candidate) = &live.config.flash_crowd_candidate {
            tracing::info!(
                mode = candidate.mode.as_str(),
                "a candidate of the flash-crowd stage is compared with the policy in force; it refuses no request"
            );
        }
        let compared = live.config.services.iter().filter(|service| service.candidate.is_some());
        let services: Vec<&str> = compared.map(|service| service.name.as_str()).collect();
        if !services.is_empty() {
            tracing::info!(
                ?services,
                "a candidate policy is compared with the one in force; it refuses no request"
            );
        }
    }

    /// Refuses new work, lets admitted requests end, and says how many could not.
    async fn drain(&mut self) -> Result<(), GatewayError> {
        self.shared.start_draining();
        // A manager that does not listen loses nothing but this.
        let _ = notify_stopping();
        let in_flight = self.shared.pipelines.in_gateway.get();
        let drain_timeout = self.shared.live.load().config.bounds.drain_timeout;
        tracing::info!(in_flight, drain_timeout_s = drain_timeout.as_secs_f64(), "draining");
        for worker in &self.commands {
            // One that is gone has nothing to drain.
            let _ = worker.try_send(Command::Drain);
        }
        let mut requests_cut = 0;
        let all_stopped = async {
            for _ in 0..self.workers {
                match self.stopped.recv().await {
                    Some(stopped) => requests_cut += stopped.requests_cut,
                    None => return,
                }
            }
        };
        if tokio::time::timeout(drain_timeout + STOP_GRACE, all_stopped).await.is_err() {
            requests_cut = requests_cut.max(self.shared.pipelines.in_gateway.get());
        }
        match requests_cut {
            0 => {
                tracing::info!("drained: every admitted request ended");
                Ok(())
            }
            requests => Err(GatewayError::RequestsCut { requests }),
        }
    }

    fn save_baseline(&self) {
        if let Some(file) = state_file::in_force(&self.shared) {
            file.save_or_tell(self.shared.clock.now(), &self.shared.baseline.load(), &self.shared.telemetry);
        }
    }
}

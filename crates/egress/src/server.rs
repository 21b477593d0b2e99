//! Listens, serves, and ends in order.

use crate::config::Config;
use crate::datagrams::receive;
use crate::error::EgressError;
use crate::request::{Route, handle};
use crate::status::{Views, routes};
use crate::target::RoutedTarget;
use crate::{metrics, resolve};
use flashweir_core::Duration;
use flashweir_core::limits::{EGRESS_CONNECTIONS, EGRESS_LISTENERS};
use flashweir_http::listen::{WorkerListeners, accept, bind};
use flashweir_http::serve::HeadLimits;
use flashweir_http::serve::{ServeSettings, Server};
use flashweir_runtime::{AdminListener, Clock, ReadyFile, outlive_user_signals};
use flashweir_telemetry::{EgressDatagrams, Happening, Telemetry, Warnings};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

/// Settings by which processes are served: the bounds of the gateway. The process is trusted, but its heads
/// are parsed twice all the same.
const SERVE: ServeSettings = ServeSettings {
    head: HeadLimits { bytes_max: 64 << 10, fields_max: 100 },
    head_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(120),
    http2_streams_max: 256,
    http2_ping_after: Duration::from_secs(20),
};
/// Time that requests under way may take after a signal to end.
const DRAIN: Duration = Duration::from_secs(10);
/// After a failed `accept`: trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// Interval at which limits that ended with time alone are looked for, for the log.
const REFRESH: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or SIGINT; SIGHUP reads the files of keys again. Writes `ready_file` when it listens.
///
/// # Errors
/// [`EgressError`] when it cannot begin.
pub fn run(config: Config, ready_file: Option<ReadyFile>, version: &'static str) -> Result<(), EgressError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(config, ready_file, version))
}

async fn serve(
    config: Config,
    ready_file: Option<ReadyFile>,
    version: &'static str,
) -> Result<(), EgressError> {
    let (mut terminate, mut interrupt, mut reload) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    outlive_user_signals()?;
    let Sockets { listening, admin, udp } = Sockets::bind(&config).await?;
    let listening_on = listening.first().map(WorkerListeners::addresses).transpose()?.unwrap_or_default();
    let admin_address = admin.as_ref().map(AdminListener::address).transpose()?;
    let udp_address = udp.as_ref().map(UdpSocket::local_addr).transpose()?;
    let name = config.name.clone();
    let mut targets = Vec::with_capacity(config.targets.len());
    for target in &config.targets {
        targets.push(RoutedTarget::new(&name, target.clone(), target.keys()?));
    }
    let targets: Rc<[Rc<RoutedTarget>]> = targets.into();
    let views: Views = targets.iter().map(|target| target.view.clone()).collect();
    let datagrams = Arc::new(EgressDatagrams::default());
    let telemetry = Arc::new(Telemetry::egress(metrics::group(views.clone(), datagrams.clone()), version));
    if let Some(socket) = udp {
        spawn_local(receive(socket, name.clone(), targets.clone(), datagrams));
    }
    let warnings = telemetry.warnings();
    if let Some(admin) = admin {
        spawn_local(admin.serve(routes(&name, views, telemetry), Vec::new()));
    }
    for target in targets.iter() {
        let mut known = Vec::new();
        resolve::resolve(target, &mut known).await;
        spawn_local(resolve::keep(Rc::downgrade(target), known));
    }
    spawn_local(refresh(targets.clone()));
    let serving = Serving {
        server: Rc::new(Server::new(SERVE)),
        connections: TaskTracker::new(),
        places: Arc::new(Semaphore::new(EGRESS_CONNECTIONS)),
        draining: CancellationToken::new(),
        warnings,
        clock: Clock::start(),
    };
    serving.accept(&config, listening, &targets)?;
    if let Some(file) = ready_file {
        let roles = [
            ("listen", &*listening_on),
            ("admin", admin_address.as_slice()),
            ("udp", udp_address.as_slice()),
        ];
        file.write(&roles)?;
    }
    info!(sender = name, targets = targets.len(), "egress ready");
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = reload.recv() => targets.iter().for_each(|target| read_keys(target)),
        }
    }
    serving.drain().await;
    Ok(())
}

/// Sockets on which it listens.
struct Sockets {
    /// Sockets of the one worker.
    listening: Vec<WorkerListeners>,
    admin: Option<AdminListener>,
    udp: Option<UdpSocket>,
}

impl Sockets {
    async fn bind(config: &Config) -> Result<Self, EgressError> {
        let addresses: Vec<SocketAddr> = config.listeners.iter().map(|listener| listener.address).collect();
        let admin = config.admin.map(bind_admin).transpose()?;
        let udp = match config.udp {
            Some(address) => {
                let socket = UdpSocket::bind(address).await;
                Some(socket.map_err(|error| EgressError::Admin { address, error })?)
            }
            None => None,
        };
        Ok(Self { listening: bind(&addresses, 1)?, admin, udp })
    }
}

fn bind_admin(address: SocketAddr) -> Result<AdminListener, EgressError> {
    AdminListener::bind(address).map_err(|error| EgressError::Admin { address, error })
}

fn read_keys(target: &RoutedTarget) {
    match target.config.keys() {
        Ok(keys) => {
            target.set_keys(keys);
            info!(to = target.config.name.as_str(), "keys read again");
        }
        Err(error) => {
            error!(to = target.config.name.as_str(), %error, "keys not read again: the old ones stay")
        }
    }
}

async fn refresh(targets: Rc<[Rc<RoutedTarget>]>) {
    loop {
        sleep(REFRESH).await;
        targets.iter().for_each(|target| target.refresh());
    }
}

#[derive(Clone)]
struct Serving {
    server: Rc<Server>,
    connections: TaskTracker,
    /// Connections at once; further ones wait in the kernel's queue.
    places: Arc<Semaphore>,
    draining: CancellationToken,
    warnings: Arc<Warnings>,
    clock: Clock,
}

impl Serving {
    /// Accepts connections at each of the configured addresses.
    fn accept(
        &self,
        config: &Config,
        listening: Vec<WorkerListeners>,
        targets: &Rc<[Rc<RoutedTarget>]>,
    ) -> Result<(), EgressError> {
        let ranks = Rc::new(config.ranks.clone());
        // One worker has one socket for each address, in the order of the addresses.
        let sockets = listening.into_iter().map(WorkerListeners::into_tokio);
        let sockets: Vec<TcpListener> =
            sockets.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        debug_assert!(sockets.len() <= EGRESS_LISTENERS);
        for (listener, socket) in config.listeners.iter().zip(sockets) {
            let route = Route {
                targets: targets.clone(),
                ranks: ranks.clone(),
                target: listener.target,
                rank: listener.rank,
            };
            spawn_local(self.clone().accept_all(socket, Rc::new(route)));
        }
        Ok(())
    }

    async fn accept_all(self, listener: TcpListener, route: Rc<Route>) {
        loop {
            // The semaphore is never closed.
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = accept(&listener) => accepted,
                () = self.draining.cancelled() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (serving, route) = (self.clone(), route.clone());
                    self.connections.spawn_local(async move {
                        serving.attend(stream, peer, route).await;
                        drop(place);
                    });
                }
                Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
            }
        }
    }

    async fn attend(&self, stream: TcpStream, peer: SocketAddr, route: Rc<Route>) {
        let service = move |request, _: &flashweir_http::serve::Connection| {
            let route = route.clone();
            // Boxed, or an idle connection would keep the room for a request.
            Box::pin(async move { Ok::<_, Infallible>(handle(route, peer, request).await) })
        };
        let served =
            self.server.serve(self.server.guard(stream), None, service, self.draining.cancelled()).await;
        if let Some(violation) = served.violation {
            let text = format_args!("refused a request of the process: {}", violation.as_str());
            self.warnings.warn(self.clock.now(), Happening::BadRequest, text);
        }
    }

    async fn drain(self) {
        info!("stopping");
        self.draining.cancel();
        self.connections.close();
        if timeout(DRAIN, self.connections.wait()).await.is_err() {
            warn!(connections = self.connections.len(), "cut: they did not end in time");
        }
    }
}

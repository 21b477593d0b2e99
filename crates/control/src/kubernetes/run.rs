//! The program: election, plans, and those that ask, until a signal.

use crate::kubernetes::cluster::{Cluster, connect};
use crate::kubernetes::controller::Controller;
use crate::kubernetes::desired::DesiredTable;
use crate::kubernetes::external_scaler::ExternalScaler;
use crate::kubernetes::leader::Leader;
use crate::kubernetes::settings::{KubernetesError, KubernetesSettings};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use flashweir_runtime::{AdminListener, metrics_response, random_u64};
use flashweir_telemetry::{KubernetesMetrics, Telemetry};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::MissedTickBehavior;
use tonic::transport::Server;
use tracing::{error, info};

/// The Lease by which copies of this program agree who writes.
const LEASE: &str = "flashweir-control";

/// Follows policies until SIGTERM or SIGINT; then gives leadership up. Replicas stay as they are.
///
/// # Errors
/// [`KubernetesError`] when it cannot begin. Later failures are logged, and tried again.
pub fn run(settings: KubernetesSettings) -> Result<(), KubernetesError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(KubernetesError::Io)?;
    LocalSet::new().block_on(&runtime, serve(settings))
}

async fn serve(settings: KubernetesSettings) -> Result<(), KubernetesError> {
    let listen_for = |kind| signal(kind).map_err(KubernetesError::Io);
    let (mut terminate, mut interrupt) =
        (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?);
    let (client, own_namespace) =
        connect(settings.kubeconfig.as_deref()).await.map_err(KubernetesError::Client)?;
    let namespace = settings.namespace.clone().unwrap_or_else(|| own_namespace.clone());
    let followed = (!settings.all_namespaces).then(|| namespace.clone());
    let cluster = Rc::new(Cluster::new(client, followed));
    let (metrics, desired) = (Arc::<KubernetesMetrics>::default(), Arc::<DesiredTable>::default());
    if let Some(listen) = settings.listen {
        serve_metrics(listen, metrics.clone())?;
    }
    if let Some(listen) = settings.external_scaler {
        serve_scaler(listen, desired.clone()).await?;
    }
    let began = tokio::time::Instant::now();
    let leader = Rc::new(Leader::new(
        cluster.clone(),
        if settings.all_namespaces { own_namespace } else { namespace.clone() },
        LEASE.to_owned(),
        settings.identity.clone(),
        settings.lease,
        began,
    ));
    info!(
        identity = settings.identity,
        namespace,
        all_namespaces = settings.all_namespaces,
        "follows OverloadPolicies"
    );
    let election = {
        let leader = leader.clone();
        spawn_local(async move { leader.run(random_u64()).await })
    };
    let mut controller =
        Controller::new(cluster, leader.clone(), settings.interval, metrics, desired, began, random_u64());
    let mut ticks = tokio::time::interval(settings.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        // A plan is not interrupted: each of its calls has a time limit.
        controller.tick().await;
    }
    info!("stopping; replicas stay as they are");
    election.abort();
    leader.give_up().await;
    Ok(())
}

fn serve_metrics(listen: SocketAddr, metrics: Arc<KubernetesMetrics>) -> Result<(), KubernetesError> {
    let listener = AdminListener::bind(listen).map_err(|error| KubernetesError::Listen(listen, error))?;
    let telemetry = Arc::new(Telemetry::kubernetes(metrics.clone(), env!("CARGO_PKG_VERSION")));
    let answer = move |request: HeaderMap| {
        let telemetry = telemetry.clone();
        async move { metrics_response(&telemetry, &request) }
    };
    // Ready: the API server has answered. Leading is no part of it, or a rolling update would wait for ever.
    let ready = move || {
        let is_ready = metrics.has_read();
        async move {
            if is_ready {
                (StatusCode::OK, "ready\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "not read yet\n")
            }
        }
    };
    let routes = Router::new().route("/metrics", get(answer)).route("/readyz", get(ready));
    spawn_local(listener.serve(routes, Vec::new()));
    Ok(())
}

async fn serve_scaler(listen: SocketAddr, desired: Arc<DesiredTable>) -> Result<(), KubernetesError> {
    let taken = tokio::net::TcpListener::bind(listen).await;
    let listener = taken.map_err(|error| KubernetesError::Listen(listen, error))?;
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    let scaler = ExternalScaler::new(desired);
    spawn_local(async move {
        if let Err(problem) = Server::builder().add_service(scaler).serve_with_incoming(incoming).await {
            error!(%problem, "the external scaler stopped");
        }
    });
    Ok(())
}

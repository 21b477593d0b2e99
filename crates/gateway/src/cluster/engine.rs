//! The engine that carries the cluster's messages, as configured, from the gateway's start to its end.

use super::local::LeaderListener;
#[cfg(feature = "nats")]
use super::nats;
use super::{linked, local};
use crate::error::GatewayError;
use crate::shared::Shared;
use flashweir_config::Engine;
use flashweir_core::Duration;
use flashweir_runtime::{ClusterLink, HeldLease};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;

/// Resources that this gateway's engine needs from the start on.
#[derive(Debug)]
pub(crate) enum Means {
    /// Nothing.
    None,
    /// The port at which the others report.
    Listener(LeaderListener),
    /// Carrier of the messages.
    Link(ClusterLink),
}

impl Means {
    /// As configured.
    pub(crate) fn open(
        config: &flashweir_config::Cluster,
        link: Option<ClusterLink>,
    ) -> Result<Self, GatewayError> {
        match (&config.engine, link) {
            (&Some(Engine::Leader(address)), _) => {
                let taken = LeaderListener::bind(address);
                taken.map(Self::Listener).map_err(|source| GatewayError::ClusterListen { address, source })
            }
            (Some(Engine::Nats(_)), _) if cfg!(not(feature = "nats")) => Err(GatewayError::WithoutNats),
            (Some(Engine::Kubernetes(_)), None) => Err(GatewayError::WithoutKubernetes),
            (Some(Engine::Kubernetes(_)), Some(link)) => Ok(Self::Link(link)),
            _ => Ok(Self::None),
        }
    }

    /// The lease, where this gateway may hold one that it has to give up.
    pub(crate) fn lease(&self) -> Option<watch::Receiver<Option<HeldLease>>> {
        match self {
            Self::Link(link) => Some(link.lease.clone()),
            _ => None,
        }
    }
}

/// Reports, leads and follows, as configured, until the future is dropped.
pub(crate) async fn run(shared: Arc<Shared>, means: Means) {
    let Some(cluster) = shared.cluster.clone() else { return };
    let engine = shared.live.load().config.cluster.engine.clone();
    match (engine, means) {
        (Some(Engine::Leader(_)), Means::Listener(listener)) => local::lead(shared, cluster, listener).await,
        (Some(Engine::Follower(leader)), _) => local::follow(shared, cluster, leader).await,
        #[cfg(feature = "nats")]
        (Some(Engine::Nats(nats)), _) => nats::run(shared, cluster, nats).await,
        (Some(Engine::Kubernetes(_)), Means::Link(link)) => linked::run(shared, cluster, link).await,
        _ => {}
    }
}

/// Waits until a gateway that stops has given its lease up, so that another need not wait for its end; not
/// for long.
pub(crate) async fn leave(lease: Option<watch::Receiver<Option<HeldLease>>>) {
    if let Some(mut lease) = lease {
        // One that is not given up ends by itself.
        let _ended_anyway = timeout(LEAVES_WITHIN, lease.wait_for(Option::is_none)).await;
    }
}

/// Two calls of the API server, on an idle machine some milliseconds.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

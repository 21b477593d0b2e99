//! Gateways that are the pods of a Service share the limit of what is behind them (docs/several-gateways.md):
//! this carries their messages.
//!
//! | what | by |
//! |---|---|
//! | who is a gateway | the Service's EndpointSlices, watched (`watches`) |
//! | who leads | a Lease (`election`), the API server's only writes |
//! | reports and shares | a stream of gRPC from each gateway to the one that leads (`stream`, `reporting`) |
//!
//! The content of reports, and the division of a limit, are the gateway's: it has the other end of a
//! [`ClusterLink`]. Everything here is on a separate thread, so that an API server that is slow holds up no
//! plan.

mod election;
mod reporting;
pub mod stream;
mod watches;

use crate::kubernetes::cluster::{Cluster, connect};
use crate::kubernetes::leader::Leader;
use crate::kubernetes::settings::KubernetesError;
use election::{Election, LEASE};
use flashweir_runtime::{ClusterCarrier, ClusterLink, cluster_link};
use kube::Client;
use reporting::{Reporting, identity};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use watches::{follow_lease, follow_members};

/// Settings of a gateway that shares a limit with the others of a Service.
#[derive(Clone, Debug)]
pub struct GatewaysSettings {
    /// This gateway's own address among the Service's endpoints, and its port for reports.
    pub listen: SocketAddr,
    /// The Service's namespace, and the Lease's; none: the client's own.
    pub namespace: Option<String>,
    /// The Service.
    pub service: String,
    /// Name or number of its port for reports; empty: the first.
    pub port: String,
    /// The Lease's name.
    pub lease: String,
    /// The file that names the API server; none: `$KUBECONFIG`, then the pod's service account.
    pub kubeconfig: Option<PathBuf>,
}

/// Takes part from now on, on its own thread, until the gateway drops its end.
///
/// # Errors
/// [`KubernetesError`] when there is no client for the API server, no thread, or the port for reports is
/// taken. An API server that does not answer is no error: it is tried again.
pub fn join_gateways(settings: GatewaysSettings) -> Result<ClusterLink, KubernetesError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(KubernetesError::Io)?;
    let (client, own_namespace) =
        runtime.block_on(connect(settings.kubeconfig.as_deref())).map_err(KubernetesError::Client)?;
    let taken = runtime.block_on(TcpListener::bind(settings.listen));
    let listener = taken.map_err(|error| KubernetesError::Reports(settings.listen, error))?;
    let (link, carrier) = cluster_link();
    let namespace = settings.namespace.clone().unwrap_or(own_namespace);
    let thread = std::thread::Builder::new().name("gateways".to_owned());
    // Not joined: it ends with the gateway, which waits for what it has to finish.
    thread
        .spawn(move || runtime.block_on(carry(client, namespace, settings, listener, carrier)))
        .map_err(KubernetesError::Io)?;
    Ok(link)
}

async fn carry(
    client: Client,
    namespace: String,
    settings: GatewaysSettings,
    listener: TcpListener,
    carrier: ClusterCarrier,
) {
    let GatewaysSettings { listen, service, port, lease: name, .. } = settings;
    let ClusterCarrier { lease, arrivals, report, candidacy, counts } = carrier;
    let ((members_in, members), (seen_in, observed_lease)) = (watch::channel(None), watch::channel(None));
    let identity = identity(listen);
    let api = Rc::new(Cluster::new(client.clone(), Some(namespace.clone())));
    let began = tokio::time::Instant::now();
    let leader = Leader::new(api, namespace.clone(), name.clone(), identity.clone(), LEASE, began);
    let election = Election {
        leader,
        own: listen,
        service: service.clone(),
        members: members.clone(),
        observed_lease: observed_lease.clone(),
        candidacy,
        lease,
        counts,
    };
    let reporting = Reporting { identity, members, observed_lease, report, arrivals: arrivals.clone() };
    tracing::info!(service, namespace, lease = name, reports = %listen, "shares its limit with the gateways of a Service");
    tokio::select! {
        // Ends with the gateway.
        () = election.run() => {}
        () = reporting.run() => {}
        () = stream::serve(listener, arrivals) => {}
        () = follow_members(client.clone(), &namespace, &service, &port, members_in) => {}
        () = follow_lease(client, &namespace, &name, seen_in) => {}
    }
}

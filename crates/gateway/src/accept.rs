//! Takes connections from the kernel, and decides how each is served: fully, with refusals only, or not at
//! all.
//!
//! A connection beyond a bound is still answered: its requests get the refusal that names the bound, then it
//! closes. A client whose source ignores `Retry-After` is not answered for a while (`impatient`). Beside
//! that, only when [`REFUSE_ONLY_CONNECTIONS`](limits::REFUSE_ONLY_CONNECTIONS) of those are open is a
//! further one closed at once, and counted.

use crate::bounds::{ClientTaken, Taken};
use crate::connection::serve;
use crate::context::WorkerContext;
use flashweir_core::{Duration, Reason, limits};
use flashweir_http::client::ClientNetwork;
use flashweir_http::listen::accept;
use flashweir_telemetry::{Bound, ConnectionFailure, Happening};
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// After a failed `accept` (out of files, for one): trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// A stop waits this long for a connection that the kernel may still be handing over.
const LAST_CONNECTIONS_WAIT: Duration = Duration::from_millis(5);

/// Guard of one open connection: its share of the bounds, given back when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    /// Reason for which it only gets refusals, if it does.
    pub(crate) full: Option<Reason>,
    _connection: Taken,
    _client: Option<ClientTaken>,
}

/// Accepts until asked to stop; then takes what is queued already, so that no connection in the backlog is
/// reset.
pub(crate) async fn accept_all(worker: Rc<WorkerContext>, listener: TcpListener, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener) => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit_connection(&worker, stream, peer),
            Err(error) => {
                worker.metrics.connections.failed.increment(ConnectionFailure::Accept);
                worker
                    .shared
                    .warn(Happening::AcceptFailed, format_args!("cannot accept a connection: {error}"));
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
    for _ in 0..limits::ACCEPT_BACKLOG {
        match tokio::time::timeout(LAST_CONNECTIONS_WAIT, accept(&listener)).await {
            Ok(Ok((stream, peer))) => admit_connection(&worker, stream, peer),
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn admit_connection(worker: &Rc<WorkerContext>, stream: TcpStream, peer: SocketAddr) {
    let network = ClientNetwork::of(peer.ip());
    if worker.shared.impatient.turns_away(worker.shared.clock.now(), network) {
        worker.metrics.fairness.dropped.increment();
        // Reset: there is nothing to say to who does not listen, and no state is kept of it.
        let _ = stream.set_zero_linger();
        return;
    }
    let Some(guard) = take_guard(worker, peer) else {
        worker.metrics.connections.refused.increment(Bound::RefusedConnections);
        return;
    };
    worker.connections.spawn_local(serve(worker.clone(), stream, peer, guard));
}

/// A guard within the bounds; one of a connection that only gets refusals; or none.
fn take_guard(worker: &WorkerContext, peer: SocketAddr) -> Option<ConnectionGuard> {
    let (current, bounds) = (worker.current(), &worker.shared.bounds);
    let config = &current.live.config;
    let refuse_only = |reason, bound| {
        worker.metrics.connections.refused.increment(bound);
        worker
            .shared
            .warn(Happening::BoundMet, format_args!("{reason}: further connections only get refusals"));
        let connection = bounds.take_refuse_only()?;
        Some(ConnectionGuard { full: Some(reason), _connection: connection, _client: None })
    };
    let Some(connection) = bounds.take_connection(config.bounds.max_connections) else {
        return refuse_only(Reason::Connections, Bound::Connections);
    };
    // A proxy speaks for many.
    if current.live.trusted_proxies.trusts(peer.ip()) {
        return Some(ConnectionGuard { full: None, _connection: connection, _client: None });
    }
    let most = u32::try_from(config.client.max_connections_per_client).unwrap_or(u32::MAX);
    match bounds.take_client(ClientNetwork::of(peer.ip()), most) {
        Some(client) => Some(ConnectionGuard { full: None, _connection: connection, _client: Some(client) }),
        None => refuse_only(Reason::ConnectionsPerClient, Bound::ConnectionsPerClient),
    }
}

//! Takes connections from the kernel, and decides how each is served: fully, with refusals only, or not at
//! all.
//!
//! A connection beyond a bound is still answered: its requests get the refusal that names the bound, then it
//! closes. A client whose source ignores `Retry-After` is not answered for a while (`impatient`). Beside
//! that, only when [`REFUSE_ONLY_CONNECTIONS`](limits::REFUSE_ONLY_CONNECTIONS) of those are open is a
//! further one closed at once, and counted.

use crate::bounds::ConnectionGuard;
use crate::shared::Shared;
use flashweir_core::{Duration, Reason, limits};
use flashweir_http::client::ClientNetwork;
use flashweir_http::listen::accept;
use flashweir_telemetry::{Bound, ConnectionFailure, Happening, WorkerMetrics};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// After a failed `accept` (out of files, for one): trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// A stop waits this long for a connection that the kernel may still be handing over.
const LAST_CONNECTIONS_WAIT: Duration = Duration::from_millis(5);

/// Takes the connections of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Acceptor {
    /// State that all workers share.
    pub(crate) shared: Arc<Shared>,
    /// Metrics of this worker.
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// Leaves connections that are queued at a stop for the next process, which has the same sockets.
    pub(crate) leaves_backlog: bool,
}

impl Acceptor {
    /// Accepts until asked to stop; then takes what is queued already, so that no connection in the backlog
    /// is reset, unless another process will take it. Each connection that is to be served goes to `serve`.
    pub(crate) async fn accept_all(
        self,
        listener: TcpListener,
        stop: CancellationToken,
        serve: impl Fn(TcpStream, SocketAddr, ConnectionGuard),
    ) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = accept(&listener) => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, &serve),
                Err(error) => {
                    self.metrics.connections.failed.increment(ConnectionFailure::Accept);
                    let what = format_args!("cannot accept a connection: {error}");
                    self.shared.warn(Happening::AcceptFailed, what);
                    tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
        let queued_most = if self.leaves_backlog { 0 } else { limits::ACCEPT_BACKLOG };
        for _ in 0..queued_most {
            match tokio::time::timeout(LAST_CONNECTIONS_WAIT, accept(&listener)).await {
                Ok(Ok((stream, peer))) => self.admit(stream, peer, &serve),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        serve: &impl Fn(TcpStream, SocketAddr, ConnectionGuard),
    ) {
        let network = ClientNetwork::of(peer.ip());
        if self.shared.impatient.turns_away(self.shared.clock.now(), network) {
            self.metrics.fairness.dropped.increment();
            // Reset: there is nothing to say to who does not listen, and no state is kept of it.
            let _ = stream.set_zero_linger();
            return;
        }
        match self.take_guard(peer) {
            Some(guard) => serve(stream, peer, guard),
            None => self.metrics.connections.refused.increment(Bound::RefusedConnections),
        }
    }

    /// A guard within the bounds; one of a connection that only gets refusals; or none.
    fn take_guard(&self, peer: SocketAddr) -> Option<ConnectionGuard> {
        let (live, bounds) = (self.shared.live.load(), &self.shared.bounds);
        let config = &live.config;
        let refuse_only = |reason, bound| {
            self.metrics.connections.refused.increment(bound);
            let what = format_args!("{reason}: further connections only get refusals");
            self.shared.warn(Happening::BoundMet, what);
            Some(ConnectionGuard::new(Some(reason), bounds.take_refuse_only()?, None))
        };
        let Some(connection) = bounds.take_connection(config.bounds.max_connections) else {
            return refuse_only(Reason::Connections, Bound::Connections);
        };
        // A proxy speaks for many.
        if live.trusted_proxies.trusts(peer.ip()) {
            return Some(ConnectionGuard::new(None, connection, None));
        }
        let most = u32::try_from(config.client.max_connections_per_client).unwrap_or(u32::MAX);
        match bounds.take_client(ClientNetwork::of(peer.ip()), most) {
            Some(client) => Some(ConnectionGuard::new(None, connection, Some(client))),
            None => refuse_only(Reason::ConnectionsPerClient, Bound::ConnectionsPerClient),
        }
    }
}

//! Takes connections from the kernel, and decides how each is served: fully, with refusals only, or not at
//! all.
//!
//! A connection beyond a bound is still answered: its requests get the refusal that names the bound, then it
//! closes. A client whose source ignores `Retry-After` is not answered for a while (`impatient`). Beside
//! that, only when [`REFUSE_ONLY_CONNECTIONS`](limits::REFUSE_ONLY_CONNECTIONS) of those are open is a
//! further one closed at once, and counted.
//!
//! The client of a load balancer that names it in a header of the PROXY protocol is not known yet: such a
//! connection gets a place here, and its client's bounds once its own task has read the header (`proxied`).

use crate::bounds::{ConnectionGuard, Taken};
use crate::shared::{Live, Shared};
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

/// A connection that has been accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Its peer is the client.
    Direct(ConnectionGuard),
    /// It begins with a header that names the client.
    Proxied(Place),
}

/// Place of a connection whose client is not known yet, among all or among those that only get refusals.
#[derive(Debug)]
pub(crate) struct Place {
    full: Option<Reason>,
    taken: Taken,
}

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
        serve: impl Fn(TcpStream, SocketAddr, Accepted),
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

    fn admit(&self, stream: TcpStream, peer: SocketAddr, serve: &impl Fn(TcpStream, SocketAddr, Accepted)) {
        let live = self.shared.live.load();
        let accepted = if live.config.listen.expects_proxy_header(peer.ip()) {
            self.take_place(&live).map(Accepted::Proxied)
        } else {
            self.guard(&live, &stream, peer, None).map(Accepted::Direct)
        };
        if let Some(accepted) = accepted {
            serve(stream, peer, accepted);
        }
    }

    /// A guard for the connection of this client, which may have a place already: one within the bounds, one
    /// of a connection that only gets refusals, or none.
    pub(crate) fn guard(
        &self,
        live: &Live,
        stream: &TcpStream,
        client: SocketAddr,
        place: Option<Place>,
    ) -> Option<ConnectionGuard> {
        let network = ClientNetwork::of(client.ip());
        if self.shared.impatient.turns_away(self.shared.clock.now(), network) {
            self.metrics.fairness.dropped.increment();
            // Reset: there is nothing to say to who does not listen, and no state is kept of it.
            let _ = stream.set_zero_linger();
            return None;
        }
        let Place { full, taken } = place.or_else(|| self.take_place(live))?;
        let most = u32::try_from(live.config.client.max_connections_per_client).unwrap_or(u32::MAX);
        // A proxy speaks for many.
        if full.is_some() || live.trusted_proxies.trusts(client.ip()) {
            return Some(ConnectionGuard::new(full, taken, None));
        }
        match self.shared.bounds.take_client(network, most) {
            Some(client) => Some(ConnectionGuard::new(None, taken, Some(client))),
            None => {
                let Place { full, taken } =
                    self.take_refuse_only(Reason::ConnectionsPerClient, Bound::ConnectionsPerClient)?;
                Some(ConnectionGuard::new(full, taken, None))
            }
        }
    }

    /// A place among all connections, or among those that only get refusals; or none.
    fn take_place(&self, live: &Live) -> Option<Place> {
        match self.shared.bounds.take_connection(live.config.bounds.max_connections) {
            Some(taken) => Some(Place { full: None, taken }),
            None => self.take_refuse_only(Reason::Connections, Bound::Connections),
        }
    }

    fn take_refuse_only(&self, reason: Reason, bound: Bound) -> Option<Place> {
        self.metrics.connections.refused.increment(bound);
        let what = format_args!("{reason}: further connections only get refusals");
        self.shared.warn(Happening::BoundMet, what);
        let taken = self.shared.bounds.take_refuse_only();
        if taken.is_none() {
            self.metrics.connections.refused.increment(Bound::RefusedConnections);
        }
        Some(Place { full: Some(reason), taken: taken? })
    }
}

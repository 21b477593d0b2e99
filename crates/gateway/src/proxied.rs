//! Connections of load balancers that begin with a header of the PROXY protocol: the header is read, then the
//! client that it names is served as one that has connected itself.

use crate::accept::{Acceptor, Place};
use crate::connection::{FIRST_REQUEST_WAIT, serve};
use crate::context::WorkerContext;
use crate::listening::Purpose;
use flashweir_http::proxy_header::{ProxyHeaderError, read_proxy_header};
use flashweir_telemetry::{ConnectionFailure, Happening};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Serves one connection from a load balancer to its end. `acceptor` has the bounds of its client.
pub(crate) async fn serve_proxied(
    worker: Rc<WorkerContext>,
    acceptor: Acceptor,
    stream: TcpStream,
    peer: SocketAddr,
    place: Place,
    purpose: Purpose,
) {
    let Some(client) = client_of(&worker, &stream, peer).await else { return };
    let live = worker.shared.live.load_full();
    if let Some(guard) = acceptor.guard(&live, &stream, client, Some(place)) {
        serve(worker, stream, client, guard, purpose).await;
    }
}

/// Address of the client: the named one, or the load balancer's where it speaks for itself; `None` if the
/// connection is to be closed.
async fn client_of(worker: &WorkerContext, stream: &TcpStream, peer: SocketAddr) -> Option<SocketAddr> {
    let within = worker.current().live.config.bounds.header_read_timeout;
    // Boxed, or the connection would carry the room for its header to its end.
    let header = Box::pin(timeout(within, read_proxy_header(stream)));
    let drained = async {
        worker.draining.cancelled().await;
        sleep(FIRST_REQUEST_WAIT).await;
    };
    let read = tokio::select! {
        biased;
        read = header => read,
        () = drained => return None,
    };
    match read {
        Ok(Ok(named)) => Some(named.unwrap_or(peer)),
        Ok(Err(ProxyHeaderError::Closed)) => None,
        Ok(Err(error)) => {
            fail(worker, format_args!("closed a connection from listen.proxy_protocol_from: {error}"))
        }
        Err(_) => fail(
            worker,
            format_args!(
                "closed a connection from listen.proxy_protocol_from: no PROXY protocol header within bounds.header_read_timeout"
            ),
        ),
    }
}

fn fail(worker: &WorkerContext, message: fmt::Arguments<'_>) -> Option<SocketAddr> {
    worker.metrics.connections.failed.increment(ConnectionFailure::ProxyHeader);
    worker.shared.warn(Happening::ConnectionFailed, message);
    None
}

//! One client's connection: TLS handshake, serving its requests, counting how it ended.

use crate::bounds::ConnectionGuard;
use crate::client::Client;
use crate::context::WorkerContext;
use crate::impatient::may_be_listed;
use crate::listening::Purpose;
use crate::request::handle;
use crate::tracked::{Wire, WireIo};
use flashweir_core::Duration;
use flashweir_http::FramingViolation;
use flashweir_http::client::ClientNetwork;
use flashweir_http::guarded::{GuardHandle, Guarded, Protocol};
use flashweir_http::serve::{ConnectionEnd, IncomingRequest, Served};
use flashweir_http::upstream::UpstreamError;
use flashweir_telemetry::{BadRequest, ConnectionFailure, Happening, StatusClass};
use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Time and bytes granted to a client that is still sending a body that will not be read, so that it gets our
/// answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 << 10;

/// A stop waits this long for the first request of a connection that was accepted just before.
pub(crate) const FIRST_REQUEST_WAIT: Duration = Duration::from_millis(100);

/// Serves one connection to its end.
pub(crate) async fn serve(
    worker: Rc<WorkerContext>,
    stream: TcpStream,
    peer: SocketAddr,
    guard: ConnectionGuard,
    purpose: Purpose,
) {
    worker.metrics.connections.opened.increment();
    let current = worker.current();
    let wire = Wire::new(stream, worker.shared.clock);
    let io = WireIo::new(wire.clone(), current.live.config.bounds.write_stall_timeout);
    let source = may_be_listed(&current.live.config, &current.live.trusted_proxies, peer.ip())
        .then(|| ClientNetwork::of(peer.ip()));
    let redirects = purpose == Purpose::Redirect;
    let tls = current.live.tls.as_ref().filter(|_| !redirects);
    let mut client = Client::new(peer, source, tls.is_some(), wire, guard.full);
    client.redirects = redirects;
    let client = Rc::new(client);
    match tls {
        None => {
            // Nothing stands between the socket and bytes that are moved into it.
            let io = current.server.guard(io).taking_pipes();
            speak(&worker, &client, io, None).await;
        }
        Some(tls) => {
            let within = current.live.config.bounds.tls_handshake_timeout;
            // Boxed, here and below, or a connection in the clear would carry the room for TLS.
            let handshake = Box::pin(tokio::time::timeout(within, tls.accept(io)));
            let failure = match handshake.await {
                Ok(Ok((stream, protocol, fingerprint))) => {
                    client.tls_fingerprint.set(Some(fingerprint));
                    let stream = current.server.guard(stream);
                    Box::pin(speak(&worker, &client, stream, Some(protocol))).await;
                    None
                }
                Ok(Err(_)) => Some(ConnectionFailure::Tls),
                Err(_) => Some(ConnectionFailure::TlsTimeout),
            };
            failure.into_iter().for_each(|failure| worker.metrics.connections.failed.increment(failure));
        }
    }
    client.count_bytes(&worker.metrics);
    worker.metrics.connections.closed.increment();
    drop(guard);
}

async fn speak<Io>(
    worker: &Rc<WorkerContext>,
    client: &Rc<Client>,
    mut io: Guarded<Io>,
    protocol: Option<Protocol>,
) where
    Io: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let current = worker.current();
    let server = &current.server;
    let service = {
        let (worker, client) = (worker.clone(), client.clone());
        move |request: IncomingRequest, connection: &flashweir_http::serve::Connection| {
            handle(worker.clone(), client.clone(), connection.clone(), request)
        }
    };
    if current.live.config.client.answers_half_closed {
        io = io.answering_half_closed(client.end_wanted.clone());
    }
    let guard = io.handle();
    let end_wanted = end_wanted(worker, client, guard.clone());
    let served = server.serve(io, protocol, service, end_wanted).await;
    if guard.is_end_held() && matches!(served.end, ConnectionEnd::Failed(_)) {
        // With the byte that went ahead, a response cut short could look complete.
        client.wire.reset_on_close();
    }
    count_end(worker, &served);
    if client.left_body_unread.get() || served.violation == Some(FramingViolation::FrameFlood) {
        // The wire outlives the server's half of it, so the socket is still open.
        let _ = tokio::time::timeout(LINGER, Box::pin(client.wire.discard(LINGER_BYTES))).await;
    }
}

/// Resolves when the connection is to take no further request.
async fn end_wanted(worker: &WorkerContext, client: &Client, guard: GuardHandle) {
    tokio::select! {
        () = worker.draining.cancelled() => {}
        () = client.end_wanted.notified() => {
            if guard.is_end_held() {
                worker.metrics.connections.half_closed.increment();
                // The connection ends after the answer in any case; if the client has closed both halves,
                // before.
                client.wire.broken().await;
                guard.break_off();
            }
            return;
        }
    }
    if client.wire.bytes_read() == 0 {
        // Accepted in the last moment: its request may be in the socket already, and gets an answer.
        tokio::time::sleep(FIRST_REQUEST_WAIT).await;
    }
}

fn count_end(worker: &WorkerContext, served: &Served) {
    if let Some(violation) = served.violation {
        let kind = match violation {
            FramingViolation::FrameFlood => {
                worker.metrics.connections.failed.increment(ConnectionFailure::FrameFlood);
                worker.shared.warn(
                    Happening::BadRequest,
                    format_args!(
                        "ended a connection: more HTTP/2 frames that carry no work than it may send"
                    ),
                );
                return;
            }
            FramingViolation::HeadTooLarge => BadRequest::HeadTooLarge,
            FramingViolation::TooManyFields => BadRequest::TooManyFields,
            _ => BadRequest::Framing,
        };
        count_bad_request(worker, kind);
        worker.shared.warn(Happening::BadRequest, format_args!("refused a request: {}", violation.as_str()));
        return;
    }
    match &served.end {
        ConnectionEnd::Closed | ConnectionEnd::Idle | ConnectionEnd::Tunnel(_) => {}
        ConnectionEnd::HeadTimeout => count_bad_request(worker, BadRequest::HeadTimeout),
        ConnectionEnd::Failed(error) => match failure_of(error.as_ref()) {
            Failure::Connection(failure) => worker.metrics.connections.failed.increment(failure),
            // Counted with the upstream.
            Failure::Upstream => {}
        },
    }
}

fn count_bad_request(worker: &WorkerContext, kind: BadRequest) {
    worker.metrics.requests.bad.increment(kind);
    worker.metrics.responses.by_class.increment(StatusClass::ClientError);
}

enum Failure {
    Upstream,
    Connection(ConnectionFailure),
}

fn failure_of(error: &(dyn StdError + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<UpstreamError>() {
            return Failure::Upstream;
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            let stalled = io.kind() == io::ErrorKind::TimedOut;
            return Failure::Connection(if stalled {
                ConnectionFailure::WriteStall
            } else {
                ConnectionFailure::Io
            });
        }
        cause = error.source();
    }
    Failure::Connection(ConnectionFailure::Protocol)
}

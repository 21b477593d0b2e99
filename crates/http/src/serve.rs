//! Serves one accepted connection: HTTP/1.1 or HTTP/2, timeouts, graceful end and hand-over to a tunnel.
//!
//! One lazy timer for each connection looks at the phase of its reading: a slow head is answered 408, an idle
//! connection is closed, and a busy one costs nothing.

mod counted;
mod date;
mod farewell;
mod http1;
mod http2;
mod incoming_body;
mod incoming_request;
mod local;
mod response_head;
mod stream;
mod stream_io;
mod when_woken;
mod wire;

use crate::guarded::{GuardHandle, Guarded, Protocol};
use crate::head::IntoAnswer;
use crate::interim::Interims;
use crate::tunnel::{PendingTunnel, TunnelReport};
use crate::violation::FramingViolation;
use bytes::Bytes;
use farewell::{answer_request_timeout, linger};
use flashweir_http1::connection::ReadPhase;
pub use flashweir_http1::head::HeadLimits;
use http_body::Body;
use http1::Http1;
use http2::Http2;
pub use incoming_body::{Http1Body, IncomingBody, IncomingBodyError, RequestBodyError, StreamBody};
pub use incoming_request::IncomingRequest;
pub use local::LocalExecutor;
use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
pub use stream::StreamCut;
use stream::StreamState;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use when_woken::WhenWoken;

/// Settings by which connections from clients are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// Bounds on one request head; beyond them the answer is 431.
    pub head: HeadLimits,
    /// From a head's first byte (or the connection's accept) to its last; then 408 and close. Noticed at most
    /// a quarter late.
    pub head_timeout: Duration,
    /// Time that a kept-alive connection may wait for its next request.
    pub idle_timeout: Duration,
    /// HTTP/2 streams at once on one connection.
    pub http2_streams_max: u32,
    /// Silence after which an HTTP/2 peer is sent a ping; unanswered for as long again, it is gone.
    pub http2_ping_after: Duration,
}

/// A worker's prepared way to serve connections. Building one is cheap; sharing one is cheaper.
#[derive(Clone, Debug)]
pub struct Server {
    settings: ServeSettings,
    http2: h2::server::Builder,
}

/// One connection as the service of one of its requests sees it.
#[derive(Clone, Debug)]
pub struct Connection {
    state: Rc<ConnectionState>,
    /// The request's stream, in HTTP/2.
    stream: Option<Rc<StreamState>>,
}

#[derive(Debug)]
struct ConnectionState {
    guard: GuardHandle,
    requests: Cell<u64>,
    idle_since: Cell<Instant>,
    tunnel: RefCell<Option<PendingTunnel>>,
}

/// Summary of one connection's life.
#[derive(Debug)]
pub struct Served {
    /// Requests handed to the service.
    pub requests: u64,
    /// The framing violation that was answered 400 or 431 or failed a body, if any.
    pub violation: Option<FramingViolation>,
    /// End of the connection.
    pub end: ConnectionEnd,
}

/// End of a connection.
#[derive(Debug)]
pub enum ConnectionEnd {
    /// In order: the client closed, or the last response said so, or the server was draining.
    Closed,
    /// No request came for the idle timeout.
    Idle,
    /// A head did not end in time; in HTTP/1, 408 was sent if something of it had come.
    HeadTimeout,
    /// It became a tunnel, which has ended too.
    Tunnel(TunnelReport),
    /// The transport failed, the client broke the protocol or vanished mid-message.
    Failed(Box<dyn StdError + Send + Sync>),
}

impl Server {
    /// Prepares h2 with the settings.
    #[must_use]
    pub fn new(settings: ServeSettings) -> Self {
        Self { settings, http2: http2::builder(&settings) }
    }

    /// The settings it was made from.
    #[must_use]
    pub fn settings(&self) -> &ServeSettings {
        &self.settings
    }

    /// Prepares an accepted stream (after the TLS handshake, if there is one).
    #[must_use]
    pub fn guard<Io>(&self, io: Io) -> Guarded<Io> {
        Guarded::new(io)
    }

    /// Serves one connection to its end; must run inside a `LocalSet` or a `LocalRuntime`.
    ///
    /// `protocol` is what ALPN chose, `None` to find out from the first bytes. `service` is called for each
    /// request, an [`IncomingRequest`] or an `http::Request`, with the connection it came on; an error from
    /// it closes the connection without an answer. A body's `100 Continue` is sent when the service polls
    /// it before any of it is there. When `drain` resolves, no further request is taken and the connection
    /// ends once those in flight are done.
    ///
    /// Dropping the future cuts the connection.
    pub async fn serve<Io, S, R, F, A, B, E>(
        &self,
        mut io: Guarded<Io>,
        protocol: Option<Protocol>,
        service: S,
        drain: impl Future<Output = ()>,
    ) -> Served
    where
        Io: AsyncRead + AsyncWrite + Unpin + 'static,
        S: Fn(R, &Connection) -> F + Unpin,
        R: From<IncomingRequest>,
        F: Future<Output = Result<A, E>> + 'static,
        A: IntoAnswer<Body = B> + 'static,
        B: Body<Data = Bytes> + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
        E: Into<Box<dyn StdError + Send + Sync>> + 'static,
    {
        let mut drain = std::pin::pin!(WhenWoken::new(drain));
        let service =
            move |request: IncomingRequest, connection: &Connection| service(request.into(), connection);
        let connection = Connection::new(io.handle());
        let protocol = match protocol {
            Some(protocol) => {
                io.expect(protocol);
                Ok(protocol)
            }
            None => tokio::select! {
                sniffed = timeout(self.settings.head_timeout, io.sniff()) => match sniffed {
                    Ok(sniffed) => sniffed.map_err(|error| ConnectionEnd::Failed(error.into())),
                    Err(_) => Err(ConnectionEnd::HeadTimeout),
                },
                () = &mut drain, if connection.state.guard.phase() == ReadPhase::Idle => {
                    Err(ConnectionEnd::Closed)
                }
            },
        };
        let end = match protocol {
            Ok(Protocol::Http1) => {
                let http1 = Http1::new(io, self.settings.head, service, connection.clone());
                self.serve_http1(http1, &connection, drain).await
            }
            Ok(Protocol::Http2) => {
                let ping_after = self.settings.http2_ping_after;
                // Boxed, or each connection would carry the room for HTTP/2.
                let http2 = Http2::new(&self.http2, ping_after, io, service, connection.clone());
                let mut http2 = Box::new(http2);
                self.drive(&mut *http2, &connection, drain).await
            }
            Err(end) => {
                if matches!(end, ConnectionEnd::HeadTimeout) {
                    // Boxed, here and below, or each connection would carry the room for it.
                    Box::pin(answer_request_timeout(io, false, &connection.state.guard)).await;
                }
                end
            }
        };
        Served {
            requests: connection.state.requests.get(),
            violation: connection.state.guard.violation(),
            end,
        }
    }

    async fn serve_http1<Io, S, F, A, B, E>(
        &self,
        mut http1: Http1<Io, S, F, B>,
        connection: &Connection,
        drain: Pin<&mut impl Future<Output = ()>>,
    ) -> ConnectionEnd
    where
        Io: AsyncRead + AsyncWrite + Unpin + 'static,
        S: Fn(IncomingRequest, &Connection) -> F + Unpin,
        F: Future<Output = Result<A, E>>,
        A: IntoAnswer<Body = B>,
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let end = self.drive(&mut http1, connection, drain).await;
        let (is_tunnel, is_head) = (http1.is_tunnel(), http1.reads_head_request());
        // Ends the service's half, too.
        let Some((io, received)) = http1.take_stream() else { return end };
        let guard = &connection.state.guard;
        let tunnel = connection.state.tunnel.borrow_mut().take();
        match (end, tunnel) {
            (ConnectionEnd::Closed, Some(tunnel)) if is_tunnel => {
                ConnectionEnd::Tunnel(Box::pin(tunnel.run(io, &received)).await)
            }
            (ConnectionEnd::HeadTimeout, _) => {
                Box::pin(answer_request_timeout(io, is_head, guard)).await;
                ConnectionEnd::HeadTimeout
            }
            (end, _) => {
                // Also a request refused before its body was read.
                if guard.violation().is_some() || guard.phase() == ReadPhase::ReadingBody {
                    Box::pin(linger(io)).await;
                }
                end
            }
        }
    }

    /// Polls the connection to its end, beside its one timer and the drain signal.
    async fn drive<C: Drive>(
        &self,
        http: &mut C,
        connection: &Connection,
        mut drain: Pin<&mut impl Future<Output = ()>>,
    ) -> ConnectionEnd {
        let tick =
            (self.settings.head_timeout / 4).min(self.settings.idle_timeout).max(Duration::from_millis(1));
        let mut sleep = std::pin::pin!(tokio::time::sleep(tick));
        let mut is_draining = false;
        let mut is_idle = false;
        loop {
            tokio::select! {
                biased;
                ended = &mut *http => return match ended {
                    Ok(()) if is_idle => ConnectionEnd::Idle,
                    Ok(()) => ConnectionEnd::Closed,
                    Err(error) => ConnectionEnd::Failed(error.into()),
                },
                () = &mut drain, if !is_draining => {
                    is_draining = true;
                    Pin::new(&mut *http).end_gracefully();
                }
                () = &mut sleep => {
                    let now = Instant::now();
                    if connection.is_head_overdue(now, self.settings.head_timeout) {
                        return ConnectionEnd::HeadTimeout;
                    }
                    if connection.is_idle_since(now, self.settings.idle_timeout) {
                        if is_idle && connection.is_idle_since(now, self.settings.idle_timeout * 2) {
                            // It was asked to end and does not take even what is still owed to it.
                            return ConnectionEnd::Idle;
                        }
                        is_idle = true;
                        Pin::new(&mut *http).end_gracefully();
                    }
                    if connection.is_idle_since(now, tick) {
                        http.release();
                    }
                    sleep.as_mut().reset(now + tick);
                }
            }
        }
    }
}

impl Connection {
    fn new(guard: GuardHandle) -> Self {
        let state = ConnectionState {
            guard,
            requests: Cell::new(0),
            idle_since: Cell::new(Instant::now()),
            tunnel: RefCell::new(None),
        };
        Self { state: Rc::new(state), stream: None }
    }

    /// The same, for the request of one of its streams.
    fn of_stream(&self, stream: Rc<StreamState>) -> Self {
        Self { state: self.state.clone(), stream: Some(stream) }
    }

    /// Requests received on this connection so far, the current one included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.state.requests.get()
    }

    /// Requests whose responses have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.state.guard.end().in_flight()
    }

    /// The framing violation found on this connection, if one was.
    #[must_use]
    pub fn violation(&self) -> Option<FramingViolation> {
        self.state.guard.violation()
    }

    /// Interim responses to the request in progress.
    #[must_use]
    pub fn interims(&self) -> &Interims {
        self.stream.as_ref().map_or_else(|| self.state.guard.interims(), |stream| &stream.interims)
    }

    /// Handle that ends the request's stream; none in HTTP/1.
    #[must_use]
    pub fn stream_cut(&self) -> Option<StreamCut> {
        self.stream.as_ref().map(|stream| stream.cut.clone())
    }

    /// Agrees to an upgrade: once the 101 the service is about to return has been sent, the connection
    /// becomes this tunnel. In HTTP/2 once a 200 has been sent, and it is the stream that does; it counts as
    /// a request in flight, and the others of its connection go on.
    pub fn hand_over(&self, tunnel: PendingTunnel) {
        let place = match &self.stream {
            Some(stream) => &stream.tunnel,
            None => &self.state.tunnel,
        };
        *place.borrow_mut() = Some(tunnel);
    }

    /// In HTTP/1 the next head may wait behind the requests before it; in HTTP/2 it makes them wait.
    fn is_head_overdue(&self, now: Instant, head_timeout: Duration) -> bool {
        let guard = &self.state.guard;
        let since = match guard.is_http2() {
            true => guard.head_since(),
            false if self.in_flight() > 0 => return false,
            false => guard.head_since().max(self.state.idle_since.get()),
        };
        guard.phase() == ReadPhase::ReadingHead && now.duration_since(since) >= head_timeout
    }

    fn is_idle_since(&self, now: Instant, idle_timeout: Duration) -> bool {
        self.in_flight() == 0
            && self.state.guard.phase() != ReadPhase::ReadingHead
            && now.duration_since(self.state.idle_since.get()) >= idle_timeout
    }
}

/// Common interface of HTTP/1 and HTTP/2 connections.
trait Drive: Future<Output = Result<(), Self::Error>> + Unpin {
    type Error: Into<Box<dyn StdError + Send + Sync>>;

    fn end_gracefully(self: Pin<&mut Self>);

    /// Gives up memory that the next request allocates again: it has been idle for some time.
    fn release(&mut self) {}
}

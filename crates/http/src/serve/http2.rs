//! A client's HTTP/2 connection: handshake, its streams, pings, graceful end.
//!
//! Served with the h2 crate itself, not through hyper, whose server has no way to send an interim response.
//! Each stream is a task (`stream`).

use super::counted::InFlight;
use super::incoming_body::{IncomingBody, StreamBody};
use super::stream::{StreamState, answer};
use super::{Connection, Drive, IncomingRequest, ServeSettings};
use crate::head::IntoAnswer;
use bytes::Bytes;
use flashweir_core::limits::STREAM_SEND_BYTES;
use h2::server::{Builder, Handshake, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::{HeaderValue, Method, Request};
use http_body::Body;
use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::{Instant, Sleep, sleep};

/// Room for what a client sends before it is read, for a stream and for all of a connection: that of a path
/// of 80 Mbit/s and 100 ms.
const RECEIVE_WINDOW_BYTES: u32 = 1 << 20;
/// Streams reset by errors of ours that a connection may have in all: beyond it the client provokes them.
const RESETS_MAX: usize = 1_024;

/// Settings of the h2 crate, the same for every connection of a server.
pub(super) fn builder(settings: &ServeSettings) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(RECEIVE_WINDOW_BYTES)
        .initial_connection_window_size(RECEIVE_WINDOW_BYTES)
        .max_concurrent_streams(settings.http2_streams_max)
        .max_header_list_size(u32::try_from(settings.head.bytes_max).unwrap_or(u32::MAX))
        .max_send_buffer_size(STREAM_SEND_BYTES)
        .max_local_error_reset_streams(Some(RESETS_MAX))
        .enable_connect_protocol();
    builder
}

/// Serves one connection; resolves when it has ended and nothing is owed to the client any more.
pub(super) struct Http2<Io, S> {
    state: State<Io>,
    service: S,
    connection: Connection,
    /// The end was asked for, maybe before the handshake was over.
    is_ending: bool,
    silence: Silence,
}

enum State<Io> {
    Handshaking(Handshake<Io, Bytes>),
    Serving(h2::server::Connection<Io, Bytes>),
}

impl<Io, S> Http2<Io, S>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    pub(super) fn new(
        builder: &Builder,
        ping_after: Duration,
        io: Io,
        service: S,
        connection: Connection,
    ) -> Self {
        let state = State::Handshaking(builder.handshake(io));
        Self { state, service, connection, is_ending: false, silence: Silence::new(ping_after) }
    }
}

impl<Io, S, F, A, B, E> Future for Http2<Io, S>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    S: Fn(IncomingRequest, &Connection) -> F + Unpin,
    F: Future<Output = Result<A, E>> + 'static,
    A: IntoAnswer<Body = B> + 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    E: 'static,
{
    type Output = Result<(), Box<dyn StdError + Send + Sync>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Handshaking(handshake) => {
                    let mut http = ready!(Pin::new(handshake).poll(cx)).map_err(plain)?;
                    if this.is_ending {
                        http.graceful_shutdown();
                    }
                    this.silence.pings = http.ping_pong();
                    this.state = State::Serving(http);
                }
                State::Serving(http) => {
                    if this.silence.poll(cx, this.connection.state.guard.reads()).is_ready() {
                        return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                    }
                    match ready!(http.poll_accept(cx)) {
                        Some(Ok((request, respond))) => {
                            begin(&this.connection, &this.service, request, respond)
                        }
                        Some(Err(error)) => return Poll::Ready(Err(plain(error))),
                        None => return Poll::Ready(Ok(())),
                    }
                }
            }
        }
    }
}

impl<Io, S, F, A, B, E> Drive for Http2<Io, S>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    S: Fn(IncomingRequest, &Connection) -> F + Unpin,
    F: Future<Output = Result<A, E>> + 'static,
    A: IntoAnswer<Body = B> + 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    E: 'static,
{
    type Error = Box<dyn StdError + Send + Sync>;

    fn end_gracefully(mut self: Pin<&mut Self>) {
        self.is_ending = true;
        if let State::Serving(http) = &mut self.state {
            http.graceful_shutdown();
        }
    }
}

/// Hands a request to the service and spawns its stream's task.
fn begin<S, F, A, B, E>(
    connection: &Connection,
    service: &S,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) where
    S: Fn(IncomingRequest, &Connection) -> F,
    F: Future<Output = Result<A, E>> + 'static,
    A: IntoAnswer<Body = B> + 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    E: 'static,
{
    if request.method() == Method::CONNECT
        && request.headers().get_all(CONTENT_LENGTH).iter().any(|it| it != "0")
    {
        // What follows is no content (RFC 9113 §8.5), and in the head of an upgrade an upstream would wait
        // for it.
        return respond.send_reset(Reason::PROTOCOL_ERROR);
    }
    let in_flight = InFlight::begin(connection);
    let state = Rc::new(StreamState::default());
    let connection = connection.of_stream(state.clone());
    let (mut head, incoming) = request.into_parts();
    let (body, upgrade) = if head.method == Method::CONNECT {
        if let Some(protocol) = head.extensions.remove::<h2::ext::Protocol>() {
            head.extensions.insert(hyper::ext::Protocol::from(protocol.as_str()));
        }
        (IncomingBody::None, Some(incoming))
    } else {
        let announced = head.headers.get(CONTENT_LENGTH).map(HeaderValue::to_str);
        let announced = announced.and_then(|text| text.ok()?.parse().ok());
        let interims = head.headers.contains_key(EXPECT).then(|| state.interims.clone());
        (IncomingBody::Http2(StreamBody::new(incoming, announced, interims)), None)
    };
    // Boxed: a task's future is moved several times before it is polled, and when it ends.
    let response = Box::pin(service(IncomingRequest { head: head.into(), body }, &connection));
    let task = spawn_local(answer(state.clone(), in_flight, response, respond, upgrade));
    state.cut.set(task.abort_handle());
}

/// The error below the HTTP/2 library, where it was the transport's.
fn plain(error: h2::Error) -> Box<dyn StdError + Send + Sync> {
    match error.is_io() {
        true => error.into_io().map_or_else(|| "HTTP/2: the transport failed".into(), Into::into),
        false => error.into(),
    }
}

/// Notices clients that are gone without a word: a ping after a time of silence, and the end after another.
struct Silence {
    period: Duration,
    timer: Pin<Box<Sleep>>,
    pings: Option<PingPong>,
    /// Reads of the connection when the timer was set.
    reads: u64,
    is_asked: bool,
}

impl Silence {
    fn new(period: Duration) -> Self {
        Self { period, timer: Box::pin(sleep(period)), pings: None, reads: 0, is_asked: false }
    }

    /// Ready once the client is gone.
    fn poll(&mut self, cx: &mut Context<'_>, reads: u64) -> Poll<()> {
        let Some(pings) = &mut self.pings else { return Poll::Pending };
        // Makes room for the next ping; that something was read says more than the answer.
        let _ = pings.poll_pong(cx);
        while self.timer.as_mut().poll(cx).is_ready() {
            if reads != self.reads {
                (self.reads, self.is_asked) = (reads, false);
            } else if self.is_asked {
                return Poll::Ready(());
            } else {
                // Fails where an earlier one was not answered: then the client has been asked all the same.
                let _ = pings.send_ping(Ping::opaque());
                self.is_asked = true;
            }
            self.timer.as_mut().reset(Instant::now() + self.period);
        }
        Poll::Pending
    }
}

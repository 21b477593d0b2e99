//! HTTP/2 connections of one worker to one upstream: many requests on each, bounded in all.

use super::RequestBody;
use super::connect::{ConnectTarget, UpstreamIo};
use super::error::{UpstreamError, UpstreamErrorKind};
use crate::serve::LocalExecutor;
use flashweir_core::limits::{STREAMS_PER_UPSTREAM_CONNECTION, UPSTREAM_HEAD_BYTES};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, timeout};

/// The connections. The bound is on requests at once, which is what a connection bound means for HTTP/1.1.
pub(super) struct Http2Pool<B> {
    index: usize,
    requests_max: usize,
    idle_timeout: Duration,
    requests: Rc<Cell<usize>>,
    connections: RefCell<Vec<Http2Connection<B>>>,
    /// Held while dialling, so that a burst opens one connection and not one each. Those who wait hold one of
    /// the bounded requests and wait no longer than the connect timeout before they dial or give up.
    dialling: Mutex<()>,
}

/// One stream's way to its connection, counted until dropped.
pub(super) struct Http2Stream<B> {
    pub(super) sender: SendRequest<B>,
    load: Rc<Load>,
    _request: Request,
}

struct Http2Connection<B> {
    sender: SendRequest<B>,
    load: Rc<Load>,
    _task: AbortOnDrop,
}

/// hyper's half of a connection: ended with ours.
struct AbortOnDrop(JoinHandle<()>);

/// Load of one connection.
struct Load {
    streams: Cell<usize>,
    /// Maximum of streams that the peer allows (SETTINGS_MAX_CONCURRENT_STREAMS); more would queue silently
    /// inside h2.
    streams_max: Cell<usize>,
    idle_since: Cell<Instant>,
    opened: Instant,
    /// Time after that for which it takes requests.
    lifetime: Duration,
    /// It has answered a request.
    has_answered: Cell<bool>,
    /// The upstream is ending it, or it is too old: it takes no more requests, and finishes those it has.
    is_leaving: Cell<bool>,
}

/// One of the pool's requests, counted until dropped.
struct Request(Rc<Cell<usize>>);

impl<B: RequestBody> Http2Pool<B> {
    pub(super) fn new(index: usize, requests_max: usize, idle_timeout: Duration) -> Self {
        Self {
            index,
            requests_max,
            idle_timeout,
            requests: Rc::new(Cell::new(0)),
            connections: RefCell::new(Vec::new()),
            dialling: Mutex::new(()),
        }
    }

    /// A stream on a connection with room, else on a new connection, or an error at once.
    pub(super) async fn check_out(
        &self,
        target: &ConnectTarget,
        ping_after: Duration,
    ) -> Result<Http2Stream<B>, UpstreamError> {
        if self.requests.get() >= self.requests_max {
            return Err(UpstreamError::new(UpstreamErrorKind::Full, Some(self.index)));
        }
        self.requests.set(self.requests.get() + 1);
        let request = Request(Rc::clone(&self.requests));
        if let Some((sender, load)) = self.with_room() {
            return Ok(Http2Stream::begin(sender, load, request));
        }
        // Boxed, or each request that finds an open connection would carry the room for opening one.
        Box::pin(self.open(target, ping_after, request)).await
    }

    async fn open(
        &self,
        target: &ConnectTarget,
        ping_after: Duration,
        request: Request,
    ) -> Result<Http2Stream<B>, UpstreamError> {
        let Ok(_dialling) = timeout(target.connect_timeout(), self.dialling.lock()).await else {
            return Err(UpstreamError::new(UpstreamErrorKind::ConnectTimeout, Some(self.index)));
        };
        // Another task that dialled meanwhile may have made room.
        if let Some((sender, load)) = self.with_room() {
            return Ok(Http2Stream::begin(sender, load, request));
        }
        let io = target.connect(self.index).await?;
        let connection = self.handshake(io, ping_after, target.connection_lifetime()).await?;
        let (sender, load) = (connection.sender.clone(), Rc::clone(&connection.load));
        self.connections.borrow_mut().push(connection);
        Ok(Http2Stream::begin(sender, load, request))
    }

    /// The upstream ends the stream's connection. Those that are as old or older are suspect, too: none of
    /// them takes a further request.
    pub(super) fn lost(&self, stream: &Http2Stream<B>) {
        for connection in self.connections.borrow().iter() {
            if connection.load.opened <= stream.load.opened {
                connection.load.is_leaving.set(true);
            }
        }
    }

    /// The first connection with room: filling the first lets the others fall idle. Closed and long idle ones
    /// are forgotten on the way.
    fn with_room(&self) -> Option<(SendRequest<B>, Rc<Load>)> {
        let idle_timeout = self.idle_timeout;
        let mut connections = self.connections.borrow_mut();
        for Http2Connection { load, .. } in connections.iter() {
            load.is_leaving.set(load.is_leaving.get() || load.opened.elapsed() >= load.lifetime);
        }
        connections.retain(|connection| {
            let load = &connection.load;
            // A connection that is going away still finishes its streams.
            load.streams.get() > 0
                || (!connection.sender.is_closed()
                    && !load.is_leaving.get()
                    && load.idle_since.get().elapsed() < idle_timeout)
        });
        connections
            .iter()
            .find(|connection| {
                connection.sender.is_ready()
                    && !connection.load.is_leaving.get()
                    && connection.load.streams.get() < connection.load.streams_max.get()
            })
            .map(|connection| (connection.sender.clone(), Rc::clone(&connection.load)))
    }

    async fn handshake(
        &self,
        io: UpstreamIo,
        ping_after: Duration,
        lifetime: Duration,
    ) -> Result<Http2Connection<B>, UpstreamError> {
        let (sender, mut connection) = http2::Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .max_header_list_size(UPSTREAM_HEAD_BYTES as u32)
            .keep_alive_interval(ping_after)
            .keep_alive_timeout(ping_after)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| UpstreamError::with_cause(UpstreamErrorKind::Connect, self.index, error))?;
        let load = Rc::new(Load {
            streams: Cell::new(0),
            streams_max: Cell::new(STREAMS_PER_UPSTREAM_CONNECTION),
            idle_since: Cell::new(Instant::now()),
            opened: Instant::now(),
            lifetime,
            has_answered: Cell::new(false),
            is_leaving: Cell::new(false),
        });
        let seen = Rc::clone(&load);
        let task = spawn_local(async move {
            let ended = std::future::poll_fn(|cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                let allowed = connection.current_max_send_streams();
                seen.streams_max.set(allowed.min(STREAMS_PER_UPSTREAM_CONNECTION));
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "upstream HTTP/2 connection ended");
            }
        });
        Ok(Http2Connection { sender, load, _task: AbortOnDrop(task) })
    }
}

impl<B> Http2Stream<B> {
    fn begin(sender: SendRequest<B>, load: Rc<Load>, request: Request) -> Self {
        load.streams.set(load.streams.get() + 1);
        Self { sender, load, _request: request }
    }

    /// A request was answered on it.
    pub(super) fn answered(&self) {
        self.load.has_answered.set(true);
    }

    /// Its connection had answered a request before.
    pub(super) fn is_reused(&self) -> bool {
        self.load.has_answered.get()
    }
}

impl<B> Drop for Http2Stream<B> {
    fn drop(&mut self) {
        self.load.streams.set(self.load.streams.get() - 1);
        self.load.idle_since.set(Instant::now());
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

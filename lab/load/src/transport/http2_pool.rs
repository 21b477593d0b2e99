//! Choice of the HTTP/2 connection for a request: the first from its person's address with room for a stream,
//! else a new one. Where connections are bounded and the bound is met, requests queue on the address's least
//! busy one; people from an address that has none wait until another address leaves one.

use super::dial::Dialler;
use super::stream::Stream;
use crate::ErrorKind;
use bytes::Bytes;
use flashweir_core::limits::LOAD_IDLE_CONNECTIONS;
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Streams a connection is given before the server has said how many it takes; RFC 9113 §6.5.2 recommends
/// that it take no fewer.
const STREAMS_UNTIL_TOLD: usize = 100;

/// The connections of one thread.
pub(super) struct Http2Pool {
    state: Mutex<State>,
    /// Permits for connections that may still be opened, if they are bounded.
    to_open: Option<Arc<Semaphore>>,
}

/// One request's place on a connection, held until its answer has ended.
pub(super) struct Http2Stream<'a> {
    pool: &'a Http2Pool,
    source: Option<IpAddr>,
    number: u64,
    sender: Sender,
    reused: bool,
}

type Sender = SendRequest<Full<Bytes>>;
type Live = http2::Connection<TokioIo<Stream>, Full<Bytes>, TokioExecutor>;

#[derive(Default)]
struct State {
    by_source: HashMap<Option<IpAddr>, Source>,
    /// Connections without streams.
    idle: usize,
    /// People who wait for another address to leave a connection.
    waiting: usize,
    /// Of the connection opened last.
    number: u64,
}

/// The connections from one address.
#[derive(Default)]
struct Source {
    /// People go through it one by one, in order, and a person who must dial does so in the doorway: a burst
    /// opens as many connections as it needs and not one each.
    door: Arc<tokio::sync::Mutex<()>>,
    connections: Vec<Connection>,
}

struct Connection {
    number: u64,
    sender: Sender,
    streams: usize,
    /// Shared with the driver; none once it ended. Asked how many streams the server takes, which it may tell
    /// at any time.
    live: Arc<Mutex<Option<Live>>>,
    driver: AbortHandle,
    /// Given back when the connection is closed.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Http2Pool {
    pub(super) fn new(connections_most: Option<usize>) -> Self {
        let to_open =
            connections_most.map(|most| Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))));
        Self { state: Mutex::default(), to_open }
    }

    /// A place on a connection; opens one if it must.
    pub(super) async fn check_out(
        &self,
        dialler: &Dialler,
        source: Option<IpAddr>,
    ) -> Result<Http2Stream<'_>, ErrorKind> {
        let door = Arc::clone(&self.state().by_source.entry(source).or_default().door);
        let _in_the_doorway = door.lock().await;
        let nobody_waits = self.state().waiting == 0;
        if nobody_waits && let Some(stream) = self.with_room(source) {
            return Ok(stream);
        }
        let permit = match self.permit_at_once(nobody_waits) {
            Ok(permit) => permit,
            Err(_) if nobody_waits && let Some(stream) = self.least_busy(source) => return Ok(stream),
            Err(to_open) => {
                let permit = self.wait_for_permit(to_open).await;
                // A person ahead may have come from here too.
                if let Some(stream) = self.with_room(source) {
                    return Ok(stream);
                }
                permit
            }
        };
        let mut connection = open(dialler, source, permit).await?;
        let mut state = self.state();
        state.number += 1;
        connection.number = state.number;
        let (number, sender) = (state.number, connection.sender.clone());
        state.by_source.entry(source).or_default().connections.push(connection);
        Ok(Http2Stream { pool: self, source, number, sender, reused: false })
    }

    /// Leave to open a connection; or else where to wait for it.
    fn permit_at_once(&self, nobody_waits: bool) -> Result<Option<OwnedSemaphorePermit>, Arc<Semaphore>> {
        let Some(to_open) = &self.to_open else { return Ok(None) };
        let permit = nobody_waits.then(|| Arc::clone(to_open).try_acquire_owned().ok()).flatten();
        permit.map(Some).ok_or_else(|| Arc::clone(to_open))
    }

    /// While a person waits, connections that fall idle are closed and no other person passes.
    async fn wait_for_permit(&self, to_open: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        self.state().close_one_idle();
        let _waiting = Waiting::new(self);
        // Never closed, so this only waits.
        to_open.acquire_owned().await.ok()
    }

    /// The first connection with room: filling the first lets the others fall idle.
    fn with_room(&self, source: Option<IpAddr>) -> Option<Http2Stream<'_>> {
        self.state().forget_closed(source);
        self.place(source, |connections| {
            connections
                .iter_mut()
                .find(|connection| connection.is_open() && connection.streams < connection.streams_most())
        })
    }

    fn least_busy(&self, source: Option<IpAddr>) -> Option<Http2Stream<'_>> {
        self.place(source, |connections| {
            let open = connections.iter_mut().filter(|connection| connection.is_open());
            open.min_by_key(|connection| connection.streams)
        })
    }

    fn place(
        &self,
        source: Option<IpAddr>,
        choose: impl FnOnce(&mut [Connection]) -> Option<&mut Connection>,
    ) -> Option<Http2Stream<'_>> {
        let mut state = self.state();
        let connection = choose(&mut state.by_source.get_mut(&source)?.connections)?;
        let was_idle = connection.streams == 0;
        connection.streams += 1;
        let (number, sender) = (connection.number, connection.sender.clone());
        state.idle -= usize::from(was_idle);
        Some(Http2Stream { pool: self, source, number, sender, reused: true })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

async fn open(
    dialler: &Dialler,
    source: Option<IpAddr>,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Connection, ErrorKind> {
    let stream = dialler.open(source).await?;
    let (sender, live) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_max_send_streams(STREAMS_UNTIL_TOLD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| ErrorKind::Closed)?;
    let live = Arc::new(Mutex::new(Some(live)));
    let driver = tokio::spawn(drive(Arc::clone(&live)));
    // Its number is given when it takes its place.
    let (number, driver) = (0, driver.abort_handle());
    Ok(Connection { number, sender, streams: 1, live, driver, _permit: permit })
}

/// Keeps a connection going until it ends, which every person who waits for an answer on it learns when it is
/// dropped.
async fn drive(live: Arc<Mutex<Option<Live>>>) {
    poll_fn(|cx| {
        let mut live = lock(&live);
        let ended = live.as_mut().is_none_or(|connection| Pin::new(connection).poll(cx).is_ready());
        if ended {
            *live = None;
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// Only the transport's own thread locks anything here, so no lock is ever contended; none is held across an
/// await.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn forget_closed(&mut self, source: Option<IpAddr>) {
        let Some(source) = self.by_source.get_mut(&source) else { return };
        let before = source.connections.len();
        // A connection that is going away still finishes its streams.
        source.connections.retain(|connection| connection.streams > 0 || connection.is_open());
        self.idle -= before - source.connections.len();
    }

    /// Closes a connection without streams, of any address, if there is one. Cost: linear in the connections.
    fn close_one_idle(&mut self) {
        for source in self.by_source.values_mut() {
            let idle = source.connections.iter().position(|connection| connection.streams == 0);
            if let Some(index) = idle {
                source.connections.remove(index);
                self.idle -= 1;
                return;
            }
        }
    }

    fn end_stream(&mut self, source: Option<IpAddr>, number: u64) {
        let Some(from) = self.by_source.get_mut(&source) else { return };
        let index = from.connections.iter().position(|connection| connection.number == number);
        let Some(index) = index else { return };
        let connection = &mut from.connections[index];
        connection.streams -= 1;
        if connection.streams > 0 {
            return;
        }
        if connection.is_open() && self.waiting == 0 && self.idle < LOAD_IDLE_CONNECTIONS {
            self.idle += 1;
            return;
        }
        from.connections.remove(index);
        // Addresses come and go; a person who stands in the doorway keeps it.
        if from.connections.is_empty() && Arc::strong_count(&from.door) == 1 {
            self.by_source.remove(&source);
        }
    }
}

impl Connection {
    fn is_open(&self) -> bool {
        self.sender.is_ready() && !self.sender.is_closed()
    }

    fn streams_most(&self) -> usize {
        lock(&self.live).as_ref().map_or(0, http2::Connection::current_max_send_streams)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
        // The driver learns it only later.
        *lock(&self.live) = None;
    }
}

impl Http2Stream<'_> {
    pub(super) fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// Others used the connection before.
    pub(super) fn is_reused(&self) -> bool {
        self.reused
    }
}

impl Drop for Http2Stream<'_> {
    fn drop(&mut self) {
        self.pool.state().end_stream(self.source, self.number);
    }
}

/// A person who waits for a connection, counted until dropped.
struct Waiting<'a>(&'a Http2Pool);

impl<'a> Waiting<'a> {
    fn new(pool: &'a Http2Pool) -> Self {
        pool.state().waiting += 1;
        Self(pool)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

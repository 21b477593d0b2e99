//! HTTP/1.1 connections of one worker to one upstream: a bounded stack, never a queue.
//!
//! The bound is the worker's concurrency limit towards the upstream. When it is met the answer is
//! [`UpstreamErrorKind::Full`] at once: waiting is the admission queue's business, which knows deadlines and
//! classes. Last in, first out keeps few connections warm and lets the others time out.
//!
//! A connection that the upstream has ended, or is about to end by its [habits](ClosingHabit), is not used.

use super::RequestBody;
use super::closing::{Closing, ClosingHabit};
use super::connect::{ConnectTarget, UpstreamIo, probe_of};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::record::{Record, Recorded};
use super::small_reads::SmallReads;
use super::socket::SocketProbe;
use crate::interim::Interims;
use flashweir_core::Instant;
use flashweir_core::limits::UPSTREAM_HEAD_BYTES;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

/// The pool. `Rc` because leases outlive a reload that replaces it.
pub(super) struct Http1Pool<B> {
    index: usize,
    connections_max: usize,
    /// Fields of a response's head.
    fields_max: usize,
    idle_timeout: Duration,
    closing: RefCell<ClosingHabit>,
    /// Connections being opened, in use or idle. Separate from the pool so that idle entries make no cycle.
    open: Rc<Cell<usize>>,
    idle: RefCell<VecDeque<Http1Connection<B>>>,
    is_sweeping: Cell<bool>,
    origin: tokio::time::Instant,
}

/// A connection in use; dropping it closes it.
pub(super) struct Http1Connection<B> {
    pub(super) sender: SendRequest<B>,
    record: Arc<Record>,
    socket: SocketProbe,
    opened: Instant,
    /// Time after that for which it takes requests.
    lifetime: Duration,
    /// Requests that it has answered.
    answers: u32,
    /// Since when it is idle, or was the last time.
    idle_since: Instant,
    /// For how long, when it was taken out of the pool.
    idle_for: Duration,
    _task: AbortOnDrop,
    _slot: Slot,
}

/// Connection that a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Any that the reactor has not found ended.
    Any,
    /// Any that the kernel, asked now, does not know ended either: for a request that could not be sent once
    /// more.
    Asked,
    /// One that had no request before.
    New,
}

/// One of the pool's connections, counted until dropped.
struct Slot(Rc<Cell<usize>>);

/// hyper's half of a connection: ended with ours, so that a client that goes away frees the upstream at once.
pub(super) struct AbortOnDrop(pub(super) JoinHandle<()>);

/// Time that a connection whose response has ended may still be busy with its request before it is closed.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

impl<B: RequestBody> Http1Pool<B> {
    pub(super) fn new(
        index: usize,
        connections_max: usize,
        fields_max: usize,
        idle_timeout: Duration,
    ) -> Rc<Self> {
        Rc::new(Self {
            index,
            connections_max,
            fields_max,
            idle_timeout,
            closing: RefCell::default(),
            open: Rc::new(Cell::new(0)),
            idle: RefCell::new(VecDeque::new()),
            is_sweeping: Cell::new(false),
            origin: tokio::time::Instant::now(),
        })
    }

    /// The most recently used connection, or a new one, or an error at once.
    pub(super) async fn check_out(
        self: &Rc<Self>,
        target: &ConnectTarget,
        choice: Choice,
    ) -> Result<Http1Connection<B>, UpstreamError> {
        while choice != Choice::New
            && let Some(mut connection) = self.pop_idle()
        {
            let now = self.now();
            connection.idle_for = now.saturating_since(connection.idle_since);
            if connection.sender.is_ready()
                && connection.idle_for < self.idle_max(now)
                && now.saturating_since(connection.opened) < connection.lifetime
                && !connection.socket.is_readable(choice == Choice::Asked)
            {
                return Ok(connection);
            }
        }
        let slot = self.take_slot().or_else(|| {
            // An idle one may make room, where none of those may be used.
            let oldest = self.idle.borrow_mut().pop_front();
            drop(oldest);
            self.take_slot()
        });
        let slot = slot.ok_or_else(|| UpstreamError::new(UpstreamErrorKind::Full, Some(self.index)))?;
        // Boxed, or each request that finds an open connection would carry the room for opening one.
        Box::pin(self.open(target, slot)).await
    }

    async fn open(
        self: &Rc<Self>,
        target: &ConnectTarget,
        slot: Slot,
    ) -> Result<Http1Connection<B>, UpstreamError> {
        let io = target.connect(self.index).await?;
        self.handshake(io, slot, target.connection_lifetime()).await
    }

    /// Closes every idle connection: after one of them proved stale, the others probably are.
    pub(super) fn close_idle(&self) {
        // Taken out first: dropping a connection must not run inside the borrow.
        let idle = self.idle.take();
        drop(idle);
    }

    /// Takes back a connection whose response was read to its end.
    pub(super) fn give_back(self: &Rc<Self>, mut connection: Http1Connection<B>) {
        connection.answers = connection.answers.saturating_add(1);
        connection.record.end();
        if connection.sender.is_ready() {
            self.push_idle(connection);
        } else if !connection.sender.is_closed() {
            // hyper has not come round yet, or is still sending the request's body.
            let pool = Rc::downgrade(self);
            spawn_local(async move {
                let ready = timeout(SETTLE_TIMEOUT, connection.sender.ready()).await;
                if let (Ok(Ok(())), Some(pool)) = (ready, pool.upgrade()) {
                    pool.push_idle(connection);
                }
            });
        }
    }

    /// The upstream ended the connection under a request, of whose answer no byte had come.
    pub(super) fn lost(&self, connection: &Http1Connection<B>) {
        self.observe(connection, connection.idle_for, true);
        self.close_idle();
    }

    /// The connection has ended; if it is idle, it is forgotten.
    fn ended(&self, record: &Arc<Record>) {
        let ended = {
            let mut idle = self.idle.borrow_mut();
            let index = idle.iter().position(|connection| Arc::ptr_eq(&connection.record, record));
            index.and_then(|index| idle.remove(index))
        };
        if let Some(connection) = ended {
            self.observe(&connection, self.now().saturating_since(connection.idle_since), false);
        }
    }

    fn observe(&self, connection: &Http1Connection<B>, idle_for: Duration, met_request: bool) {
        let Http1Connection { opened, answers, idle_since, .. } = *connection;
        let closing = Closing { opened, answers, idle_since, idle_for, met_request };
        self.closing.borrow_mut().observe(self.now(), closing);
    }

    fn push_idle(self: &Rc<Self>, mut connection: Http1Connection<B>) {
        let now = self.now();
        if self.closing.borrow().is_spent(now, connection.answers) {
            return;
        }
        connection.idle_since = now;
        self.idle.borrow_mut().push_back(connection);
        if !self.is_sweeping.replace(true) {
            spawn_local(sweep(Rc::downgrade(self)));
        }
    }

    fn pop_idle(&self) -> Option<Http1Connection<B>> {
        self.idle.borrow_mut().pop_back()
    }

    fn idle_max(&self, now: Instant) -> Duration {
        self.closing.borrow().idle_max(now, self.idle_timeout)
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }

    fn take_slot(&self) -> Option<Slot> {
        if self.open.get() >= self.connections_max {
            return None;
        }
        self.open.set(self.open.get() + 1);
        Some(Slot(Rc::clone(&self.open)))
    }

    async fn handshake(
        self: &Rc<Self>,
        io: UpstreamIo,
        slot: Slot,
        lifetime: Duration,
    ) -> Result<Http1Connection<B>, UpstreamError> {
        let socket = probe_of(&io);
        let record = Arc::new(Record::default());
        let recorded = Recorded::new(SmallReads::new(io), Arc::clone(&record));
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(UPSTREAM_HEAD_BYTES)
            .max_headers(self.fields_max)
            .handshake(TokioIo::new(recorded))
            .await
            .map_err(|error| UpstreamError::with_cause(UpstreamErrorKind::Connect, self.index, error))?;
        let connection = connection.with_upgrades();
        let (pool, its_record) = (Rc::downgrade(self), Arc::clone(&record));
        let task = spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "upstream connection ended");
            }
            pool.upgrade().into_iter().for_each(|pool| pool.ended(&its_record));
        });
        let now = self.now();
        Ok(Http1Connection {
            sender,
            record,
            socket,
            opened: now,
            lifetime,
            answers: 0,
            idle_since: now,
            idle_for: Duration::ZERO,
            _task: AbortOnDrop(task),
            _slot: slot,
        })
    }
}

impl<B> Http1Connection<B> {
    /// It had a request before: only then can it have gone stale.
    pub(super) fn is_reused(&self) -> bool {
        self.answers > 0
    }

    /// A request is about to be sent; `is_kept` if it may be sent once more.
    pub(super) fn begin(&self, is_kept: bool, interims: Option<&Interims>) {
        self.record.begin(is_kept && self.is_reused(), interims);
    }

    /// The bytes of the latest request and of its answer.
    pub(super) fn record(&self) -> &Record {
        &self.record
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Closes connections idle for too long, oldest first; ends when none is idle or the pool is gone.
async fn sweep<B: RequestBody>(pool: Weak<Http1Pool<B>>) {
    loop {
        let Some(every) = pool.upgrade().map(|pool| pool.idle_timeout / 2) else { return };
        sleep(every).await;
        let Some(pool) = pool.upgrade() else { return };
        let now = pool.now();
        loop {
            // Popped before it is dropped: see `close_idle`.
            let overdue = {
                let mut idle = pool.idle.borrow_mut();
                let oldest = idle.front().map(|connection| now.saturating_since(connection.idle_since));
                if oldest.is_some_and(|idle_for| idle_for >= pool.idle_max(now)) {
                    idle.pop_front()
                } else {
                    None
                }
            };
            if overdue.is_none() {
                break;
            }
        }
        if pool.idle.borrow().is_empty() {
            pool.is_sweeping.set(false);
            return;
        }
    }
}

//! HTTP/1.1 connections of one worker to one upstream: a bounded stack, never a queue.
//!
//! The bound is the worker's concurrency limit towards the upstream. When it is met the answer is
//! [`UpstreamErrorKind::Full`] at once: waiting is the admission queue's business, which knows deadlines and
//! classes. Last in, first out keeps few connections warm and lets the others time out.

use super::RequestBody;
use super::connect::{Target, UpstreamIo};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::small_reads::SmallReads;
use flashweir_core::limits::{UPSTREAM_HEAD_BYTES, UPSTREAM_HEAD_FIELDS};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep, timeout};

/// The pool. `Rc` because leases outlive a reload that replaces it.
pub(super) struct Http1Pool<B> {
    index: usize,
    connections_max: usize,
    idle_timeout: Duration,
    /// Connections being opened, in use or idle. Separate from the pool so that idle entries make no cycle.
    open: Rc<Cell<usize>>,
    idle: RefCell<VecDeque<Idle<B>>>,
    is_sweeping: Cell<bool>,
}

/// A connection in use; dropping it closes it.
pub(super) struct Http1Connection<B> {
    pub(super) sender: SendRequest<B>,
    /// Whether it served a request before: only then can it have gone stale.
    pub(super) is_reused: bool,
    _task: AbortOnDrop,
    _slot: Slot,
}

struct Idle<B> {
    connection: Http1Connection<B>,
    since: Instant,
}

/// One of the pool's connections, counted until dropped.
struct Slot(Rc<Cell<usize>>);

/// hyper's half of a connection: ended with ours, so that a client that goes away frees the upstream at once.
pub(super) struct AbortOnDrop(pub(super) JoinHandle<()>);

/// How long a connection whose response has ended may still be busy with its request before it is closed.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

// hyper's own bound, for which it needs no allocation.
const _: () = assert!(UPSTREAM_HEAD_FIELDS == 100);

impl<B: RequestBody> Http1Pool<B> {
    pub(super) fn new(index: usize, connections_max: usize, idle_timeout: Duration) -> Rc<Self> {
        Rc::new(Self {
            index,
            connections_max,
            idle_timeout,
            open: Rc::new(Cell::new(0)),
            idle: RefCell::new(VecDeque::new()),
            is_sweeping: Cell::new(false),
        })
    }

    /// The most recently used connection, or a new one, or an error at once.
    pub(super) async fn check_out(&self, target: &Target) -> Result<Http1Connection<B>, UpstreamError> {
        while let Some(Idle { connection, since }) = self.pop_idle() {
            if connection.sender.is_ready() && since.elapsed() < self.idle_timeout {
                return Ok(connection);
            }
        }
        let slot =
            self.take_slot().ok_or_else(|| UpstreamError::new(UpstreamErrorKind::Full, Some(self.index)))?;
        // Boxed, or each request that finds an open connection would carry the room for opening one.
        Box::pin(self.open(target, slot)).await
    }

    async fn open(&self, target: &Target, slot: Slot) -> Result<Http1Connection<B>, UpstreamError> {
        let io = target.connect(self.index).await?;
        let (sender, task) = self.handshake(io).await?;
        Ok(Http1Connection { sender, is_reused: false, _task: task, _slot: slot })
    }

    /// Closes every idle connection: after one of them proved stale, the others probably are.
    pub(super) fn close_idle(&self) {
        // Taken out first: dropping a connection must not run inside the borrow.
        let idle = self.idle.take();
        drop(idle);
    }

    /// Takes back a connection whose response was read to its end.
    pub(super) fn give_back(self: &Rc<Self>, mut connection: Http1Connection<B>) {
        connection.is_reused = true;
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

    fn push_idle(self: &Rc<Self>, connection: Http1Connection<B>) {
        self.idle.borrow_mut().push_back(Idle { connection, since: Instant::now() });
        if !self.is_sweeping.replace(true) {
            spawn_local(sweep(Rc::downgrade(self), self.idle_timeout));
        }
    }

    fn pop_idle(&self) -> Option<Idle<B>> {
        self.idle.borrow_mut().pop_back()
    }

    fn take_slot(&self) -> Option<Slot> {
        if self.open.get() >= self.connections_max {
            return None;
        }
        self.open.set(self.open.get() + 1);
        Some(Slot(Rc::clone(&self.open)))
    }

    async fn handshake(&self, io: UpstreamIo) -> Result<(SendRequest<B>, AbortOnDrop), UpstreamError> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(UPSTREAM_HEAD_BYTES)
            .handshake(TokioIo::new(SmallReads::new(io)))
            .await
            .map_err(|error| UpstreamError::with_cause(UpstreamErrorKind::Connect, self.index, error))?;
        let connection = connection.with_upgrades();
        let task = spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "upstream connection ended");
            }
        });
        Ok((sender, AbortOnDrop(task)))
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
async fn sweep<B>(pool: Weak<Http1Pool<B>>, idle_timeout: Duration) {
    loop {
        sleep(idle_timeout / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        loop {
            // Popped before it is dropped: see `close_idle`.
            let overdue = {
                let mut idle = pool.idle.borrow_mut();
                match idle.front() {
                    Some(oldest) if oldest.since.elapsed() >= idle_timeout => idle.pop_front(),
                    _ => None,
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

//! HTTP/1.1 connections of one worker to one upstream: a bounded stack, never a queue.
//!
//! The bound is the worker's concurrency limit towards the upstream. When it is met the answer is
//! [`UpstreamErrorKind::Full`] at once: waiting is the admission queue's business, which knows deadlines and
//! classes. Last in, first out keeps few connections warm and lets the others time out.
//!
//! A connection that the upstream has ended, or is about to end by its [habits](ClosingHabit), is not used.

use super::RequestBody;
use super::closing::{Closing, ClosingHabit};
use super::connect::ConnectTarget;
use super::connection::Connection;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::shared::InFlight;
use super::slot::Slot;
use super::stream::UpstreamStream;
use flashweir_core::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::sleep;

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
    idle: RefCell<VecDeque<Box<Http1Connection<B>>>>,
    is_watching: Cell<bool>,
    /// Wakes the task that watches the idle connections, once it has begun.
    watcher: RefCell<Option<Waker>>,
    origin: tokio::time::Instant,
}

/// A connection in use; dropping it closes it.
pub(super) struct Http1Connection<B> {
    pub(super) exchange: Connection<B>,
    opened: Instant,
    /// Time after that for which it takes requests.
    lifetime: Duration,
    /// Since when it is idle, or was the last time.
    idle_since: Instant,
    /// For how long, when it was taken out of the pool.
    idle_for: Duration,
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
            is_watching: Cell::new(false),
            watcher: RefCell::default(),
            origin: tokio::time::Instant::now(),
        })
    }

    /// The most recently used connection, or a new one, or an error at once.
    pub(super) async fn check_out(
        self: &Rc<Self>,
        now: tokio::time::Instant,
        target: &ConnectTarget,
        choice: Choice,
    ) -> Result<Box<Http1Connection<B>>, UpstreamError> {
        let now = Instant::from_duration(now.saturating_duration_since(self.origin));
        while choice != Choice::New
            && let Some(mut connection) = self.pop_idle()
        {
            connection.idle_for = now.saturating_since(connection.idle_since);
            if connection.idle_for < self.idle_max(now)
                && now.saturating_since(connection.opened) < connection.lifetime
                && !connection.exchange.is_readable(choice == Choice::Asked)
            {
                return Ok(connection);
            }
        }
        let slot = Slot::take(&self.open, self.connections_max).or_else(|| {
            // An idle one may make room, where none of those may be used.
            self.idle.borrow_mut().pop_front();
            Slot::take(&self.open, self.connections_max)
        });
        let slot = slot.ok_or_else(|| UpstreamError::new(UpstreamErrorKind::Full, Some(self.index)))?;
        // Boxed, or each request that finds an open connection would carry the room for opening one.
        Box::pin(self.open(target, slot)).await
    }

    async fn open(
        self: &Rc<Self>,
        target: &ConnectTarget,
        slot: Slot,
    ) -> Result<Box<Http1Connection<B>>, UpstreamError> {
        let io = target.connect(self.index).await?;
        let now = self.now();
        Ok(Box::new(Http1Connection {
            exchange: Connection::new(self.index, io, self.fields_max),
            opened: now,
            lifetime: target.connection_lifetime(),
            idle_since: now,
            idle_for: Duration::ZERO,
            _slot: slot,
        }))
    }

    /// Closes every idle connection: after one of them proved stale, the others probably are.
    pub(super) fn close_idle(&self) {
        self.idle.borrow_mut().clear();
    }

    /// Takes back a connection whose exchange is over.
    pub(super) fn give_back(self: &Rc<Self>, mut connection: Box<Http1Connection<B>>) {
        let now = self.now();
        let answers = connection.answers();
        if !connection.exchange.is_ready() || self.closing.borrow().is_spent(now, answers) {
            return;
        }
        connection.exchange.release();
        connection.idle_since = now;
        if let Some(watcher) = &*self.watcher.borrow()
            && connection.exchange.poll_idle_end(&mut Context::from_waker(watcher)).is_ready()
        {
            return self.observe(&connection, Duration::ZERO, false);
        }
        self.idle.borrow_mut().push_back(connection);
        if !self.is_watching.replace(true) {
            spawn_local(watch(Rc::downgrade(self)));
        }
    }

    /// The upstream ended the connection under a request, of whose answer no byte had come.
    pub(super) fn lost(&self, connection: &Http1Connection<B>) {
        self.observe(connection, connection.idle_for, true);
        self.close_idle();
    }

    /// Forgets the idle connections that the upstream has ended. The others wake this task when it does.
    fn forget_ended(&self, cx: &mut Context<'_>) {
        let now = self.now();
        self.idle.borrow_mut().retain_mut(|connection| {
            let is_alive = connection.exchange.poll_idle_end(cx).is_pending();
            if !is_alive {
                self.observe(connection, now.saturating_since(connection.idle_since), false);
            }
            is_alive
        });
    }

    /// Closes the connections that are idle for too long.
    fn close_overdue(&self) {
        let now = self.now();
        let idle_max = self.idle_max(now);
        self.idle.borrow_mut().retain(|connection| now.saturating_since(connection.idle_since) < idle_max);
    }

    fn observe(&self, connection: &Http1Connection<B>, idle_for: Duration, met_request: bool) {
        let Http1Connection { opened, idle_since, .. } = *connection;
        let answers = connection.answers();
        let closing = Closing { opened, answers, idle_since, idle_for, met_request };
        self.closing.borrow_mut().observe(self.now(), closing);
    }

    fn pop_idle(&self) -> Option<Box<Http1Connection<B>>> {
        self.idle.borrow_mut().pop_back()
    }

    fn idle_max(&self, now: Instant) -> Duration {
        self.closing.borrow().idle_max(now, self.idle_timeout)
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }
}

impl<B: RequestBody> Http1Connection<B> {
    /// It had a request before: only then can it have gone stale.
    pub(super) fn is_reused(&self) -> bool {
        self.exchange.answers() > 0
    }

    /// The stream that a switch of protocols leaves.
    pub(super) fn into_stream(self, in_flight: InFlight) -> UpstreamStream {
        let (io, received) = self.exchange.into_stream();
        UpstreamStream { io, received, _counted: (self._slot, in_flight) }
    }

    fn answers(&self) -> u32 {
        self.exchange.answers().try_into().unwrap_or(u32::MAX)
    }
}

/// Watches the idle connections: forgets those that the upstream ends, and closes those that are idle for too
/// long. Ends when none is idle or the pool is gone.
async fn watch<B: RequestBody>(pool: Weak<Http1Pool<B>>) {
    loop {
        let Some(every) = pool.upgrade().map(|pool| pool.idle_timeout / 2) else { return };
        let mut rest = pin!(sleep(every));
        let is_gone = poll_fn(|cx| {
            let Some(pool) = pool.upgrade() else { return Poll::Ready(true) };
            pool.watcher.replace(Some(cx.waker().clone()));
            pool.forget_ended(cx);
            rest.as_mut().poll(cx).map(|()| false)
        });
        if is_gone.await {
            return;
        }
        let Some(pool) = pool.upgrade() else { return };
        pool.close_overdue();
        if pool.idle.borrow().is_empty() {
            pool.watcher.take();
            pool.is_watching.set(false);
            return;
        }
    }
}

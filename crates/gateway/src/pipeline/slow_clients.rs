//! Clients that take their responses slowly, or send their requests' bodies slowly: their places at the
//! origin go to others.
//!
//! *Downloads.* The HTTP library asks for the next part of a response when the client has taken enough of
//! what came before. A part that is not asked for within [`PATIENCE`] has a client that is slower than the
//! origin; all there is has long left the origin's processor, or waits in its socket for us. The response
//! goes on as before, only its place is free, for good.
//!
//! *Uploads.* hyper asks for the next part of a request's body when the origin has room for it. When the
//! client has been waited for longer than [`PATIENCE`], all waits of the request together (or a byte now and
//! then would hold a place for ever), the place is free until the client sends something, or the origin does:
//! it may answer before it has read all.

use super::share_guard::ShareGuard;
use flashweir_admission::pipeline::RequestOutcome;
use flashweir_core::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Longer than a round trip to most clients, so that a window of TCP may fill and empty; short against a
/// download.
const PATIENCE: Duration = Duration::from_millis(100);

/// A place that is given back early if the client holds its response up, and left for a while if the client
/// holds its request up. Owned by the request's permit.
#[derive(Debug)]
pub(crate) struct Yielding {
    share_guard: RefCell<Option<ShareGuard>>,
    /// Time at which the client was last handed a part, unless it has asked for the next one since; and how
    /// the request has ended for the origin, which did its work, if the client never does.
    handed: Cell<Option<(Instant, RequestOutcome)>>,
    /// Since when the client has owed a part, unless it does not.
    owes_since: Cell<Option<Instant>>,
    /// For how much longer the client is waited for with the place kept.
    patience: Cell<Duration>,
}

/// The requests of one worker whose clients may be slow; at most as many as are in flight.
#[derive(Debug, Default)]
pub(crate) struct SlowClients {
    watched: Vec<Weak<Yielding>>,
}

impl Yielding {
    pub(crate) fn new(share_guard: ShareGuard) -> Rc<Self> {
        Rc::new(Self {
            share_guard: RefCell::new(Some(share_guard)),
            handed: Cell::new(None),
            owes_since: Cell::new(None),
            patience: Cell::new(PATIENCE),
        })
    }

    /// The client got a part of its response and has to take it. `outcome` is reported if it is too slow.
    pub(crate) fn handed(&self, now: Instant, outcome: RequestOutcome) {
        self.handed.set(Some((now, outcome)));
        self.answered(now);
    }

    /// The client is ready for more: from here on it is the origin that is waited for.
    pub(crate) fn asked(&self) {
        self.handed.set(None);
    }

    /// The origin has sent something: it works, even if the client has more to send.
    pub(crate) fn answered(&self, now: Instant) {
        self.resume();
        if self.owes_since.get().is_some() {
            self.owes_since.set(Some(now));
            self.patience.set(PATIENCE);
        }
    }

    /// The origin has room for a part of the request's body that the client has not sent.
    pub(crate) fn owes(&self, now: Instant) {
        self.owes_since.set(self.owes_since.get().or(Some(now)));
    }

    /// The same of a client that is known to be waited for: the place is others' at once.
    pub(crate) fn owes_already(&self, now: Instant) {
        self.owes(now);
        self.patience.set(Duration::ZERO);
        self.share_guard.borrow_mut().iter_mut().for_each(ShareGuard::pause);
    }

    /// The client has sent something, or all there was.
    pub(crate) fn sent(&self, now: Instant) {
        if let Some(since) = self.owes_since.take() {
            self.patience.set(self.patience.get().saturating_sub(now.saturating_since(since)));
        }
        self.resume();
    }

    /// Returns whether the gateway has waited for the client until the request's time says more about the
    /// client than about the origin.
    pub(crate) fn is_slow(&self) -> bool {
        self.patience.get().is_zero()
    }

    /// No part of the request's body is waited for any more.
    pub(crate) fn is_owed_nothing(&self) {
        self.owes_since.set(None);
    }

    /// The response is over; nothing happens where its place is gone already.
    pub(crate) fn end(&self, outcome: RequestOutcome) {
        let share_guard = self.share_guard.borrow_mut().take();
        if let Some(share_guard) = share_guard {
            share_guard.end(outcome);
        }
    }

    fn resume(&self) {
        self.share_guard.borrow_mut().iter_mut().for_each(ShareGuard::resume);
    }

    /// Gives the place away if the client is too slow. Whether it may still be.
    fn look(&self, now: Instant) -> bool {
        let is_over = |since: Instant, patience| now.saturating_since(since) > patience;
        if let Some((_, outcome)) = self.handed.get().filter(|(at, _)| is_over(*at, PATIENCE)) {
            self.end(outcome);
            return false;
        }
        if self.owes_since.get().is_some_and(|since| is_over(since, self.patience.get())) {
            self.share_guard.borrow_mut().iter_mut().for_each(ShareGuard::pause);
        }
        true
    }
}

impl SlowClients {
    /// Returns whether no client is watched: no sweep is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Watches a request until it ends or its place is free for good.
    pub(crate) fn watch(&mut self, request: &Rc<Yielding>) {
        self.watched.push(Rc::downgrade(request));
    }

    /// Takes the places of those who were too slow. O(watched).
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.watched.retain(|request| request.upgrade().is_some_and(|request| request.look(now)));
    }
}

#[cfg(test)]
#[path = "slow_clients_tests.rs"]
mod tests;

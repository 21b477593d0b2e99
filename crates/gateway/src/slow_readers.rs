//! Clients that take their responses, but too slowly to be of use: they are cut after a while.
//!
//! `bounds.write_stall_timeout` ends a connection that takes no byte at all. A client that takes one now and
//! then holds the response's memory, and in HTTP/2 it need not even leave a byte in a socket: it opens its
//! window by a few bytes each time. So what counts is how long the client was waited for with the next part
//! of a response, and what it took meanwhile. For each window of that time (twice the write-stall timeout) it
//! has to take [`READER_RATE_MIN`](limits::READER_RATE_MIN) a second. Waiting for the origin counts for
//! nothing.

use crate::tracked::Wire;
use flashweir_core::{Duration, Instant, limits};
use flashweir_http::serve::StreamCut;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Time between two looks at all readers.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One response of several parts on its way to a client; owned by its body.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Since when the client has not asked for the next part.
    handed_at: Cell<Option<Instant>>,
    waited: Cell<Duration>,
    bytes: Cell<u64>,
    window: Duration,
    wire: Rc<Wire>,
    stream: Option<StreamCut>,
}

/// The readers of one worker; at most as many as there are requests in flight.
#[derive(Debug, Default)]
pub(crate) struct SlowReaders {
    watched: RefCell<Vec<Weak<Reading>>>,
    looked_at: Cell<Instant>,
}

impl Reading {
    pub(crate) fn new(wire: Rc<Wire>, stream: Option<StreamCut>, write_stall_timeout: Duration) -> Rc<Self> {
        Rc::new(Self {
            handed_at: Cell::new(None),
            waited: Cell::new(Duration::ZERO),
            bytes: Cell::new(0),
            window: write_stall_timeout * 2,
            wire,
            stream,
        })
    }

    /// A part that is not the last was handed over.
    pub(crate) fn handed(&self, now: Instant) {
        self.handed_at.set(Some(now));
    }

    /// The client has taken enough for the next part. The time is asked for only if it was waited for.
    pub(crate) fn asked(&self, now: impl FnOnce() -> Instant) {
        if self.handed_at.get().is_some() {
            self.waited.set(self.waited(now()));
            self.handed_at.set(None);
        }
    }

    /// Counts the bytes of the next part.
    pub(crate) fn brought(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn waited(&self, now: Instant) -> Duration {
        let waiting = self.handed_at.get().map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.waited.get() + waiting
    }

    /// Returns whether it was too slow over a window that is over.
    fn is_too_slow(&self, now: Instant) -> bool {
        let waited = self.waited(now);
        if waited < self.window {
            return false;
        }
        let wanted = limits::READER_RATE_MIN.saturating_mul(waited.as_millis() as u64) / 1_000;
        let is_too_slow = self.bytes.replace(0) < wanted;
        self.waited.set(Duration::ZERO);
        self.handed_at.set(self.handed_at.get().map(|_| now));
        is_too_slow
    }

    fn cut(&self) {
        match &self.stream {
            Some(stream) => stream.cut(),
            None => self.wire.cut(),
        }
    }
}

impl SlowReaders {
    /// Returns whether no response is being read: no sweep is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.borrow().is_empty()
    }

    /// Watches a response until it ends.
    pub(crate) fn watch(&self, reading: &Rc<Reading>) {
        self.watched.borrow_mut().push(Rc::downgrade(reading));
    }

    /// Cuts who was too slow; how many that were. O(watched) each [`LOOK_EVERY`].
    pub(crate) fn sweep(&self, now: Instant) -> u64 {
        if now.saturating_since(self.looked_at.get()) < LOOK_EVERY {
            return 0;
        }
        self.looked_at.set(now);
        let mut slow = Vec::new();
        self.watched.borrow_mut().retain(|reading| {
            let Some(reading) = reading.upgrade() else { return false };
            if reading.is_too_slow(now) {
                slow.push(reading);
            }
            true
        });
        slow.iter().for_each(|reading| reading.cut());
        slow.len() as u64
    }
}

//! A client that ends its half of the connection while it waits for its answer (RFC 9112 §9.6 lets it).
//!
//! To the server's kernel, an end of one half looks like an end of both. So the end is *held*: the parser
//! above doesn't learn of it before the answer is complete, and the first byte of the answer, which is the
//! same in all, is sent ahead. A client that closed both halves answers that byte with a reset, one round
//! trip later; then its request is abandoned. A client that waits has the first byte of its status line.
//!
//! Of an answer under way whose length is unknown, an event stream for one, a digit is sent ahead: `0`, with
//! which the size of the next chunk may begin (RFC 9112 §7.1). One of known length goes on by itself, and its
//! next bytes show the same.
//!
//! **Cost.** Nothing for a connection whose client doesn't end its half: one comparison for each read. **What
//! it can't see:** a client whose machine has gone, or whose network drops resets, is answered as if it
//! waited, within the bounds that every request has.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// The first byte of every answer: of `HTTP/1.1`.
const FIRST_BYTE: &[u8] = b"H";
/// A digit that changes no size.
const LEADING_ZERO: &[u8] = b"0";

/// State of one connection's end, shared with the code that serves the connection.
#[derive(Debug, Default)]
pub(crate) struct EndState {
    /// Requests whose responses have not ended.
    in_flight: Cell<usize>,
    is_held: Cell<bool>,
    is_broken: Cell<bool>,
    /// The response in progress is sent in chunks.
    is_chunked: Cell<bool>,
    reader: RefCell<Option<Waker>>,
}

/// The stream's part: ends are held, and one byte may be ahead.
#[derive(Debug)]
pub(crate) struct EndHolder {
    /// Notified when an end is held.
    held: Rc<Notify>,
    /// Something was written since the request came, so a byte sent ahead would fall into the middle.
    is_answering: bool,
    is_ahead: bool,
}

impl EndState {
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    pub(crate) fn begin(&self) {
        self.is_chunked.set(false);
        self.in_flight.set(self.in_flight.get() + 1);
    }

    /// The head of a response in chunks is about to be written.
    pub(crate) fn begin_chunks(&self) {
        self.is_chunked.set(true);
    }

    /// One response has ended; says whether it was the last.
    pub(crate) fn end(&self) -> bool {
        self.in_flight.set(self.in_flight.get() - 1);
        self.is_chunked.set(false);
        let is_last = self.in_flight.get() == 0;
        if is_last {
            self.wake();
        }
        is_last
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.get()
    }

    /// The client has closed both halves.
    pub(crate) fn break_off(&self) {
        self.is_broken.set(true);
        self.wake();
    }

    /// Result of a read while the end is held.
    pub(crate) fn poll_held(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_broken.get() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.in_flight() == 0 {
            return Poll::Ready(Ok(()));
        }
        *self.reader.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn wake(&self) {
        if self.is_held.get() {
            self.reader.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl EndHolder {
    pub(crate) fn new(held: Rc<Notify>) -> Self {
        Self { held, is_answering: false, is_ahead: false }
    }

    /// A request begins.
    pub(crate) fn begin(&mut self) {
        self.is_answering = false;
    }

    /// Something of an answer is about to be written.
    pub(crate) fn writes(&mut self) {
        self.is_answering = true;
    }

    /// Returns whether the first byte of the answer is sent already; the rest is to be written now.
    pub(crate) fn take_ahead(&mut self) -> bool {
        std::mem::take(&mut self.is_ahead)
    }

    /// The end was read while a response is owed. `is_flushed`: what was written of it ends with a chunk, if
    /// it is sent in chunks.
    pub(crate) fn hold<Io: AsyncWrite + Unpin>(
        &mut self,
        state: &EndState,
        io: &mut Io,
        cx: &mut Context<'_>,
        is_flushed: bool,
    ) {
        state.is_held.set(true);
        self.held.notify_one();
        let ahead = match self.is_answering {
            false => FIRST_BYTE,
            true if is_flushed && state.is_chunked.get() => LEADING_ZERO,
            true => return,
        };
        let written = Pin::new(&mut *io).poll_write(cx, ahead);
        self.is_ahead = !self.is_answering && matches!(written, Poll::Ready(Ok(1)));
        // Of TLS; a failure shows at the next write.
        let _ = Pin::new(io).poll_flush(cx);
    }
}

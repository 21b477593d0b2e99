//! A client's stream, above TLS: which protocol it speaks, and over HTTP/2 the frames that it sends.
//!
//! Over HTTP/1.1 the stream goes on to the code that serves it, which reads its heads by `flashweir-http1`'s
//! strict rules. Over HTTP/2 it stays below the library: heads are timed, and frames that carry no work are
//! counted.

use crate::held_end::{EndHolder, EndState};
use crate::http2_frames::{FrameWatch, PREFACE};
use crate::interim::Interims;
use crate::pipe::{PipeSink, WritePipe};
use crate::violation::FramingViolation;
use flashweir_http1::connection::ReadPhase;
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 and HTTP/1.0.
    Http1,
    /// HTTP/2, by ALPN or prior knowledge.
    Http2,
}

/// Observations of one connection; shared with the code that serves it.
#[derive(Clone, Debug)]
pub struct GuardHandle(Rc<GuardState>);

#[derive(Debug)]
struct GuardState {
    phase: Cell<ReadPhase>,
    head_since: Cell<Instant>,
    violation: Cell<Option<FramingViolation>>,
    is_http2: Cell<bool>,
    is_write_blocked: Cell<bool>,
    interims: Interims,
    end: EndState,
    /// Reads of HTTP/2 that brought something.
    reads: Cell<u64>,
}

/// A client's stream.
#[derive(Debug)]
pub struct Guarded<Io> {
    io: Io,
    /// HTTP/2's framing, once that is spoken, and since when.
    frames: Option<(FrameWatch, Instant)>,
    handle: GuardHandle,
    /// Bytes [`Guarded::sniff`] read, not yet handed up.
    sniffed: Vec<u8>,
    /// Holder of connections whose clients have ended their half.
    ends: Option<EndHolder>,
    /// Writes pipes, where the stream takes them.
    write_pipe: Option<WritePipe<Io>>,
}

/// Parts of a [`Guarded`].
pub(crate) struct GuardedParts<Io> {
    pub(crate) io: Io,
    pub(crate) sniffed: Vec<u8>,
    pub(crate) ends: Option<EndHolder>,
    pub(crate) write_pipe: Option<WritePipe<Io>>,
    pub(crate) handle: GuardHandle,
}

/// First read of a connection: most heads fit.
const SNIFF_BYTES: usize = 2_048;

impl GuardHandle {
    fn new() -> Self {
        Self(Rc::new(GuardState {
            phase: Cell::new(ReadPhase::Idle),
            head_since: Cell::new(Instant::now()),
            violation: Cell::new(None),
            is_http2: Cell::new(false),
            is_write_blocked: Cell::new(false),
            interims: Interims::default(),
            end: EndState::default(),
            reads: Cell::new(0),
        }))
    }

    /// Phase of the client between two requests' bytes; always [`ReadPhase::Idle`] in a tunnel, and never
    /// [`ReadPhase::ReadingBody`] in HTTP/2, where bodies and heads share the connection.
    #[must_use]
    pub fn phase(&self) -> ReadPhase {
        self.0.phase.get()
    }

    /// Time at which the head being read began; meaningful while the phase is [`ReadPhase::ReadingHead`].
    #[must_use]
    pub fn head_since(&self) -> Instant {
        self.0.head_since.get()
    }

    /// Returns whether the connection speaks HTTP/2: while a head is under way, no other stream gets
    /// anything.
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.0.is_http2.get()
    }

    /// The violation that ended this connection's requests, if one did.
    #[must_use]
    pub fn violation(&self) -> Option<FramingViolation> {
        self.0.violation.get()
    }

    /// Returns whether the last write could not be taken: something is still owed to the client.
    #[must_use]
    pub fn is_write_blocked(&self) -> bool {
        self.0.is_write_blocked.get()
    }

    /// Times that something was read of an HTTP/2 connection.
    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.get()
    }

    /// Interim responses to a client of HTTP/1.1.
    #[must_use]
    pub fn interims(&self) -> &Interims {
        &self.0.interims
    }

    /// Returns whether the client has ended its half of the connection while a response is owed to it.
    #[must_use]
    pub fn is_end_held(&self) -> bool {
        self.0.end.is_held()
    }

    /// The client whose end is held has closed both halves: its request fails.
    pub fn break_off(&self) {
        self.0.end.break_off();
    }

    pub(crate) fn end(&self) -> &EndState {
        &self.0.end
    }

    /// The connection is in this phase; the time is taken where a head begins that has not come whole.
    pub(crate) fn enter(&self, phase: ReadPhase, is_new_head: bool) {
        if phase == ReadPhase::ReadingHead && (is_new_head || self.phase() != phase) {
            self.0.head_since.set(Instant::now());
        }
        self.0.phase.set(phase);
    }

    /// A message was refused; the connection reads no further one.
    pub(crate) fn refuse(&self, violation: FramingViolation) {
        self.0.violation.set(Some(violation));
        self.0.phase.set(ReadPhase::Idle);
    }

    pub(crate) fn set_write_blocked(&self, is_blocked: bool) {
        self.0.is_write_blocked.set(is_blocked);
    }
}

impl<Io> Guarded<Io> {
    /// Puts a guard around a client's stream.
    #[must_use]
    pub fn new(io: Io) -> Self {
        let handle = GuardHandle::new();
        Self { io, frames: None, handle, sniffed: Vec::new(), ends: None, write_pipe: None }
    }

    /// The same; bodies that offer pipes are sent by them (HTTP/1 only).
    #[must_use]
    pub fn taking_pipes(mut self) -> Self
    where
        Io: PipeSink,
    {
        self.write_pipe = Some(Io::poll_write_pipe);
        self
    }

    /// The same; a client that ends its half of the connection while it waits for its answer gets it (HTTP/1
    /// only). `held` is notified then: the code that serves the connection calls [`GuardHandle::break_off`]
    /// when it is reset.
    #[must_use]
    pub fn answering_half_closed(mut self, held: Rc<Notify>) -> Self {
        self.ends = Some(EndHolder::new(held));
        self
    }

    /// The guard's observations, to keep after the stream has gone into a server.
    #[must_use]
    pub fn handle(&self) -> GuardHandle {
        self.handle.clone()
    }

    /// The parts of a connection that speaks HTTP/1.1.
    pub(crate) fn into_parts(self) -> GuardedParts<Io> {
        let Self { io, sniffed, ends, write_pipe, handle, .. } = self;
        GuardedParts { io, sniffed, ends, write_pipe, handle }
    }

    /// Follows the frames that were just read.
    fn inspect(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some((frames, since)) = &mut self.frames else { return Ok(()) };
        self.handle.0.reads.set(self.handle.0.reads.get() + 1);
        let heads_before = frames.heads();
        frames.inspect(bytes);
        let (is_in_head, is_new_head) = (frames.is_in_head(), heads_before != frames.heads());
        self.handle.enter(if is_in_head { ReadPhase::ReadingHead } else { ReadPhase::Idle }, is_new_head);
        if frames.is_flooded(|| since.elapsed()) {
            self.handle.0.violation.set(Some(FramingViolation::FrameFlood));
            return Err(io::Error::new(io::ErrorKind::InvalidData, FramingViolation::FrameFlood.as_str()));
        }
        Ok(())
    }
}

impl<Io: AsyncRead + Unpin> Guarded<Io> {
    /// Reads just enough to tell HTTP/2 with prior knowledge from HTTP/1; nothing is lost for the server.
    ///
    /// # Errors
    /// Errors of the stream. An ended stream counts as HTTP/1.
    pub async fn sniff(&mut self) -> io::Result<Protocol> {
        self.sniffed.reserve_exact(SNIFF_BYTES);
        loop {
            let compared = self.sniffed.len().min(PREFACE.len());
            if self.sniffed[..compared] != PREFACE[..compared] {
                return Ok(Protocol::Http1);
            }
            if compared == PREFACE.len() {
                self.expect(Protocol::Http2);
                return Ok(Protocol::Http2);
            }
            if self.io.read_buf(&mut self.sniffed).await? == 0 {
                return Ok(Protocol::Http1);
            }
            self.handle.0.phase.set(ReadPhase::ReadingHead);
        }
    }

    /// Says which protocol ALPN chose; of HTTP/2 only the frames are followed (see [`crate::rules`] for its
    /// heads).
    pub fn expect(&mut self, protocol: Protocol) {
        if protocol == Protocol::Http2 {
            self.frames = Some((FrameWatch::new(), Instant::now()));
            self.handle.0.is_http2.set(true);
            self.handle.0.phase.set(ReadPhase::Idle);
        }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let start = buf.filled().len();
        if this.sniffed.is_empty() {
            ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
        } else {
            let fitting = this.sniffed.len().min(buf.remaining());
            buf.put_slice(&this.sniffed[..fitting]);
            this.sniffed.drain(..fitting);
            if this.sniffed.is_empty() {
                this.sniffed = Vec::new();
            }
        }
        let inspected = this.inspect(&buf.filled()[start..]);
        if inspected.is_err() {
            this.say_goodbye(cx);
        }
        Poll::Ready(inspected)
    }
}

impl<Io: AsyncWrite + Unpin> Guarded<Io> {
    /// Sends the last frame of an HTTP/2 connection. Where no write is blocked, what was written ended with a
    /// frame.
    fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if let Some((frames, _)) = &self.frames
            && !self.handle.is_write_blocked()
        {
            // A client that does not take it has lost nothing: the connection ends.
            let _ = Pin::new(&mut self.io).poll_write(cx, &frames.go_away());
            let _ = Pin::new(&mut self.io).poll_flush(cx);
        }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        self.handle.set_write_blocked(written.is_pending());
        if let (Some((frames, _)), Poll::Ready(Ok(bytes))) = (&mut self.frames, written) {
            frames.sent(*bytes);
        }
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Guarded<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

//! The head guard as a stream: above TLS, below hyper.
//!
//! A message that the guard refuses never reaches hyper as it was sent. A refused head is replaced by bytes
//! no parser accepts (`NUL CRLF CRLF`), so hyper itself answers in order, after the responses still owed, and
//! closes; a head over its limits is cut where hyper's equal limits end it. hyper's answer is empty:
//! `refused_head` takes its place. A refused body fails the read.

use crate::head_guard::{FramingRefusal, HeadGuard, HeadLimits, MessagePart, ReadPhase};
use crate::held_end::{EndHolder, EndState};
use crate::http2_frames::{FrameWatch, PREFACE};
use crate::interim::{Interims, write};
use crate::refused_head::{answer, find_empty_answer};
use crate::violation::FramingViolation;
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

/// State of one connection's guard; shared with the code that serves the connection.
#[derive(Clone, Debug)]
pub struct GuardHandle(Rc<GuardState>);

#[derive(Debug)]
struct GuardState {
    phase: Cell<ReadPhase>,
    head_since: Cell<Instant>,
    violation: Cell<Option<FramingViolation>>,
    is_transparent: Cell<bool>,
    is_http2: Cell<bool>,
    is_write_blocked: Cell<bool>,
    interims: Interims,
    end: EndState,
    /// Reads of HTTP/2 that brought something.
    reads: Cell<u64>,
}

/// A client's stream whose reads are framed strictly. Writes pass untouched.
#[derive(Debug)]
pub struct Guarded<Io> {
    io: Io,
    guard: HeadGuard,
    /// HTTP/2's framing, once that is spoken, and since when.
    frames: Option<(FrameWatch, Instant)>,
    handle: GuardHandle,
    /// Bytes [`Guarded::sniff`] read, not yet handed up.
    sniffed: Vec<u8>,
    refused: Option<Refused>,
    /// All that hyper wrote was flushed, and nothing came after it.
    is_flushed: bool,
    /// Rest of the interim responses, or of the answer to a refused head, that is being written.
    own_left: Vec<u8>,
    /// Holder of connections whose clients have ended their half.
    ends: Option<EndHolder>,
}

/// Bytes still to be given to the parser above after a refusal.
#[derive(Clone, Copy, Debug)]
struct Refused {
    part: MessagePart,
    violation: FramingViolation,
    last_words: &'static [u8],
    is_answered: bool,
}

/// First read of a connection: most heads fit, and it is freed as soon as hyper has taken it.
const SNIFF_BYTES: usize = 2_048;

impl GuardHandle {
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

    fn enter(&self, phase: ReadPhase, is_new_head: bool) {
        if phase == ReadPhase::ReadingHead && is_new_head {
            self.0.head_since.set(Instant::now());
        }
        self.0.phase.set(phase);
    }

    /// Stops judging: what follows is not HTTP/1.1 (an upgraded connection). Call before the 101 is sent.
    ///
    /// # Errors
    /// The violation already found; then bytes were lost and the connection cannot become a tunnel.
    pub fn pass_through(&self) -> Result<(), FramingViolation> {
        match self.violation() {
            Some(violation) => Err(violation),
            None => {
                self.0.is_transparent.set(true);
                self.0.phase.set(ReadPhase::Idle);
                Ok(())
            }
        }
    }
}

impl<Io> Guarded<Io> {
    /// Puts a guard around a client's stream.
    #[must_use]
    pub fn new(io: Io, limits: HeadLimits) -> Self {
        let seen = GuardState {
            phase: Cell::new(ReadPhase::Idle),
            head_since: Cell::new(Instant::now()),
            violation: Cell::new(None),
            is_transparent: Cell::new(false),
            is_http2: Cell::new(false),
            is_write_blocked: Cell::new(false),
            interims: Interims::default(),
            end: EndState::default(),
            reads: Cell::new(0),
        };
        Self {
            io,
            guard: HeadGuard::new(limits),
            frames: None,
            handle: GuardHandle(Rc::new(seen)),
            sniffed: Vec::new(),
            refused: None,
            is_flushed: true,
            own_left: Vec::new(),
            ends: None,
        }
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

    /// Returns whether the head being read is that of a HEAD request.
    pub(crate) fn is_head(&self) -> bool {
        self.guard.is_head()
    }

    /// The stream itself, to read what no parser shall see.
    pub(crate) fn into_inner(self) -> Io {
        self.io
    }

    /// Inspects what was just read into `buf` from `start` on, and cuts it where it must be cut.
    fn inspect(&mut self, buf: &mut ReadBuf<'_>, start: usize) -> io::Result<()> {
        if let Some((frames, since)) = &mut self.frames {
            self.handle.0.reads.set(self.handle.0.reads.get() + 1);
            let heads_before = frames.heads();
            frames.inspect(&buf.filled()[start..]);
            let (is_in_head, is_new_head) = (frames.is_in_head(), heads_before != frames.heads());
            self.handle.enter(if is_in_head { ReadPhase::ReadingHead } else { ReadPhase::Idle }, is_new_head);
            if frames.is_flooded(|| since.elapsed()) {
                self.handle.0.violation.set(Some(FramingViolation::FrameFlood));
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    FramingViolation::FrameFlood.as_str(),
                ));
            }
            return Ok(());
        }
        if self.handle.0.is_transparent.get() {
            return Ok(());
        }
        let (phase_before, heads_before) = (self.guard.phase(), self.guard.heads());
        match self.guard.inspect(&buf.filled()[start..]) {
            Ok(()) => {
                let phase = self.guard.phase();
                let is_new_head = phase_before != phase || heads_before != self.guard.heads();
                self.handle.enter(phase, is_new_head);
                Ok(())
            }
            Err(refusal) => {
                self.handle.0.violation.set(Some(refusal.violation));
                self.handle.0.phase.set(ReadPhase::Idle);
                buf.set_filled(start + refusal.keep_len);
                self.refused = Some(Refused::new(refusal));
                // Something must be said now: an empty read would mean the end of the stream.
                if refusal.keep_len == 0 { self.say_last_words(buf) } else { Ok(()) }
            }
        }
    }

    /// The stream has ended; whether the parser above is not to learn of it yet.
    fn holds_end(&mut self, cx: &mut Context<'_>) -> bool
    where
        Io: AsyncWrite + Unpin,
    {
        let seen = &*self.handle.0;
        let Some(ends) = &mut self.ends else { return false };
        let is_waiting = seen.end.in_flight() > 0
            && seen.phase.get() == ReadPhase::Idle
            && !seen.is_http2.get()
            && !seen.is_transparent.get();
        if is_waiting {
            if seen.is_write_blocked.get() {
                ends.writes();
            }
            ends.hold(&seen.end, &mut self.io, cx, self.is_flushed && self.own_left.is_empty());
        }
        is_waiting
    }

    fn say_last_words(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let Some(refused) = &mut self.refused else { return Ok(()) };
        if refused.part == MessagePart::Body {
            return Err(io::Error::new(io::ErrorKind::InvalidData, refused.violation.as_str()));
        }
        let (now, later) = refused.last_words.split_at(refused.last_words.len().min(buf.remaining()));
        buf.put_slice(now);
        refused.last_words = later;
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

impl Refused {
    fn new(refusal: FramingRefusal) -> Self {
        let last_words: &[u8] = match refusal.violation {
            // Ends the head, so that hyper counts its fields.
            FramingViolation::TooManyFields => b"\r\n\0",
            // The line ends matter: hyper looks at a head it has seen part of only once it is complete.
            _ => b"\0\r\n\r\n",
        };
        Self { part: refusal.part, violation: refusal.violation, last_words, is_answered: false }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.refused.is_some() {
            return Poll::Ready(this.say_last_words(buf));
        }
        if this.handle.is_end_held() {
            return this.handle.0.end.poll_held(cx);
        }
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
        if buf.filled().len() > start {
            let end = &this.handle.0.end;
            this.ends.iter_mut().for_each(|ends| ends.received(end));
        } else if buf.remaining() > 0 && this.holds_end(cx) {
            return this.handle.0.end.poll_held(cx);
        }
        let inspected = this.inspect(buf, start);
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

    /// Writes interim responses where a response may begin. Pending while something of our own is still to be
    /// written.
    fn poll_own(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_flushed && self.handle.0.interims.is_waiting() {
            self.handle.0.interims.take().iter().for_each(|head| write(head, &mut self.own_left));
        }
        while !self.own_left.is_empty() {
            let left = std::mem::take(&mut self.own_left);
            let written = self.poll_write_guarded(cx, &left);
            self.own_left = left;
            self.handle.0.is_write_blocked.set(written.is_pending());
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                bytes => drop(self.own_left.drain(..bytes)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the answer to a refused head where hyper writes its own; `None` where `bytes` are others.
    fn poll_answer(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        let refused = self.refused.as_mut().filter(|refused| refused.part == MessagePart::Head)?;
        let start = find_empty_answer(bytes)?;
        if start > 0 {
            // Responses that are still owed.
            let written = self.poll_write_guarded(cx, &bytes[..start]);
            self.wrote(&written);
            return Some(written);
        }
        if !refused.is_answered {
            refused.is_answered = true;
            self.own_left = answer(refused.violation, self.guard.is_head(), bytes);
        }
        Some(self.poll_own(cx).map_ok(|()| bytes.len()))
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        self.is_flushed = false;
        self.handle.0.is_write_blocked.set(written.is_pending());
        if let (Some((frames, _)), Poll::Ready(Ok(bytes))) = (&mut self.frames, written) {
            frames.sent(*bytes);
        }
    }

    fn poll_write_guarded(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.ends {
            Some(ends) if ends.is_ahead() && !bytes.is_empty() => ends.poll_write(&mut self.io, cx, bytes),
            ends => {
                ends.iter_mut().for_each(EndHolder::writes);
                Pin::new(&mut self.io).poll_write(cx, bytes)
            }
        }
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Guarded<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(cx))?;
        if let Some(answered) = self.poll_answer(cx, bytes) {
            return answered;
        }
        let written = self.poll_write_guarded(cx, bytes);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_own(cx))?;
        if let Some(answered) = slices.first().and_then(|head| self.poll_answer(cx, head)) {
            return answered;
        }
        let written = match self.ends.as_mut() {
            Some(ends) if ends.is_ahead() => {
                let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
                self.poll_write_guarded(cx, first)
            }
            ends => {
                ends.into_iter().for_each(EndHolder::writes);
                Pin::new(&mut self.io).poll_write_vectored(cx, slices)
            }
        };
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes its stream once nothing is left in its own buffer.
        self.is_flushed = true;
        ready!(self.poll_own(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

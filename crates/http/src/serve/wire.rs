//! A client's HTTP/1.1 connection as the task that serves it and the body of its request share it.

use super::incoming_body::{BodySource, RequestBodyError};
use crate::guarded::{GuardHandle, GuardedParts};
use crate::held_end::EndHolder;
use crate::interim::write;
use crate::outbox::Outbox;
use crate::pipe::WritePipe;
use crate::receive::{give_back, read_into, take_content};
use bytes::{Buf, Bytes, BytesMut};
use flashweir_http1::connection::{
    Disposition, Received, Refusal, ServerConnection, ServerEvent, ServerLimits,
};
use flashweir_http1::head::HeadLimits;
use flashweir_http1::write::CONTINUE;
use http_body::Frame;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes of a request's body that are taken in after its answer, so that the connection goes on. Raised:
/// clients waste more of the link; lowered: they connect again.
const DRAIN_BYTES_MAX: u64 = 64 << 10;

/// A connection; see the module.
pub(super) struct Wire<Io> {
    pub(super) inner: RefCell<Inner<Io>>,
    guard: GuardHandle,
}

/// State of the connection. Never borrowed across a call of the service.
pub(super) struct Inner<Io> {
    /// None once the connection has ended here; bodies may outlive it.
    pub(super) io: Option<Io>,
    pub(super) machine: ServerConnection,
    /// Bytes that are not used yet.
    pub(super) received: BytesMut,
    pub(super) outbox: Outbox,
    pub(super) ends: Option<EndHolder>,
    /// Writes pipes, where the stream takes them.
    pub(super) write_pipe: Option<WritePipe<Io>>,
    /// A step of reading the body that was taken ahead of its turn.
    ahead: Option<Result<Received<ServerEvent>, Refusal>>,
    /// Number of the request whose body may be read, 0 for none.
    readable: u64,
    /// The body under way was dropped before its end.
    pub(super) is_body_dropped: bool,
    /// Waits for the body, perhaps in another task.
    body_waker: Option<Waker>,
    has_input_ended: bool,
    head_bytes_max: usize,
}

impl<Io> Wire<Io> {
    /// The connection ends: the stream and what was read of it, and nothing more for a body that is still
    /// read.
    pub(super) fn take_stream(&self) -> Option<(Io, BytesMut)> {
        let inner = &mut *self.inner.borrow_mut();
        inner.readable = 0;
        inner.body_waker.take().into_iter().for_each(Waker::wake);
        Some((inner.io.take()?, std::mem::take(&mut inner.received)))
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Wire<Io> {
    pub(super) fn new(parts: GuardedParts<Io>, head: HeadLimits) -> Self {
        let GuardedParts { io, sniffed, ends, write_pipe, handle: guard } = parts;
        let machine = ServerConnection::new(ServerLimits { head, drain_bytes_max: DRAIN_BYTES_MAX });
        Self {
            inner: RefCell::new(Inner {
                io: Some(io),
                machine,
                received: BytesMut::from(&sniffed[..]),
                outbox: Outbox::default(),
                ends,
                write_pipe,
                ahead: None,
                readable: 0,
                is_body_dropped: false,
                body_waker: None,
                has_input_ended: false,
                head_bytes_max: head.bytes_max,
            }),
            guard,
        }
    }

    /// Writes what is to be written.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.borrow_mut().poll_write(cx, &self.guard)
    }

    /// The same, and what a TLS session still holds.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.inner.borrow_mut();
        ready!(inner.poll_write(cx, &self.guard))?;
        inner.poll_flush(cx)
    }

    pub(super) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.borrow_mut().io()?).poll_shutdown(cx)
    }

    /// Writes the interim responses that have come.
    pub(super) fn send_interims(&self, cx: &mut Context<'_>) -> io::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        inner.gather_interims(&self.guard);
        if !inner.outbox.is_empty() && inner.poll_write(cx, &self.guard)?.is_ready() {
            let _ = inner.poll_flush(cx)?;
        }
        Ok(())
    }

    /// Looks whether the client is still there while its answer is made or sent. Bytes of its next
    /// request are kept, as many as a head may have.
    ///
    /// # Errors
    /// It has gone.
    pub(super) fn watch(&self, cx: &mut Context<'_>) -> io::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        let end = self.guard.end();
        if self.guard.is_end_held() {
            return match end.poll_held(cx) {
                Poll::Ready(broken) => broken,
                Poll::Pending => Ok(()),
            };
        }
        while inner.machine.is_request_read()
            && !inner.has_input_ended
            && inner.received.len() < inner.head_bytes_max
        {
            let Some(io) = &mut inner.io else { return Ok(()) };
            match read_into(io, cx, &mut inner.received) {
                Poll::Pending => {
                    inner.rest();
                    break;
                }
                Poll::Ready(Ok(0)) => {
                    inner.has_input_ended = true;
                    let Some(ends) = &mut inner.ends else {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    };
                    ends.hold(end, io, cx, inner.outbox.is_empty());
                    // Registers the task.
                    let _ = end.poll_held(cx);
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn disposition(&self) -> Disposition {
        self.inner.borrow().machine.disposition()
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Inner<Io> {
    /// The response has ended: the rest of the request's body can be read no more. Bytes of a step that was
    /// taken ahead are behind the machine, and must not be read once more as something else.
    pub(super) fn end_body(&mut self) {
        (self.readable, self.is_body_dropped) = (0, false);
        if let Some(Ok(step)) = self.ahead.take() {
            self.received.advance(step.taken);
        }
        self.body_waker.take().into_iter().for_each(Waker::wake);
    }

    /// A request with a body begins; it is read by this number.
    pub(super) fn begin_body(&mut self, number: u64) {
        (self.readable, self.is_body_dropped) = (number, false);
    }

    /// The first bytes of an answer are about to be gathered; one of them may be sent already.
    pub(super) fn begin_writing(&mut self) {
        if let Some(ends) = &mut self.ends {
            if ends.take_ahead() {
                self.outbox.skip_byte();
            }
            ends.writes();
        }
    }

    /// Takes the interim responses that have come.
    pub(super) fn gather_interims(&mut self, guard: &GuardHandle) {
        let interims = guard.interims();
        if interims.is_waiting() && self.machine.takes_interim() && self.outbox.has_room() {
            self.begin_writing();
            interims.take().iter().for_each(|head| write(head, self.outbox.gathered()));
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.has_input_ended {
            return Poll::Ready(Ok(0));
        }
        let Some(io) = &mut self.io else { return Poll::Ready(Ok(0)) };
        let read = read_into(io, cx, &mut self.received);
        self.has_input_ended = matches!(read, Poll::Ready(Ok(0)));
        read
    }

    /// A connection that waits keeps no buffer.
    pub(super) fn rest(&mut self) {
        if self.received.is_empty() {
            give_back(&mut self.received);
        }
    }

    /// One that stays idle keeps no memory for heads either.
    pub(super) fn release(&mut self) {
        self.machine.release();
        self.outbox.release();
    }

    fn io(&mut self) -> io::Result<&mut Io> {
        self.io.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io()?).poll_flush(cx)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, guard: &GuardHandle) -> Poll<io::Result<()>> {
        let Some(io) = &mut self.io else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        let written = match self.write_pipe {
            None => self.outbox.poll_write(io, cx),
            Some(write_pipe) => self.outbox.poll_write_pipe(io, cx, write_pipe),
        };
        guard.set_write_blocked(written.is_pending());
        written
    }

    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        guard: &GuardHandle,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        if self.machine.expects_continue() && self.machine.takes_interim() && self.outbox.has_room() {
            self.begin_writing();
            self.outbox.gathered().extend_from_slice(CONTINUE);
            self.machine.wrote_continue();
            if self.poll_write(cx, guard).is_ready() {
                let _ = self.poll_flush(cx);
            }
        }
        loop {
            let step = self.ahead.take().unwrap_or_else(|| self.machine.receive(&self.received));
            guard.enter(self.machine.phase(), false);
            let step = step.map_err(|refusal| {
                guard.refuse(refusal.violation);
                RequestBodyError::Framing(refusal.violation)
            })?;
            match step.event {
                Some(ServerEvent::Content(range)) => {
                    let content = take_content(&mut self.received, step.taken, range);
                    // The end often came along, and is known at once then.
                    self.ahead = Some(self.machine.receive(&self.received));
                    guard.enter(self.machine.phase(), false);
                    return Poll::Ready(Some(Ok(Frame::data(content))));
                }
                Some(ServerEvent::Trailers(range)) => {
                    let bytes = take_content(&mut self.received, step.taken, range);
                    let trailers = crate::head_types::map_of(self.machine.trailers(&bytes), &bytes);
                    self.ahead = Some(self.machine.receive(&self.received));
                    return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
                }
                Some(ServerEvent::End) => {
                    self.received.advance(step.taken);
                    self.readable = 0;
                    return Poll::Ready(None);
                }
                _ => self.received.advance(step.taken),
            }
            match self.poll_read(cx) {
                Poll::Pending => {
                    if self.body_waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                        self.body_waker = Some(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => {
                    self.machine.end_input();
                    return Poll::Ready(Some(Err(RequestBodyError::Incomplete)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> BodySource for Wire<Io> {
    fn poll_frame(
        &self,
        number: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        let inner = &mut *self.inner.borrow_mut();
        match inner.readable == number {
            true => inner.poll_body(cx, &self.guard),
            false => Poll::Ready(Some(Err(RequestBodyError::Incomplete))),
        }
    }

    fn has_ended(&self, number: u64) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        let is_end = |step: &mut Result<Received<ServerEvent>, _>| {
            step.as_ref().is_ok_and(|step| step.event == Some(ServerEvent::End))
        };
        let Some(Ok(step)) = inner.ahead.take_if(is_end) else { return false };
        if inner.readable == number {
            inner.received.advance(step.taken);
            inner.readable = 0;
        }
        true
    }

    fn drop_body(&self, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.readable == number {
            (inner.readable, inner.is_body_dropped, inner.body_waker) = (0, true, None);
            // A step that was taken ahead is judged with the rest.
            if let Some(Ok(step)) = inner.ahead.take() {
                inner.received.advance(step.taken);
            }
        }
    }
}

//! One HTTP/1.1 connection to an upstream: a request out and its response in, by the state machine of
//! `flashweir-http1`, within the task of the request.
//!
//! Polling for the response also sends the request: head and first bytes of the body in one write. A
//! response that begins before its request has ended is left to [`early_answer`](super::early_answer).

use super::RequestBody;
use super::connect::UpstreamIo;
use super::deadline::LazyDeadline;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::request_head;
use crate::head::{AnswerHead, ReceivedHead};
use crate::head_types;
use crate::interim::Interims;
use crate::outbox::Outbox;
use crate::pipe::Pipe;
use crate::receive::{give_back, read_into, take_content, take_copy};
use bytes::{Buf, Bytes, BytesMut};
use flashweir_core::limits::{
    INTERIM_RESPONSE_BYTES, INTERIM_RESPONSE_FIELDS, READER_RATE_MIN, UPSTREAM_HEAD_BYTES,
};
use flashweir_http1::body::{BodyFraming, CHUNK_END, ContentFrame};
use flashweir_http1::connection::{
    ClientConnection, ClientEvent, Disposition, Received, ResponseEnd, ResponseFault,
};
use flashweir_http1::head::HeadLimits;
use http::StatusCode;
use http_body::Frame;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use tokio_util::either::Either;

/// Bytes a second that an upload must bring, on the mean since it last did, to begin the time limit of the
/// response again: by less, a drip would hold its server for ever.
const UPLOAD_RATE_MIN: u64 = READER_RATE_MIN;

/// A connection; dropping it closes it.
pub(super) struct Connection<B> {
    /// Index of its upstream.
    index: usize,
    io: UpstreamIo,
    machine: ClientConnection,
    /// Bytes of responses that are not used yet.
    received: BytesMut,
    /// A step of reading that was taken ahead of its turn.
    ahead: Option<Result<Received<ClientEvent>, ResponseFault>>,
    sending: Sending,
    /// Body of the request under way, until that is sent.
    body: Option<B>,
    /// A part of the body was taken.
    is_body_begun: bool,
    /// Bytes of the request on their way.
    outbox: Outbox,
    /// A byte has come since the request under way began.
    has_answer: bool,
    /// Framing of the response under way.
    framing: BodyFraming,
    /// Time limit of the response's head.
    deadline: LazyDeadline,
    /// Bytes of the body that came after the first of the request had gone, since the time limit last began.
    uploaded: u64,
    /// Begin of the time limit, since an upload moved on.
    upload_moved: Option<Instant>,
}

/// Progress of the request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// More of its body is to come.
    Body,
    /// Its last bytes are to be written.
    End,
    /// Written, but a TLS session may still hold some.
    Flush,
    /// All was sent, or no more will be.
    Done,
}

impl<B: RequestBody> Connection<B> {
    /// A new connection to the upstream of this index. Responses have at most `fields_max` fields.
    pub(super) fn new(index: usize, io: UpstreamIo, fields_max: usize) -> Self {
        Self {
            index,
            io,
            machine: ClientConnection::new(HeadLimits { bytes_max: UPSTREAM_HEAD_BYTES, fields_max }),
            received: BytesMut::new(),
            ahead: None,
            sending: Sending::Done,
            body: None,
            is_body_begun: false,
            outbox: Outbox::default(),
            has_answer: false,
            framing: BodyFraming::None,
            deadline: LazyDeadline::default(),
            uploaded: 0,
            upload_moved: None,
        }
    }

    /// Final responses whose heads were read: a connection without any cannot have gone stale.
    pub(super) fn answers(&self) -> u64 {
        self.machine.answers()
    }

    /// A byte has come since the request under way began.
    pub(super) fn has_answer(&self) -> bool {
        self.has_answer
    }

    /// Returns whether the next request may be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.machine.disposition() == Disposition::Ready && self.received.is_empty() && self.ahead.is_none()
    }

    /// Returns whether all of the request was sent, or no more of it will be.
    pub(super) fn is_sent(&self) -> bool {
        self.sending == Sending::Done
    }

    /// Framing of the response under way.
    pub(super) fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// The kernel, or at least the reactor, has seen bytes or an end that no request has asked for.
    pub(super) fn is_readable(&self, asks_kernel: bool) -> bool {
        super::connect::socket_of(&self.io).is_readable(asks_kernel)
    }

    /// Gives up its buffer: for a connection that falls idle.
    pub(super) fn release(&mut self) {
        give_back(&mut self.received);
    }

    /// Ready once the server has ended an idle connection, or sent what was not asked for. What TLS sends for
    /// itself is taken.
    pub(super) fn poll_idle_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0];
        Pin::new(&mut self.io).poll_read(cx, &mut ReadBuf::new(&mut byte)).map(|_| ())
    }

    /// A request begins; its bytes go out when the response is polled for.
    ///
    /// # Errors
    /// A body that is not what its length says.
    pub(super) fn begin(&mut self, head: &ReceivedHead, body: B) -> Result<(), UpstreamError> {
        let start = request_head::start(head, &body);
        if !self.machine.begin(start) {
            return Err(self.reset(io::ErrorKind::NotConnected.into()));
        }
        self.outbox.clear();
        (self.has_answer, self.is_body_begun) = (false, false);
        (self.uploaded, self.upload_moved) = (0, None);
        request_head::write(head, start.body, self.outbox.gathered());
        self.sending = Sending::Body;
        let is_ended = body.is_end_stream();
        self.body = Some(body);
        if is_ended { self.end_request() } else { Ok(()) }
    }

    /// The body of a request of which nothing was sent.
    pub(super) fn take_unsent(&mut self) -> Option<B> {
        if self.outbox.has_written() || self.is_body_begun { None } else { self.body.take() }
    }

    /// [`poll_response`](Self::poll_response) until `deadline`, or until `within` after the upload last moved
    /// on: the server owes no answer to a request that is still coming. None where that is over.
    pub(super) fn poll_response_until(
        &mut self,
        cx: &mut Context<'_>,
        interims: Option<&Interims>,
        (deadline, within): (Instant, Duration),
    ) -> Poll<Option<Result<AnswerHead, UpstreamError>>> {
        match self.poll_response(cx, interims) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => {
                if self.uploaded > 0 {
                    self.follow_upload(deadline, within);
                }
                let deadline = self.upload_moved.map_or(deadline, |moved| moved + within);
                self.deadline.poll(cx, deadline).map(|()| None)
            }
        }
    }

    /// The time limit begins again where enough came since it last did ([`UPLOAD_RATE_MIN`]).
    fn follow_upload(&mut self, deadline: Instant, within: Duration) {
        let now = Instant::now();
        let begun = self.upload_moved.unwrap_or(deadline - within);
        let wanted = now.saturating_duration_since(begun).as_millis() * u128::from(UPLOAD_RATE_MIN) / 1_000;
        if u128::from(self.uploaded) >= wanted {
            (self.uploaded, self.upload_moved) = (0, Some(now));
        }
    }

    /// Sends the request and reads the head of its response; interim ones go to `interims`.
    pub(super) fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        interims: Option<&Interims>,
    ) -> Poll<Result<AnswerHead, UpstreamError>> {
        let _ = self.poll_send(cx)?;
        loop {
            let received = self.machine.receive(&self.received).map_err(|fault| self.malformed(fault))?;
            match received.event {
                Some(ClientEvent::Interim { bytes, status }) => {
                    self.pass_interim(bytes, status, interims);
                    self.received.advance(bytes);
                }
                Some(ClientEvent::Head { bytes, body }) => {
                    // Copied, for the fields may live longer than the buffer should.
                    let bytes = take_copy(&mut self.received, bytes);
                    let head = self.machine.take_head().and_then(|spans| AnswerHead::new(bytes, spans));
                    self.framing = body;
                    return Poll::Ready(
                        head.ok_or_else(|| {
                            UpstreamError::new(UpstreamErrorKind::Malformed, Some(self.index))
                        }),
                    );
                }
                _ => {
                    self.received.advance(received.taken);
                    if ready!(self.poll_read(cx))? == 0 {
                        self.machine.end_input();
                        return Poll::Ready(Err(self.reset(io::ErrorKind::UnexpectedEof.into())));
                    }
                    self.has_answer = true;
                }
            }
        }
    }

    /// The next part of the response's body; none once it has ended.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        loop {
            let step = self.ahead.take().unwrap_or_else(|| self.machine.receive(&self.received));
            let step = step.map_err(|fault| self.malformed(fault))?;
            match step.event {
                Some(ClientEvent::Content(range)) => {
                    let content = take_content(&mut self.received, step.taken, range);
                    // The end often came along, and is known at once then.
                    self.ahead = Some(self.machine.receive(&self.received));
                    return Poll::Ready(Some(Ok(Frame::data(content))));
                }
                Some(ClientEvent::Trailers(range)) => {
                    let bytes = take_content(&mut self.received, step.taken, range);
                    let trailers = head_types::map_of(self.machine.trailers(&bytes), &bytes);
                    self.ahead = Some(self.machine.receive(&self.received));
                    return Poll::Ready(Some(
                        trailers.map(Frame::trailers).ok_or_else(|| {
                            UpstreamError::new(UpstreamErrorKind::Malformed, Some(self.index))
                        }),
                    ));
                }
                Some(ClientEvent::End) => {
                    self.received.advance(step.taken);
                    self.framing = BodyFraming::None;
                    return Poll::Ready(None);
                }
                _ => {
                    self.received.advance(step.taken);
                    match ready!(self.poll_read(cx)) {
                        Ok(0) if self.machine.end_input() == ResponseEnd::Whole => {
                            self.framing = BodyFraming::None;
                            return Poll::Ready(None);
                        }
                        Ok(0) => {
                            return Poll::Ready(Some(Err(self.reset(io::ErrorKind::UnexpectedEof.into()))));
                        }
                        Ok(_) => {}
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }

    /// Content of the response that is still in the socket, or still to come to it, where it can be moved
    /// from there: it is not encrypted, and its length is known.
    pub(super) fn movable(&self) -> Option<u64> {
        let remaining = self.machine.content_remaining().filter(|_| matches!(self.io, Either::Left(_)))?;
        Some(remaining.saturating_sub(self.received.len() as u64))
    }

    /// Moves the next part of the response's body into a pipe that is empty; `None` where it is to be read as
    /// a frame.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<Option<Result<(), UpstreamError>>> {
        let (Either::Left(socket), Some(remaining @ 1..)) = (&self.io, self.machine.content_remaining())
        else {
            return Poll::Ready(None);
        };
        if !self.received.is_empty() {
            return Poll::Ready(None);
        }
        let moved = match ready!(socket.poll_fill(cx, pipe, remaining)) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            moved => moved,
        };
        Poll::Ready(Some(moved.map_err(|error| self.reset(error)).map(|bytes| {
            self.machine.skip_content(bytes as u64);
            self.ahead = Some(self.machine.receive(&[]));
        })))
    }

    /// Returns whether the response's body has ended, without waiting.
    pub(super) fn has_ended(&mut self) -> bool {
        let is_end = |step: &Result<Received<ClientEvent>, _>| {
            step.as_ref().is_ok_and(|step| step.event == Some(ClientEvent::End))
        };
        if let Some(Ok(step)) = self.ahead.take_if(|step| is_end(step)) {
            self.received.advance(step.taken);
            self.framing = BodyFraming::None;
        }
        self.framing == BodyFraming::None
    }

    /// Sends what can be sent of the request; ready when all of it is, or no more will be. The response may
    /// come all the same where the socket takes no more.
    ///
    /// # Errors
    /// The body failed, or the first write did.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        loop {
            match self.sending {
                Sending::Body => {
                    let waits = self.gather_body(cx)?;
                    if self.sending == Sending::Body {
                        ready!(self.poll_write(cx))?;
                        if waits {
                            let _ = Pin::new(&mut self.io).poll_flush(cx);
                            return Poll::Pending;
                        }
                    }
                }
                Sending::End => {
                    ready!(self.poll_write(cx))?;
                    if self.sending == Sending::End {
                        self.sending = Sending::Flush;
                    }
                }
                Sending::Flush => match ready!(Pin::new(&mut self.io).poll_flush(cx)) {
                    Ok(()) | Err(_) => self.stop_sending(),
                },
                Sending::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    /// The stream that a switch of protocols leaves, and the bytes read of it.
    pub(super) fn into_stream(self) -> (UpstreamIo, Bytes) {
        (self.io, self.received.freeze())
    }

    /// All of the request is sent, or no more of it will be; then the connection serves no other.
    fn stop_sending(&mut self) {
        (self.sending, self.body) = (Sending::Done, None);
        self.outbox.clear();
    }

    /// Takes parts of the body while there is room; says whether the next one is waited for.
    fn gather_body(&mut self, cx: &mut Context<'_>) -> Result<bool, UpstreamError> {
        while self.sending == Sending::Body && self.outbox.has_room() {
            match self.poll_body(cx) {
                Poll::Ready(taken) => taken?,
                Poll::Pending => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Takes the next part of the body.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        let frame = self.body.as_mut().map(|body| Pin::new(body).poll_frame(cx));
        let Some(frame) = ready!(frame.unwrap_or(Poll::Ready(None))) else {
            return Poll::Ready(self.end_request());
        };
        self.is_body_begun = true;
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Poll::Ready(Err(self.body_failed(error))),
        };
        match frame.into_data() {
            Ok(mut data) => {
                let length = data.remaining();
                if self.outbox.has_written() {
                    self.uploaded += length as u64;
                }
                match self.machine.frame(length as u64) {
                    Ok(ContentFrame::Plain) => self.outbox.put(b"", data.copy_to_bytes(length), b""),
                    Ok(ContentFrame::Chunk(prefix)) => {
                        self.outbox.put(prefix.as_bytes(), data.copy_to_bytes(length), CHUNK_END);
                    }
                    Ok(ContentFrame::Discard) => {}
                    Err(error) => return Poll::Ready(Err(self.body_failed(error))),
                }
                if self.body.as_ref().is_some_and(B::is_end_stream) {
                    return Poll::Ready(self.end_request());
                }
            }
            Err(frame) => {
                let Ok(trailers) = frame.into_trailers() else { return Poll::Ready(Ok(())) };
                if !self.machine.end_with_trailers() {
                    return Poll::Ready(self.end_request());
                }
                head_types::write_trailers(&trailers, self.outbox.gathered());
                self.sending = Sending::End;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end_request(&mut self) -> Result<(), UpstreamError> {
        let end = self.machine.end().map_err(|error| self.body_failed(error))?;
        self.sending = Sending::End;
        self.outbox.put_end(end);
        Ok(())
    }

    /// Writes what is to be written. Where the socket takes no more after its first byte, no more is
    /// sent, and the response may come all the same.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        match ready!(self.outbox.poll_write(&mut self.io, cx)) {
            Ok(()) => {}
            Err(error) if self.outbox.has_written() => {
                tracing::debug!(%error, "a request could not be sent to its end");
                self.stop_sending();
            }
            Err(error) => return Poll::Ready(Err(self.reset(error))),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, UpstreamError>> {
        let read = read_into(&mut self.io, cx, &mut self.received);
        if read.is_pending() && self.received.is_empty() {
            // A connection that waits keeps no buffer.
            self.release();
        }
        read.map_err(|error| self.reset(error))
    }

    fn pass_interim(&self, bytes: usize, status: u16, interims: Option<&Interims>) {
        let (Some(interims), Ok(status)) = (interims, StatusCode::from_u16(status)) else { return };
        let bytes = Bytes::copy_from_slice(&self.received[..bytes]);
        let fields = self.machine.head(&bytes).map(|head| head.fields());
        let fields = fields.filter(|fields| {
            bytes.len() <= INTERIM_RESPONSE_BYTES && fields.len() <= INTERIM_RESPONSE_FIELDS
        });
        if let Some(fields) = fields.and_then(|fields| head_types::map_of(fields, &bytes)) {
            interims.push(status, &fields);
        }
    }

    fn reset(&self, error: io::Error) -> UpstreamError {
        UpstreamError::with_cause(UpstreamErrorKind::Reset, self.index, error)
    }

    fn malformed(&self, fault: ResponseFault) -> UpstreamError {
        UpstreamError::from_fault(fault, self.index)
    }

    fn body_failed(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> UpstreamError {
        UpstreamError::with_cause(UpstreamErrorKind::RequestBody, self.index, error)
    }
}

//! Serves a client's HTTP/1.1 connection: reads requests, asks the service and writes its responses, one
//! after another, in one task.

use super::counted::InFlight;
use super::incoming_body::{Http1Body, IncomingBody};
use super::wire::Wire;
use super::{Connection, Drive, IncomingRequest, date, response_head};
use crate::guarded::Guarded;
use crate::head::{Answer, IntoAnswer, ReceivedHead};
use crate::head_types;
use crate::pipe::{Pipe, PollPipe};
use bytes::{Buf, Bytes, BytesMut};
use flashweir_http1::FramingViolation;
use flashweir_http1::body::{BodyFraming, CHUNK_END, ContentFrame};
use flashweir_http1::connection::{Disposition, RequestBodyUse, ServerEvent, ServerInputEnd};
use flashweir_http1::head::{HeadLimits, KnownField, Method, RequestHead, elements};
use flashweir_http1::write::write_refusal;
use http_body::{Body, Frame};
use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

type BoxError = Box<dyn StdError + Send + Sync>;

/// One connection; resolves when it has ended, or is to become a tunnel.
pub(super) struct Http1<Io, S, F, B> {
    wire: Rc<Wire<Io>>,
    service: S,
    connection: Connection,
    stage: Stage,
    /// Boxed at the first request, for all until it is idle for some time: it has the room for a request of
    /// several kilobytes.
    answer: Option<Pin<Box<Option<F>>>>,
    /// Boxed once for all requests.
    body: Pin<Box<Option<B>>>,
    /// Gives the body in pipes, where it offers them and the client's stream takes them.
    poll_pipe: Option<PollPipe<B>>,
    /// Failure of the body, returned after what came before it is written.
    failed: Option<BoxError>,
    in_flight: Option<InFlight>,
    is_head: bool,
    takes_trailers: bool,
    is_ending: bool,
}

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next head is read.
    Reading,
    /// The service is at work.
    Answering,
    /// The response is written.
    Sending,
    /// The last bytes are written.
    Closing,
    Tunnel,
}

impl<Io, S, F, A, B, E> Http1<Io, S, F, B>
where
    Io: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Fn(IncomingRequest, &Connection) -> F,
    F: Future<Output = Result<A, E>>,
    A: IntoAnswer<Body = B>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    pub(super) fn new(io: Guarded<Io>, head: HeadLimits, service: S, connection: Connection) -> Self {
        Self {
            wire: Rc::new(Wire::new(io.into_parts(), head)),
            service,
            connection,
            stage: Stage::Reading,
            answer: None,
            body: Box::pin(None),
            poll_pipe: None,
            failed: None,
            in_flight: None,
            is_head: false,
            takes_trailers: false,
            is_ending: false,
        }
    }

    /// The stream, and what was read of it and not used.
    pub(super) fn take_stream(&mut self) -> Option<(Io, BytesMut)> {
        self.answer = None;
        self.body.set(None);
        self.wire.take_stream()
    }

    /// Returns whether it is to become a tunnel.
    pub(super) fn is_tunnel(&self) -> bool {
        self.stage == Stage::Tunnel
    }

    /// Returns whether the head being read is that of a HEAD request.
    pub(super) fn reads_head_request(&self) -> bool {
        self.wire.inner.borrow().received.starts_with(b"HEAD ")
    }

    /// Reads the next head, behind what is left of a body; none where the connection ends.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<IncomingRequest>, BoxError>> {
        let wire = &*self.wire;
        let guard = &self.connection.state.guard;
        let inner = &mut *wire.inner.borrow_mut();
        loop {
            let heads = inner.machine.heads();
            let step = match inner.machine.receive(&inner.received) {
                Ok(step) => step,
                Err(refusal) => {
                    guard.refuse(refusal.violation);
                    self.refuse_head(refusal.violation, refusal.is_head, &mut *inner);
                    return Poll::Ready(Ok(None));
                }
            };
            guard.enter(inner.machine.phase(), heads != inner.machine.heads());
            if let Some(ServerEvent::Head { bytes, body }) = step.event {
                let bytes = crate::receive::take_copy(&mut inner.received, bytes);
                let spans = inner.machine.take_head();
                let head = spans.and_then(|spans| {
                    let head = spans.over(&bytes);
                    self.is_head = head.method() == Method::Head;
                    self.takes_trailers = takes_trailers(&head);
                    ReceivedHead::new(bytes, spans)
                });
                let Some(head) = head else {
                    guard.refuse(FramingViolation::RequestLine);
                    self.refuse_head(FramingViolation::RequestLine, self.is_head, &mut *inner);
                    return Poll::Ready(Ok(None));
                };
                inner.ends.iter_mut().for_each(|ends| ends.begin());
                let number = self.connection.requests() + 1;
                let body = match body {
                    BodyFraming::None => IncomingBody::None,
                    framing => {
                        inner.begin_body(number);
                        IncomingBody::Http1(Http1Body::new(self.wire.clone(), number, framing))
                    }
                };
                return Poll::Ready(Ok(Some(IncomingRequest { head, body })));
            }
            inner.received.advance(step.taken);
            let is_idle = match inner.machine.disposition() {
                Disposition::Close => return Poll::Ready(Ok(None)),
                disposition => disposition == Disposition::Ready,
            };
            if is_idle && self.is_ending {
                return Poll::Ready(Ok(None));
            }
            match inner.poll_read(cx) {
                Poll::Pending => {
                    inner.rest();
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(match inner.machine.end_input() {
                        ServerInputEnd::Truncated(_) => {
                            Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
                        }
                        _ => Ok(None),
                    });
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn refuse_head(&self, violation: FramingViolation, is_head: bool, inner: &mut super::wire::Inner<Io>) {
        inner.begin_writing();
        write_refusal(violation, is_head, date::now().as_bytes(), inner.outbox.gathered());
    }

    /// Writes the head of the response.
    fn begin_response(&mut self, answer: Answer<B>) -> Result<(), BoxError> {
        let Answer { mut head, body, poll_pipe } = answer;
        let inner = &mut *self.wire.inner.borrow_mut();
        self.poll_pipe = poll_pipe.filter(|_| inner.write_pipe.is_some());
        let body_use = match inner.is_body_dropped {
            true => RequestBodyUse::Discard,
            false => RequestBodyUse::Read,
        };
        let is_last = self.is_ending || response_head::is_last(&head);
        let length = response_head::length(&head, self.is_head, &body);
        // Those that came with it go first.
        inner.gather_interims(&self.connection.state.guard);
        let start = inner.machine.respond(head.status().as_u16(), length, body_use, is_last)?;
        inner.begin_writing();
        response_head::write(&mut head, &start, inner.outbox.gathered());
        let end = self.connection.state.guard.end();
        if start.framing == flashweir_http1::write::FramingField::Chunked {
            end.begin_chunks();
        }
        self.body.set(Some(body));
        Ok(())
    }

    /// Writes the response; ready when all of it is written.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            let waits = self.gather_body(cx)?;
            let written = self.wire.poll_write(cx)?;
            if written.is_pending() {
                self.wire.watch(cx)?;
                return Poll::Pending;
            }
            if let Some(error) = self.failed.take() {
                return Poll::Ready(Err(error));
            }
            if self.body.is_none() {
                return self.wire.poll_flush(cx).map_err(Into::into);
            }
            if waits {
                let _ = self.wire.poll_flush(cx)?;
                self.wire.watch(cx)?;
                return Poll::Pending;
            }
        }
    }

    /// Takes parts of the body while there is room; says whether the next one is waited for.
    fn gather_body(&mut self, cx: &mut Context<'_>) -> Result<bool, BoxError> {
        while let Some(mut body) = self.body.as_mut().as_pin_mut()
            && self.wire.inner.borrow().outbox.has_room()
        {
            if body.is_end_stream() {
                self.end_response()?;
                break;
            }
            if let Some(poll_pipe) = self.poll_pipe {
                match poll_pipe(body.as_mut(), cx) {
                    Poll::Pending => return Ok(true),
                    Poll::Ready(None) => {}
                    Poll::Ready(Some(Ok(pipe))) => {
                        self.put_pipe(pipe)?;
                        continue;
                    }
                    Poll::Ready(Some(Err(error))) => {
                        self.fail(error);
                        break;
                    }
                }
            }
            match body.as_mut().poll_frame(cx) {
                Poll::Pending => return Ok(true),
                Poll::Ready(None) => self.end_response()?,
                Poll::Ready(Some(Ok(frame))) => self.put(frame)?,
                Poll::Ready(Some(Err(error))) => self.fail(error.into()),
            }
        }
        Ok(false)
    }

    /// The body has failed. What came before goes out first: a response that breaks off shows that it does.
    fn fail(&mut self, error: BoxError) {
        self.failed = Some(error);
        self.body.set(None);
    }

    fn put_pipe(&mut self, pipe: Pipe) -> Result<(), BoxError> {
        let inner = &mut *self.wire.inner.borrow_mut();
        match inner.machine.frame(pipe.len() as u64)? {
            ContentFrame::Plain => inner.outbox.put_pipe(b"", pipe, b""),
            ContentFrame::Chunk(prefix) => inner.outbox.put_pipe(prefix.as_bytes(), pipe, CHUNK_END),
            ContentFrame::Discard => {}
        }
        Ok(())
    }

    fn put(&mut self, frame: Frame<Bytes>) -> Result<(), BoxError> {
        let mut is_ended = false;
        {
            let inner = &mut *self.wire.inner.borrow_mut();
            match frame.into_data() {
                Ok(content) => match inner.machine.frame(content.len() as u64)? {
                    ContentFrame::Plain => inner.outbox.put(b"", content, b""),
                    ContentFrame::Chunk(prefix) => inner.outbox.put(prefix.as_bytes(), content, CHUNK_END),
                    ContentFrame::Discard => {}
                },
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers()
                        && self.takes_trailers
                        && inner.machine.end_with_trailers()
                    {
                        inner.end_body();
                        head_types::write_trailers(&trailers, inner.outbox.gathered());
                        is_ended = true;
                    }
                }
            }
        }
        if is_ended {
            self.body.set(None);
        }
        Ok(())
    }

    /// The body has ended. It is dropped while the connection is not borrowed: it may hold a request's body.
    fn end_response(&mut self) -> Result<(), BoxError> {
        {
            let inner = &mut *self.wire.inner.borrow_mut();
            let end = inner.machine.end()?;
            inner.outbox.put_end(end);
            inner.end_body();
        }
        self.body.set(None);
        Ok(())
    }

    fn poll_stages(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            match self.stage {
                Stage::Reading => match ready!(self.poll_head(cx))? {
                    None => self.stage = Stage::Closing,
                    Some(request) => {
                        self.in_flight = Some(InFlight::begin(&self.connection));
                        let answer = (self.service)(request, &self.connection);
                        match &mut self.answer {
                            Some(place) => place.set(Some(answer)),
                            None => self.answer = Some(Box::pin(Some(answer))),
                        }
                        self.stage = Stage::Answering;
                    }
                },
                Stage::Answering => {
                    let place = self.answer.as_mut().expect("a request is being answered");
                    let answer = place.as_mut().as_pin_mut().expect("it has not been answered");
                    let Poll::Ready(response) = answer.poll(cx) else {
                        self.wire.send_interims(cx)?;
                        self.wire.watch(cx)?;
                        return Poll::Pending;
                    };
                    place.set(None);
                    self.begin_response(response.map_err(Into::into)?.into_answer())?;
                    self.stage = Stage::Sending;
                }
                Stage::Sending => {
                    ready!(self.poll_send(cx))?;
                    let disposition = self.wire.disposition();
                    self.in_flight = None;
                    self.stage = match disposition {
                        Disposition::Tunnel => Stage::Tunnel,
                        Disposition::Close => Stage::Closing,
                        _ => Stage::Reading,
                    };
                }
                Stage::Closing => {
                    ready!(self.wire.poll_flush(cx))?;
                    return self.wire.poll_shutdown(cx).map_err(Into::into);
                }
                Stage::Tunnel => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<Io, S, F, A, B, E> Future for Http1<Io, S, F, B>
where
    Io: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Fn(IncomingRequest, &Connection) -> F + Unpin,
    F: Future<Output = Result<A, E>>,
    A: IntoAnswer<Body = B>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    type Output = Result<(), BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_stages(cx)
    }
}

impl<Io, S, F, A, B, E> Drive for Http1<Io, S, F, B>
where
    Io: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Fn(IncomingRequest, &Connection) -> F + Unpin,
    F: Future<Output = Result<A, E>>,
    A: IntoAnswer<Body = B>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    E: Into<BoxError>,
{
    type Error = BoxError;

    fn end_gracefully(mut self: Pin<&mut Self>) {
        self.is_ending = true;
    }

    fn release(&mut self) {
        self.answer = None;
        self.wire.inner.borrow_mut().release();
    }
}

impl<Io, S, F, B> Drop for Http1<Io, S, F, B> {
    fn drop(&mut self) {
        // A body that is still held elsewhere does not keep the connection open.
        drop(self.wire.take_stream());
    }
}

/// `TE` lists `trailers` (RFC 9110 §6.5.1).
fn takes_trailers(head: &RequestHead<'_>) -> bool {
    elements(head.fields(), KnownField::Te).any(|element| element.eq_ignore_ascii_case(b"trailers"))
}

//! The server's side of a connection: requests in, responses out, one at a time in their order.

use super::exchange::{Request, response_framing};
use super::server_events::{
    RequestBodyUse, ResponseError, ResponseStart, ServerEvent, ServerInputEnd, ServerLimits,
};
use super::{Disposition, MessagePart, ReadPhase, Received, Refusal};
use crate::body::{BodyFraming, BodyPart, BodyReader, BodyWriter, ContentFrame, LengthError};
use crate::head::{Fields, Method, RequestHead, RequestReader, RequestSpans, SWITCHING_PROTOCOLS, Version};
use crate::write::{ConnectionField, FramingField};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Head,
    Body,
    Drain,
    /// The request has been read; the next one is not before the response has ended.
    Whole,
    Tunnel,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    /// No request has come.
    Idle,
    Owed,
    Body,
    Ended,
}

/// State machine of one client's connection. See [the module](super).
///
/// ```
/// use flashweir_http1::body::BodyFraming;
/// use flashweir_http1::connection::{
///     Disposition, RequestBodyUse, ServerConnection, ServerEvent, ServerLimits,
/// };
/// use flashweir_http1::head::HeadLimits;
/// let head = HeadLimits { bytes_max: 16_384, fields_max: 100 };
/// let mut server = ServerConnection::new(ServerLimits { head, drain_bytes_max: 16_384 });
/// let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// let received = server.receive(bytes).expect("a good request");
/// let head = ServerEvent::Head { bytes: bytes.len(), body: BodyFraming::None };
/// assert_eq!(received.event, Some(head));
/// server.respond(200, Some(0), RequestBodyUse::Read, false).expect("a response is due");
/// server.end().expect("as long as announced");
/// assert_eq!(server.disposition(), Disposition::Ready);
/// ```
#[derive(Debug)]
pub struct ServerConnection {
    limits: ServerLimits,
    reader: RequestReader,
    body: BodyReader,
    writer: BodyWriter,
    read: ReadState,
    write: WriteState,
    request: Request,
    /// The head being read has begun.
    has_begun: bool,
    is_persistent: bool,
    is_switching: bool,
    drained: u64,
    heads: u64,
}

impl ServerConnection {
    /// A new connection. Allocates with the first field.
    #[must_use]
    pub fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            reader: RequestReader::new(limits.head),
            body: BodyReader::new(limits.head),
            writer: BodyWriter::default(),
            read: ReadState::Head,
            write: WriteState::Idle,
            request: Request::NONE,
            has_begun: false,
            is_persistent: true,
            is_switching: false,
            drained: 0,
            heads: 0,
        }
    }

    /// Reads the next bytes. Call again, behind those taken, while it returns an event.
    ///
    /// # Errors
    /// [`Refusal`]; the connection is to be closed, after its answer if there can be one.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received<ServerEvent>, Refusal> {
        match self.read {
            ReadState::Head => self.receive_head(bytes),
            ReadState::Body => self.receive_body(bytes),
            ReadState::Drain => self.drain(bytes),
            ReadState::Whole | ReadState::Tunnel | ReadState::Closed => Ok(Received::nothing()),
        }
    }

    /// Head of the request under way, over the bytes it was read from.
    #[must_use]
    pub fn head<'b>(&'b self, bytes: &'b [u8]) -> Option<RequestHead<'b>> {
        self.reader.head(bytes)
    }

    /// Gives the head of the request under way away.
    #[must_use]
    pub fn take_head(&mut self) -> Option<RequestSpans> {
        self.reader.take()
    }

    /// Trailers of the request under way, over the bytes of their event.
    #[must_use]
    pub fn trailers<'b>(&'b self, bytes: &'b [u8]) -> Fields<'b> {
        self.body.trailers(bytes)
    }

    /// Phase of reading: with [`heads`](Self::heads), what a head's timeout needs. Bytes of the next request
    /// that came before their turn do not count.
    #[must_use]
    pub fn phase(&self) -> ReadPhase {
        match self.read {
            ReadState::Head if self.has_begun => ReadPhase::ReadingHead,
            ReadState::Body | ReadState::Drain => ReadPhase::ReadingBody,
            ReadState::Head | ReadState::Whole | ReadState::Tunnel | ReadState::Closed => ReadPhase::Idle,
        }
    }

    /// Number of heads that have begun: distinguishes one slow head from two quick ones.
    #[must_use]
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// Returns whether the client waits for a 100 before it sends its body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.request.expects_continue
    }

    /// A `100 Continue` is written: the body comes.
    pub fn wrote_continue(&mut self) {
        self.request.expects_continue = false;
    }

    /// Returns whether the request under way has been read to its end, and is not answered yet.
    #[must_use]
    pub fn is_request_read(&self) -> bool {
        self.read == ReadState::Whole
    }

    /// Returns whether an interim response may be written now (RFC 9110 §15.2: not to HTTP/1.0).
    #[must_use]
    pub fn takes_interim(&self) -> bool {
        self.write == WriteState::Owed && self.request.version == Version::Http11
    }

    /// The final response begins. `length` is that of its body, or of the one that an answer to HEAD or a 304
    /// would have; `None` if it is unknown (or, where there is no body, not said). `is_last` closes the
    /// connection after it.
    ///
    /// # Errors
    /// [`ResponseError`]; nothing may be written then.
    pub fn respond(
        &mut self,
        status: u16,
        length: Option<u64>,
        body_use: RequestBodyUse,
        is_last: bool,
    ) -> Result<ResponseStart, ResponseError> {
        if self.write != WriteState::Owed {
            return Err(ResponseError::NotDue);
        }
        let is_connected = self.request.method == Method::Connect && (200..300).contains(&status);
        if status == SWITCHING_PROTOCOLS || is_connected {
            return self.switch(status);
        }
        if status < 200 {
            return Err(ResponseError::Interim);
        }
        self.is_persistent &= !is_last;
        self.choose_rest(body_use);
        let is_http11 = self.request.version == Version::Http11;
        let (framing, sent) = response_framing(&self.request, status, length);
        self.is_persistent &= sent != BodyFraming::UntilClose;
        self.writer.begin(sent);
        self.write = WriteState::Body;
        let connection = match (self.is_persistent, is_http11) {
            (false, _) => ConnectionField::Close,
            (true, false) => ConnectionField::KeepAlive,
            (true, true) => ConnectionField::None,
        };
        Ok(ResponseStart { framing, connection })
    }

    /// Frame of the next `bytes` of the response's content.
    ///
    /// # Errors
    /// [`LengthError::Exceeded`]; the connection is to be closed.
    pub fn frame(&mut self, bytes: u64) -> Result<ContentFrame, LengthError> {
        let framed = self.writer.frame(bytes);
        self.is_persistent &= framed.is_ok();
        framed
    }

    /// The response ends, without trailers: returns the bytes that end it.
    ///
    /// # Errors
    /// [`LengthError::Short`]; the connection is to be closed.
    pub fn end(&mut self) -> Result<&'static [u8], LengthError> {
        let ended = self.writer.end();
        self.is_persistent &= ended.is_ok();
        self.ended();
        ended
    }

    /// The response ends with trailers that the driver writes; false where its framing has none: end it
    /// without.
    pub fn end_with_trailers(&mut self) -> bool {
        let has_trailers = self.writer.end_with_trailers();
        if has_trailers {
            self.ended();
        }
        has_trailers
    }

    /// State of the exchange.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match (self.read, self.write) {
            (ReadState::Tunnel, _) => Disposition::Tunnel,
            (ReadState::Head, WriteState::Idle) if !self.has_begun => Disposition::Ready,
            (ReadState::Drain, WriteState::Ended) => Disposition::Draining,
            (ReadState::Closed, WriteState::Idle | WriteState::Ended) => Disposition::Close,
            _ => Disposition::Busy,
        }
    }

    /// The client has ended its half of the connection. No byte comes any more.
    pub fn end_input(&mut self) -> ServerInputEnd {
        let end = match self.read {
            ReadState::Tunnel => return ServerInputEnd::Tunnel,
            ReadState::Head if self.has_begun => ServerInputEnd::Truncated(MessagePart::Head),
            ReadState::Body => ServerInputEnd::Truncated(MessagePart::Body),
            ReadState::Whole => ServerInputEnd::ResponseOwed,
            ReadState::Drain | ReadState::Closed
                if matches!(self.write, WriteState::Owed | WriteState::Body) =>
            {
                ServerInputEnd::ResponseOwed
            }
            ReadState::Head | ReadState::Drain | ReadState::Closed => ServerInputEnd::Clean,
        };
        self.is_persistent = false;
        if self.read != ReadState::Whole || !self.is_switching {
            self.read = ReadState::Closed;
        }
        end
    }

    /// Releases memory that the next request allocates again: for a connection that stays idle.
    pub fn release(&mut self) {
        if self.disposition() == Disposition::Ready {
            self.reader.release();
            self.body.release();
        }
    }

    fn receive_head(&mut self, bytes: &[u8]) -> Result<Received<ServerEvent>, Refusal> {
        if bytes.is_empty() {
            return Ok(Received::nothing());
        }
        if !self.has_begun {
            (self.has_begun, self.heads) = (true, self.heads + 1);
            self.reader.restart();
        }
        let read = match self.reader.read(bytes) {
            Ok(read) => read,
            Err(violation) => {
                let is_head = self.reader.is_head(bytes);
                (self.read, self.is_persistent) = (ReadState::Closed, false);
                let part = MessagePart::Head;
                return Err(Refusal { violation, part, is_head, is_answerable: true });
            }
        };
        let (Some(length), Some(head)) = (read, self.reader.head(bytes)) else {
            return Ok(Received::nothing());
        };
        let body = head.body();
        self.request = Request::of(&head);
        self.is_persistent = head.is_persistent();
        self.has_begun = false;
        self.write = WriteState::Owed;
        self.read = if body == BodyFraming::None { ReadState::Whole } else { ReadState::Body };
        self.body.begin(body);
        Ok(Received::event(length, ServerEvent::Head { bytes: length, body }))
    }

    fn receive_body(&mut self, bytes: &[u8]) -> Result<Received<ServerEvent>, Refusal> {
        let step = self.body.read(bytes).map_err(|violation| {
            (self.read, self.is_persistent) = (ReadState::Closed, false);
            Refusal {
                violation,
                part: MessagePart::Body,
                is_head: self.request.method == Method::Head,
                is_answerable: self.write == WriteState::Owed,
            }
        })?;
        self.request.expects_continue &= step.taken == 0;
        let event = match step.part {
            None => return Ok(Received { taken: step.taken, event: None }),
            Some(BodyPart::Content(range)) => ServerEvent::Content(range),
            Some(BodyPart::Trailers(range)) => ServerEvent::Trailers(range),
            Some(BodyPart::End) => {
                self.request_ended();
                ServerEvent::End
            }
        };
        Ok(Received::event(step.taken, event))
    }

    /// Takes in the rest of a body, up to the bound.
    fn drain(&mut self, bytes: &[u8]) -> Result<Received<ServerEvent>, Refusal> {
        let mut taken = 0;
        while self.read == ReadState::Drain {
            let Ok(step) = self.body.read(&bytes[taken..]) else {
                // The body is dropped: a fault in it ends the connection, and is reported by nothing.
                self.stop_reading();
                break;
            };
            taken += step.taken;
            self.drained += step.taken as u64;
            match step.part {
                Some(BodyPart::End) => self.request_ended(),
                _ if self.drained > self.limits.drain_bytes_max => self.stop_reading(),
                None => break,
                Some(_) => {}
            }
        }
        Ok(Received { taken, event: None })
    }

    fn stop_reading(&mut self) {
        (self.read, self.is_persistent) = (ReadState::Closed, false);
    }

    /// A 101, or a 2xx to CONNECT: a tunnel, once the request has been read.
    fn switch(&mut self, status: u16) -> Result<ResponseStart, ResponseError> {
        let connection = match status {
            SWITCHING_PROTOCOLS if !self.request.wants_upgrade => return Err(ResponseError::NoUpgrade),
            SWITCHING_PROTOCOLS => ConnectionField::Upgrade,
            _ => ConnectionField::None,
        };
        self.is_switching = true;
        self.writer.begin(BodyFraming::None);
        self.write = WriteState::Body;
        Ok(ResponseStart { framing: FramingField::None, connection })
    }

    /// Decides on the rest of a body that is not wanted: taken in where it is known to be small and is on its
    /// way; else the connection ends with the response. A client that waits for a 100 sends nothing or all of
    /// it (RFC 9110 §10.1.1), and which of the two is unknown.
    fn choose_rest(&mut self, body_use: RequestBodyUse) {
        if self.read != ReadState::Body {
            return;
        }
        if self.request.expects_continue {
            self.is_persistent = false;
        } else if body_use == RequestBodyUse::Read {
            return;
        }
        let is_small = self.body.remaining().is_some_and(|bytes| bytes <= self.limits.drain_bytes_max);
        if self.is_persistent && is_small {
            self.begin_drain();
        } else if body_use == RequestBodyUse::Discard {
            self.stop_reading();
        }
    }

    fn begin_drain(&mut self) {
        (self.read, self.drained) = (ReadState::Drain, 0);
    }

    /// The request's body has ended.
    fn request_ended(&mut self) {
        self.read = ReadState::Whole;
        if self.write == WriteState::Ended {
            self.exchange_ended();
        }
    }

    /// The response has ended.
    fn ended(&mut self) {
        if self.write != WriteState::Body {
            return;
        }
        self.write = WriteState::Ended;
        match self.read {
            ReadState::Whole => self.exchange_ended(),
            ReadState::Body if self.is_switching => {}
            ReadState::Body if self.is_persistent => self.begin_drain(),
            ReadState::Body | ReadState::Drain if !self.is_persistent => self.stop_reading(),
            _ => {}
        }
    }

    /// Request and response have ended.
    fn exchange_ended(&mut self) {
        if self.is_switching {
            self.read = ReadState::Tunnel;
        } else if self.is_persistent {
            (self.read, self.write) = (ReadState::Head, WriteState::Idle);
        } else {
            self.stop_reading();
        }
    }
}

//! The client's side of a connection: one request out, its responses in, then the next.

use super::{Disposition, ReadPhase, Received};
use crate::body::{BodyFraming, BodyPart, BodyReader, BodyWriter, ContentFrame, LengthError};
use crate::head::{
    Fields, HeadLimits, Method, ResponseHead, ResponseReader, ResponseSpans, ResponseViolation,
    SWITCHING_PROTOCOLS,
};
use crate::violation::FramingViolation;
use core::ops::Range;

/// Interim responses to one request, at most; a server that sends more never answers.
const INTERIMS_MAX: u32 = 100;

/// Facts of a request that its exchange depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestStart {
    /// Its method: a HEAD's answer has no content.
    pub method: Method,
    /// Framing of its body as it is sent; a request has no body up to the end of the connection.
    pub body: BodyFraming,
    /// It asks for an upgrade, so 101 may answer it.
    pub wants_upgrade: bool,
    /// It says `Connection: close`.
    pub is_last: bool,
}

/// Event of the client's side. Places are relative to the bytes of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Head of an interim response (1xx but 101) of this many bytes; [`ClientConnection::head`] shows it.
    Interim {
        /// Its bytes, from the first.
        bytes: usize,
        /// Its status: 100 asks for a body that waits.
        status: u16,
    },
    /// Head of the final response, or a 101. [`Self::End`] follows if it has a body.
    Head {
        /// Its bytes, from the first.
        bytes: usize,
        /// Framing of its body.
        body: BodyFraming,
    },
    /// Content of its body.
    Content(Range<usize>),
    /// Its trailers; [`ClientConnection::trailers`] shows them over these bytes.
    Trailers(Range<usize>),
    /// End of its body.
    End,
}

/// Response that cannot be used; the connection is to be closed, and a client that has got nothing of it yet
/// gets 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseFault {
    /// A head that is refused.
    #[error("{0}")]
    Head(ResponseViolation),
    /// Chunk framing or trailers that are refused.
    #[error("{0}")]
    Body(FramingViolation),
    /// Bytes although no request waits for an answer.
    #[error("bytes that answer no request")]
    Unsolicited,
    /// A 101 to a request that did not ask for an upgrade (RFC 9110 §7.8).
    #[error("a switch of protocols that was not asked for")]
    UnrequestedSwitch,
    /// More interim responses than are read.
    #[error("too many interim responses")]
    Interims,
}

/// Meaning of the end of the server's half of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEnd {
    /// Between exchanges.
    Clean,
    /// End of a body up to the end of the connection: the response is whole.
    Whole,
    /// Before the first byte of an answer: a request that may be repeated can be.
    Unanswered,
    /// Within the answer: interim responses came, or a part of a head or body.
    Truncated,
    /// In a tunnel: pass it on.
    Tunnel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    /// No request is under way.
    Idle,
    Head,
    Body,
    /// The response has ended, the request has not.
    Whole,
    Tunnel,
    Closed,
}

/// State machine of one connection to a server. See [the module](super).
///
/// ```
/// use flashweir_http1::body::BodyFraming;
/// use flashweir_http1::connection::{ClientConnection, ClientEvent, Disposition, RequestStart};
/// use flashweir_http1::head::{HeadLimits, Method};
/// let mut client = ClientConnection::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// let (method, body) = (Method::Get, BodyFraming::None);
/// assert!(client.begin(RequestStart { method, body, wants_upgrade: false, is_last: false }));
/// client.end().expect("no body");
/// let bytes = b"HTTP/1.1 204 No Content\r\n\r\n";
/// let received = client.receive(bytes).expect("a good response");
/// assert_eq!(received.event, Some(ClientEvent::Head { bytes: bytes.len(), body: BodyFraming::None }));
/// assert_eq!(client.disposition(), Disposition::Ready);
/// ```
#[derive(Debug)]
pub struct ClientConnection {
    reader: ResponseReader,
    body: BodyReader,
    writer: BodyWriter,
    read: ReadState,
    request: RequestStart,
    /// A byte of the head being read has come.
    has_begun: bool,
    is_persistent: bool,
    interims: u32,
    answers: u64,
}

impl ClientConnection {
    /// A new connection; `limits` bound heads and trailers of responses. Allocates with the first field.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            reader: ResponseReader::new(limits),
            body: BodyReader::new(limits),
            writer: BodyWriter::default(),
            read: ReadState::Idle,
            request: RequestStart {
                method: Method::Other,
                body: BodyFraming::None,
                wants_upgrade: false,
                is_last: false,
            },
            has_begun: false,
            is_persistent: true,
            interims: 0,
            answers: 0,
        }
    }

    /// A request begins: its head is written. False where the connection is not [`Disposition::Ready`]; then
    /// nothing may be written.
    #[must_use]
    pub fn begin(&mut self, request: RequestStart) -> bool {
        let is_ready = self.disposition() == Disposition::Ready;
        if is_ready {
            self.request = request;
            self.writer.begin(request.body);
            (self.read, self.has_begun, self.interims) = (ReadState::Head, false, 0);
            self.is_persistent = !request.is_last && request.body != BodyFraming::UntilClose;
        }
        is_ready
    }

    /// Frame of the next `bytes` of the request's content.
    ///
    /// # Errors
    /// [`LengthError::Exceeded`]; the connection is to be closed.
    pub fn frame(&mut self, bytes: u64) -> Result<ContentFrame, LengthError> {
        let framed = self.writer.frame(bytes);
        self.is_persistent &= framed.is_ok();
        framed
    }

    /// The request ends, without trailers: returns the bytes that end it. Of a request without a body as
    /// well.
    ///
    /// # Errors
    /// [`LengthError::Short`]; the connection is to be closed.
    pub fn end(&mut self) -> Result<&'static [u8], LengthError> {
        let ended = self.writer.end();
        self.is_persistent &= ended.is_ok();
        self.request_ended();
        ended
    }

    /// The request ends with trailers that the driver writes; false where its framing has none: end it
    /// without.
    pub fn end_with_trailers(&mut self) -> bool {
        let has_trailers = self.writer.end_with_trailers();
        if has_trailers {
            self.request_ended();
        }
        has_trailers
    }

    /// Reads the next bytes. Call again, behind those taken, while it returns an event.
    ///
    /// # Errors
    /// [`ResponseFault`]; the connection is to be closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received<ClientEvent>, ResponseFault> {
        let received = match self.read {
            ReadState::Head => self.receive_head(bytes),
            ReadState::Body => self.receive_body(bytes),
            ReadState::Idle | ReadState::Whole if !bytes.is_empty() => Err(ResponseFault::Unsolicited),
            ReadState::Idle | ReadState::Whole | ReadState::Tunnel | ReadState::Closed => {
                Ok(Received::nothing())
            }
        };
        if received.is_err() {
            (self.read, self.is_persistent) = (ReadState::Closed, false);
        }
        received
    }

    /// Head that was read last, over the bytes it was read from.
    #[must_use]
    pub fn head<'b>(&'b self, bytes: &'b [u8]) -> Option<ResponseHead<'b>> {
        self.reader.head(bytes)
    }

    /// Gives the head that was read last away.
    #[must_use]
    pub fn take_head(&mut self) -> Option<ResponseSpans> {
        self.reader.take()
    }

    /// Trailers that were read last, over the bytes of their event.
    #[must_use]
    pub fn trailers<'b>(&'b self, bytes: &'b [u8]) -> Fields<'b> {
        self.body.trailers(bytes)
    }

    /// Content of the response's body that is still to come, if its length is known.
    #[must_use]
    pub fn content_remaining(&self) -> Option<u64> {
        if self.read == ReadState::Body { self.body.remaining() } else { None }
    }

    /// Counts content that went another way than through [`receive`](Self::receive), which comes next: never
    /// more than [remains](Self::content_remaining).
    pub fn skip_content(&mut self, bytes: u64) {
        self.body.skip(bytes);
    }

    /// Phase of reading; [`ReadPhase::Idle`] also while no byte of an answer has come.
    #[must_use]
    pub fn phase(&self) -> ReadPhase {
        match self.read {
            ReadState::Head if self.has_begun => ReadPhase::ReadingHead,
            ReadState::Body => ReadPhase::ReadingBody,
            _ => ReadPhase::Idle,
        }
    }

    /// Number of final responses whose heads have been read: a connection with none cannot have gone stale.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// State of the exchange. A response that ended before its request leaves it [`Disposition::Busy`] until
    /// the request is ended or the connection dropped.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self.read {
            ReadState::Idle => Disposition::Ready,
            ReadState::Head | ReadState::Body | ReadState::Whole => Disposition::Busy,
            ReadState::Tunnel => Disposition::Tunnel,
            ReadState::Closed => Disposition::Close,
        }
    }

    /// Returns whether the response has ended: the rest of the request need not be sent, but without it the
    /// connection cannot be used again (RFC 9112 §9.3).
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.read == ReadState::Whole
    }

    /// The server has ended its half of the connection. No byte comes any more.
    pub fn end_input(&mut self) -> ResponseEnd {
        let end = match self.read {
            ReadState::Tunnel => return ResponseEnd::Tunnel,
            ReadState::Idle | ReadState::Whole | ReadState::Closed => ResponseEnd::Clean,
            ReadState::Head if self.has_begun || self.interims > 0 => ResponseEnd::Truncated,
            ReadState::Head => ResponseEnd::Unanswered,
            ReadState::Body if self.body.finish() => ResponseEnd::Whole,
            ReadState::Body => ResponseEnd::Truncated,
        };
        (self.read, self.is_persistent) = (ReadState::Closed, false);
        end
    }

    /// Releases memory that the next response allocates again: for a connection that stays idle.
    pub fn release(&mut self) {
        if self.read == ReadState::Idle {
            self.reader.release();
            self.body.release();
        }
    }

    fn receive_head(&mut self, bytes: &[u8]) -> Result<Received<ClientEvent>, ResponseFault> {
        if bytes.is_empty() {
            return Ok(Received::nothing());
        }
        if !self.has_begun {
            self.has_begun = true;
            self.reader.restart();
        }
        let read = self.reader.read(bytes).map_err(ResponseFault::Head)?;
        let (Some(length), Some(head)) = (read, self.reader.head(bytes)) else {
            return Ok(Received::nothing());
        };
        self.has_begun = false;
        if head.is_interim() {
            self.interims += 1;
            if self.interims > INTERIMS_MAX {
                return Err(ResponseFault::Interims);
            }
            return Ok(Received::event(
                length,
                ClientEvent::Interim { bytes: length, status: head.status() },
            ));
        }
        if head.status() == SWITCHING_PROTOCOLS && !self.request.wants_upgrade {
            return Err(ResponseFault::UnrequestedSwitch);
        }
        let body = head.body(self.request.method);
        // A body up to the end of the connection ends with `end_input` only.
        self.is_persistent &= head.is_persistent();
        self.answers += 1;
        self.body.begin(body);
        match body {
            BodyFraming::Tunnel => self.read = ReadState::Tunnel,
            BodyFraming::None => self.response_ended(),
            _ => self.read = ReadState::Body,
        }
        Ok(Received::event(length, ClientEvent::Head { bytes: length, body }))
    }

    fn receive_body(&mut self, bytes: &[u8]) -> Result<Received<ClientEvent>, ResponseFault> {
        let step = self.body.read(bytes).map_err(ResponseFault::Body)?;
        let event = match step.part {
            None => return Ok(Received { taken: step.taken, event: None }),
            Some(BodyPart::Content(range)) => ClientEvent::Content(range),
            Some(BodyPart::Trailers(range)) => ClientEvent::Trailers(range),
            Some(BodyPart::End) => {
                self.response_ended();
                ClientEvent::End
            }
        };
        Ok(Received::event(step.taken, event))
    }

    fn response_ended(&mut self) {
        self.read = ReadState::Whole;
        if self.writer.is_ended() {
            self.exchange_ended();
        }
    }

    fn request_ended(&mut self) {
        if self.read == ReadState::Whole {
            self.exchange_ended();
        }
    }

    fn exchange_ended(&mut self) {
        self.read = if self.is_persistent { ReadState::Idle } else { ReadState::Closed };
    }
}

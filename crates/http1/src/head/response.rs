//! Reads the head of a response: strict in what frames it, tolerant of the reason phrase and, as HTTP clients
//! are, of lines that end in LF alone (RFC 9112 §2.2).
//!
//! Nothing can be smuggled past a head that this hop writes itself, so an old server's line ends are
//! accepted, and a length beside chunks is forgotten (RFC 9112 §6.3); lengths that disagree and folded lines
//! (§5.2) leave open where the response ends, and are refused: the client gets 502.

use super::body_framing::{BodyFraming, NO_CONTENT, SWITCHING_PROTOCOLS};
use super::connection_options::ConnectionOptions;
use super::cursor::LineCursor;
use super::field::{FieldTable, Fields};
use super::framing::Framing;
use super::limits::HeadLimits;
use super::line;
use super::request_line::{Method, Version};
use super::status_line::{StatusLine, read_status_line};
use crate::violation::FramingViolation;
use core::mem;
use flashweir_core::limits::EMPTY_LINES_BEFORE_REQUEST;

/// Reason for which the head of a response is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseViolation {
    /// The first line is not `HTTP/1.x SP status [SP reason]`.
    #[error("status_line")]
    StatusLine,
    /// A rule that requests have as well.
    #[error("{0}")]
    Framing(FramingViolation),
}

impl From<FramingViolation> for ResponseViolation {
    fn from(violation: FramingViolation) -> Self {
        Self::Framing(violation)
    }
}

/// Reader of the responses of one connection, one head after another; used as a
/// [`RequestReader`](super::RequestReader) is.
///
/// ```
/// use flashweir_http1::body::BodyFraming;
/// use flashweir_http1::head::{HeadLimits, Method, ResponseReader};
/// let mut reader = ResponseReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// assert_eq!(reader.read(bytes), Ok(Some(bytes.len() - 5)));
/// let head = reader.head(bytes).expect("a whole head");
/// assert_eq!((head.status(), head.body(Method::Get)), (200, BodyFraming::Length(5)));
/// assert_eq!(head.body(Method::Head), BodyFraming::None);
/// ```
#[derive(Debug)]
pub struct ResponseReader {
    limits: HeadLimits,
    cursor: LineCursor,
    has_line: bool,
    empty_lines: usize,
    spans: ResponseSpans,
    is_whole: bool,
}

/// Head of a response as places in its bytes. 20 bytes for each field.
#[derive(Debug)]
pub struct ResponseSpans {
    line: StatusLine,
    framing: Framing,
    options: ConnectionOptions,
    fields: FieldTable,
}

impl Default for ResponseSpans {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseSpans {
    const fn new() -> Self {
        Self {
            line: StatusLine::NONE,
            framing: Framing::NONE,
            options: ConnectionOptions::NONE,
            fields: FieldTable::NONE,
        }
    }

    /// The head, over the bytes it was read from; of others it says nothing sensible.
    #[must_use]
    #[inline]
    pub fn over<'b>(&'b self, bytes: &'b [u8]) -> ResponseHead<'b> {
        ResponseHead { spans: self, bytes }
    }
}

impl ResponseReader {
    /// A reader for a new connection. Allocates with the first field.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            cursor: LineCursor::default(),
            has_line: false,
            empty_lines: 0,
            spans: ResponseSpans::new(),
            is_whole: false,
        }
    }

    /// Forgets the last head; the next call of [`read`](Self::read) begins another.
    pub fn restart(&mut self) {
        self.cursor = LineCursor::default();
        self.has_line = false;
        self.empty_lines = 0;
        self.spans.framing = Framing::NONE;
        self.spans.fields.clear();
        self.is_whole = false;
    }

    /// Forgets the last head and its memory.
    pub fn release(&mut self) {
        self.restart();
        self.spans.fields.release();
    }

    /// Reads on: `bytes` are all that have come since the head's first byte. Returns the head's length once
    /// it is whole.
    ///
    /// # Errors
    /// The first rule that a line breaks, in the order of the lines.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, ResponseViolation> {
        let within = self.limits.within(bytes);
        let is_read = self.read_status_line(within)? && (self.is_whole || self.read_fields(within)?);
        match is_read {
            true => Ok(Some(self.cursor.at())),
            false if within.len() >= self.limits.bytes_max => Err(FramingViolation::HeadTooLarge.into()),
            false => Ok(None),
        }
    }

    /// Head that was read last, of the same bytes.
    #[must_use]
    pub fn head<'b>(&'b self, bytes: &'b [u8]) -> Option<ResponseHead<'b>> {
        self.is_whole.then(|| self.spans.over(bytes))
    }

    /// Gives the head that was read last away, with the memory of its fields; the next call of
    /// [`read`](Self::read) begins another.
    #[must_use]
    pub fn take(&mut self) -> Option<ResponseSpans> {
        if !self.is_whole {
            return None;
        }
        let spans = mem::take(&mut self.spans);
        self.restart();
        Some(spans)
    }

    /// Reads the status line and the empty lines before it; false until it has come.
    fn read_status_line(&mut self, bytes: &[u8]) -> Result<bool, ResponseViolation> {
        while !self.has_line {
            let Some(line) = self.cursor.take_line(bytes) else { return Ok(false) };
            if line.end > line.start {
                let read = read_status_line(bytes, line.start, line.end);
                self.spans.line = read.ok_or(ResponseViolation::StatusLine)?;
                self.has_line = true;
                return Ok(true);
            }
            self.empty_lines += 1;
            if self.empty_lines > EMPTY_LINES_BEFORE_REQUEST {
                return Err(ResponseViolation::StatusLine);
            }
        }
        Ok(true)
    }

    /// Reads field lines up to the head's end; false until that has come.
    fn read_fields(&mut self, bytes: &[u8]) -> Result<bool, FramingViolation> {
        loop {
            let Self { spans: ResponseSpans { framing, fields, .. }, cursor, limits, .. } = self;
            let take = |known, value: &[u8]| framing.take_of_response(known, value);
            line::read_ordinary_lines(bytes, cursor, (fields, limits.fields_max), take)?;
            let Some(line) = cursor.take_line(bytes) else { return Ok(false) };
            if line.end == line.start {
                self.end(bytes)?;
                return Ok(true);
            }
            let span = line::judge_line_of_response(bytes, line.start, line.end)?;
            framing.take_of_response(span.known, span.value.of(bytes))?;
            fields.push(span);
            if fields.len() > limits.fields_max {
                return Err(FramingViolation::TooManyFields);
            }
        }
    }

    /// Judges the head as a whole (RFC 9112 §6.1, §6.3).
    fn end(&mut self, bytes: &[u8]) -> Result<(), FramingViolation> {
        let ResponseSpans { line, framing, fields, options } = &mut self.spans;
        let is_http11 = line.version == Version::Http11;
        if framing.is_chunked {
            if !is_http11 {
                return Err(FramingViolation::TransferEncoding);
            }
            // Chunks override a length; this hop passes none on.
            framing.content_length = None;
        }
        *options = ConnectionOptions::of(Fields::new(bytes, fields))?;
        self.is_whole = true;
        Ok(())
    }
}

/// View of a whole response head, over the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'b> {
    spans: &'b ResponseSpans,
    bytes: &'b [u8],
}

impl<'b> ResponseHead<'b> {
    /// Status, 100 to 999.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.spans.line.status
    }

    /// Returns whether another response to the same request follows (1xx but 101).
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.spans.line.status < 200 && self.spans.line.status != SWITCHING_PROTOCOLS
    }

    /// Reason phrase as it was sent; text for people, may be empty.
    #[must_use]
    pub fn reason(&self) -> &'b [u8] {
        self.spans.line.reason.of(self.bytes)
    }

    /// Version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.spans.line.version
    }

    /// Fields in their order.
    #[must_use]
    pub fn fields(&self) -> Fields<'b> {
        Fields::new(self.bytes, &self.spans.fields)
    }

    /// Framing of the body of an answer to a request with this method (RFC 9112 §6.3).
    #[must_use]
    pub fn body(&self, method: Method) -> BodyFraming {
        let Framing { is_chunked, content_length, .. } = self.spans.framing;
        BodyFraming::of_response(method, self.spans.line.status, is_chunked, content_length)
    }

    /// Length that all `Content-Length` fields agree on; of an answer to HEAD, and of a 304, that of the body
    /// that is not sent (RFC 9110 §8.6). Of 1xx and 204, which may have none, `None`.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.spans
            .framing
            .content_length
            .filter(|_| self.spans.line.status >= 200 && self.spans.line.status != NO_CONTENT)
    }

    /// Options of `Connection`.
    #[must_use]
    pub fn connection(&self) -> ConnectionOptions {
        self.spans.options
    }

    /// Returns whether the connection may go on after this response (RFC 9112 §9.3) as far as its
    /// head says: a body up to the end of the connection ends it.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.spans.options.is_persistent(self.spans.line.version)
    }
}

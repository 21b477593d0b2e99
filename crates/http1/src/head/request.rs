//! Reads the head of a request, once, by the strict rules: what two readers could take for two different
//! requests is refused (RFC 9112 §11.2).

use super::body_framing::BodyFraming;
use super::connection_options::ConnectionOptions;
use super::cursor::LineCursor;
use super::field::{FieldTable, Fields};
use super::framing::Framing;
use super::known::KnownField;
use super::limits::HeadLimits;
use super::line;
use super::request_line::{self, Method, RequestLine, Version};
use super::target::TargetForm;
use crate::violation::FramingViolation;
use core::mem;
use flashweir_core::limits::EMPTY_LINES_BEFORE_REQUEST;

/// Reader of the requests of one connection, one head after another.
///
/// It is given the bytes from the head's first on, again with each piece that comes, and keeps places in them
/// only: the caller keeps the bytes where they are until the head has been used.
///
/// Cost: some 270 instructions for each field of 40 bytes (`examples/instructions.rs`); a head that comes in
/// pieces is searched for line ends once more. Memory: 20 bytes for each field.
///
/// ```
/// use flashweir_http1::head::{HeadLimits, KnownField, Method, RequestReader};
/// let mut reader = RequestReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// assert_eq!(reader.read(b"GET /a HTTP/1.1\r\nHost: exa"), Ok(None));
/// let bytes = b"GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n";
/// assert_eq!(reader.read(bytes), Ok(Some(bytes.len())));
/// let head = reader.head(bytes).expect("a whole head");
/// assert_eq!((head.method(), head.target()), (Method::Get, &b"/a"[..]));
/// assert_eq!(head.fields().get(KnownField::Host), Some(&b"example.org"[..]));
/// ```
#[derive(Debug)]
pub struct RequestReader {
    limits: HeadLimits,
    cursor: LineCursor,
    has_line: bool,
    empty_lines: usize,
    spans: RequestSpans,
    is_whole: bool,
}

/// Head of a request as places in its bytes. 20 bytes for each field.
#[derive(Debug)]
pub struct RequestSpans {
    line: RequestLine,
    framing: Framing,
    options: ConnectionOptions,
    fields: FieldTable,
}

impl Default for RequestSpans {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestSpans {
    const fn new() -> Self {
        Self {
            line: RequestLine::NONE,
            framing: Framing::NONE,
            options: ConnectionOptions::NONE,
            fields: FieldTable::NONE,
        }
    }

    /// The head, over the bytes it was read from; of others it says nothing sensible.
    #[must_use]
    #[inline]
    pub fn over<'b>(&'b self, bytes: &'b [u8]) -> RequestHead<'b> {
        RequestHead { spans: self, bytes }
    }
}

impl RequestReader {
    /// A reader for a new connection. Allocates with the first field.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            cursor: LineCursor::default(),
            has_line: false,
            empty_lines: 0,
            spans: RequestSpans::new(),
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
    /// it is whole; [`head`](Self::head) shows it then.
    ///
    /// # Errors
    /// The first rule that a line breaks, in the order of the lines. Framing is lost for good.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, FramingViolation> {
        let within = self.limits.within(bytes);
        if !self.has_line && !self.read_request_line(within)? {
            return self.wait(within);
        }
        if !self.is_whole && !self.read_fields(within)? {
            return self.wait(within);
        }
        Ok(Some(self.cursor.at()))
    }

    /// Head that was read last, of the same bytes.
    #[must_use]
    pub fn head<'b>(&'b self, bytes: &'b [u8]) -> Option<RequestHead<'b>> {
        self.is_whole.then(|| self.spans.over(bytes))
    }

    /// Gives the head that was read last away, with the memory of its fields; the next call of
    /// [`read`](Self::read) begins another.
    #[must_use]
    pub fn take(&mut self) -> Option<RequestSpans> {
        if !self.is_whole {
            return None;
        }
        let spans = mem::take(&mut self.spans);
        self.restart();
        Some(spans)
    }

    /// Returns whether the head being read, whole, partial or refused, has the method HEAD: its answer has
    /// no content (RFC 9110 §9.3.2).
    #[must_use]
    pub fn is_head(&self, bytes: &[u8]) -> bool {
        match self.has_line {
            true => self.spans.line.method == Method::Head,
            false => {
                let after_line_ends = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(0);
                bytes[after_line_ends..].starts_with(b"HEAD ")
            }
        }
    }

    /// More must come: refused where it could not come within the limit.
    fn wait(&self, within: &[u8]) -> Result<Option<usize>, FramingViolation> {
        if within.len() >= self.limits.bytes_max { Err(FramingViolation::HeadTooLarge) } else { Ok(None) }
    }

    /// Reads the request line and the empty lines before it; false until it has come.
    fn read_request_line(&mut self, bytes: &[u8]) -> Result<bool, FramingViolation> {
        loop {
            if self.cursor.is_fresh()
                && let Some((line, next)) = request_line::read_ordinary(bytes, self.cursor.at())
            {
                (self.spans.line, self.has_line) = (line, true);
                self.cursor.go_to(next);
                return Ok(true);
            }
            let Some(line) = self.cursor.take_line(bytes) else { return Ok(false) };
            if line.is_bare {
                return Err(FramingViolation::BareLf);
            }
            if line.end > line.start {
                self.spans.line = request_line::judge_request_line(bytes, line.start, line.end)?;
                self.has_line = true;
                return Ok(true);
            }
            self.empty_lines += 1;
            if self.empty_lines > EMPTY_LINES_BEFORE_REQUEST {
                return Err(FramingViolation::RequestLine);
            }
        }
    }

    /// Reads field lines up to the head's end; false until that has come.
    fn read_fields(&mut self, bytes: &[u8]) -> Result<bool, FramingViolation> {
        loop {
            let Self { spans: RequestSpans { framing, fields, .. }, cursor, limits, .. } = self;
            let take = |known, value: &[u8]| framing.take_of_request(known, value);
            line::read_ordinary_lines(bytes, cursor, (fields, limits.fields_max), take)?;
            let Some(line) = cursor.take_line(bytes) else { return Ok(false) };
            if line.is_bare {
                return Err(FramingViolation::BareLf);
            }
            if line.end == line.start {
                self.end(bytes)?;
                return Ok(true);
            }
            let span = line::judge_line(bytes, line.start, line.end)?;
            framing.take_of_request(span.known, span.value.of(bytes))?;
            fields.push(span);
            if fields.len() > limits.fields_max {
                return Err(FramingViolation::TooManyFields);
            }
        }
    }

    /// Judges the head as a whole (RFC 9112 §3.2, §6.3, without any of its leniences).
    fn end(&mut self, bytes: &[u8]) -> Result<(), FramingViolation> {
        let RequestSpans { line, framing, fields, options } = &mut self.spans;
        let is_http11 = line.version == Version::Http11;
        match (framing.is_chunked, framing.content_length) {
            _ if is_http11 && !framing.has_host => return Err(FramingViolation::MissingHost),
            (true, Some(_)) => return Err(FramingViolation::LengthAndTransferEncoding),
            (true, None) if !is_http11 => return Err(FramingViolation::TransferEncoding),
            _ => {}
        }
        *options = ConnectionOptions::of(Fields::new(bytes, fields))?;
        self.is_whole = true;
        Ok(())
    }
}

/// View of a whole request head, over the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'b> {
    spans: &'b RequestSpans,
    bytes: &'b [u8],
}

impl<'b> RequestHead<'b> {
    /// Method, as far as connections depend on it.
    #[must_use]
    pub fn method(&self) -> Method {
        self.spans.line.method
    }

    /// Method as it was sent.
    #[must_use]
    pub fn method_name(&self) -> &'b [u8] {
        self.spans.line.method_name.of(self.bytes)
    }

    /// Version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.spans.line.version
    }

    /// Whole target as it was sent.
    #[must_use]
    pub fn target(&self) -> &'b [u8] {
        self.spans.line.target.whole.of(self.bytes)
    }

    /// Form of the target.
    #[must_use]
    pub fn target_form(&self) -> TargetForm {
        self.spans.line.target.form
    }

    /// Path and query of any form: empty where the target has none.
    #[must_use]
    pub fn path_and_query(&self) -> &'b [u8] {
        self.spans.line.target.path_and_query.of(self.bytes)
    }

    /// Authority that the target names, where it has one.
    #[must_use]
    pub fn target_authority(&self) -> Option<&'b [u8]> {
        let of_target = self.spans.line.target.authority.of(self.bytes);
        (!of_target.is_empty()).then_some(of_target)
    }

    /// Server that the request is for: the target's authority, which overrides `Host` (RFC 9112 §3.2.2), or
    /// `Host`. Only HTTP/1.0 may have none. An authority may hold user information, which [`is_authority`]
    /// refuses.
    ///
    /// [`is_authority`]: super::is_authority
    #[must_use]
    pub fn authority(&self) -> Option<&'b [u8]> {
        self.target_authority().or_else(|| self.fields().get(KnownField::Host))
    }

    /// Fields in their order.
    #[must_use]
    pub fn fields(&self) -> Fields<'b> {
        Fields::new(self.bytes, &self.spans.fields)
    }

    /// Framing of the body (RFC 9112 §6.3).
    #[must_use]
    pub fn body(&self) -> BodyFraming {
        BodyFraming::of_request(self.spans.framing.is_chunked, self.spans.framing.content_length)
    }

    /// Announced length, also where it is 0.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.spans.framing.content_length
    }

    /// Options of `Connection`.
    #[must_use]
    pub fn connection(&self) -> ConnectionOptions {
        self.spans.options
    }

    /// Returns whether the connection may go on after this request and its answer (RFC 9112 §9.3).
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.spans.options.is_persistent(self.spans.line.version)
    }

    /// Returns whether the client waits for a 100 before it sends its body (RFC 9110 §10.1.1): expectations
    /// of HTTP/1.0 and of requests without a body are ignored, as it demands.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.spans.line.version == Version::Http11
            && self.body() != BodyFraming::None
            && self.fields().all(KnownField::Expect).any(|value| value.eq_ignore_ascii_case(b"100-continue"))
    }
}

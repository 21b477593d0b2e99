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
    line: Option<RequestLine>,
    empty_lines: usize,
    framing: Framing,
    options: ConnectionOptions,
    fields: FieldTable,
    is_whole: bool,
}

impl RequestReader {
    /// A reader for a new connection. Allocates with the first field.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            cursor: LineCursor::default(),
            line: None,
            empty_lines: 0,
            framing: Framing::default(),
            options: ConnectionOptions::default(),
            fields: FieldTable::default(),
            is_whole: false,
        }
    }

    /// Forgets the last head; the next call of [`read`](Self::read) begins another.
    pub fn restart(&mut self) {
        self.cursor = LineCursor::default();
        self.line = None;
        self.empty_lines = 0;
        self.framing = Framing::default();
        self.fields.clear();
        self.is_whole = false;
    }

    /// Forgets the last head and its memory.
    pub fn release(&mut self) {
        self.restart();
        self.fields.release();
    }

    /// Reads on: `bytes` are all that have come since the head's first byte. Returns the head's length once
    /// it is whole; [`head`](Self::head) shows it then.
    ///
    /// # Errors
    /// The first rule that a line breaks, in the order of the lines. Framing is lost for good.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, FramingViolation> {
        let within = self.limits.within(bytes);
        if self.line.is_none() && !self.read_request_line(within)? {
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
        let line = self.line.filter(|_| self.is_whole)?;
        let fields = Fields::new(bytes, &self.fields);
        Some(RequestHead { line, framing: self.framing, options: self.options, fields })
    }

    /// Returns whether the head being read, whole, partial or refused, has the method HEAD: its answer has
    /// no content (RFC 9110 §9.3.2).
    #[must_use]
    pub fn is_head(&self, bytes: &[u8]) -> bool {
        match self.line {
            Some(line) => line.method == Method::Head,
            None => {
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
                self.line = Some(line);
                self.cursor.go_to(next);
                return Ok(true);
            }
            let Some(line) = self.cursor.take_line(bytes) else { return Ok(false) };
            if line.is_bare {
                return Err(FramingViolation::BareLf);
            }
            if line.end > line.start {
                self.line = Some(request_line::judge_request_line(bytes, line.start, line.end)?);
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
            let Self { framing, fields, cursor, limits, .. } = self;
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
        let is_http11 = self.line.is_some_and(|line| line.version == Version::Http11);
        match (self.framing.is_chunked, self.framing.content_length) {
            _ if is_http11 && !self.framing.has_host => return Err(FramingViolation::MissingHost),
            (true, Some(_)) => return Err(FramingViolation::LengthAndTransferEncoding),
            (true, None) if !is_http11 => return Err(FramingViolation::TransferEncoding),
            _ => {}
        }
        self.options = ConnectionOptions::of(Fields::new(bytes, &self.fields))?;
        self.is_whole = true;
        Ok(())
    }
}

/// View of a whole request head, over the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'b> {
    line: RequestLine,
    framing: Framing,
    options: ConnectionOptions,
    fields: Fields<'b>,
}

impl<'b> RequestHead<'b> {
    /// Method, as far as connections depend on it.
    #[must_use]
    pub fn method(&self) -> Method {
        self.line.method
    }

    /// Method as it was sent.
    #[must_use]
    pub fn method_name(&self) -> &'b [u8] {
        self.line.method_name.of(self.fields.bytes())
    }

    /// Version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.line.version
    }

    /// Whole target as it was sent.
    #[must_use]
    pub fn target(&self) -> &'b [u8] {
        self.line.target.whole.of(self.fields.bytes())
    }

    /// Form of the target.
    #[must_use]
    pub fn target_form(&self) -> TargetForm {
        self.line.target.form
    }

    /// Path and query of any form: empty where the target has none.
    #[must_use]
    pub fn path_and_query(&self) -> &'b [u8] {
        self.line.target.path_and_query.of(self.fields.bytes())
    }

    /// Authority that the target names, where it has one.
    #[must_use]
    pub fn target_authority(&self) -> Option<&'b [u8]> {
        let of_target = self.line.target.authority.of(self.fields.bytes());
        (!of_target.is_empty()).then_some(of_target)
    }

    /// Server that the request is for: the target's authority, which overrides `Host` (RFC 9112 §3.2.2), or
    /// `Host`. Only HTTP/1.0 may have none. An authority may hold user information, which [`is_authority`]
    /// refuses.
    ///
    /// [`is_authority`]: super::is_authority
    #[must_use]
    pub fn authority(&self) -> Option<&'b [u8]> {
        self.target_authority().or_else(|| self.fields.get(KnownField::Host))
    }

    /// Fields in their order.
    #[must_use]
    pub fn fields(&self) -> Fields<'b> {
        self.fields
    }

    /// Framing of the body (RFC 9112 §6.3).
    #[must_use]
    pub fn body(&self) -> BodyFraming {
        BodyFraming::of_request(self.framing.is_chunked, self.framing.content_length)
    }

    /// Announced length, also where it is 0.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.framing.content_length
    }

    /// Options of `Connection`.
    #[must_use]
    pub fn connection(&self) -> ConnectionOptions {
        self.options
    }

    /// Returns whether the connection may go on after this request and its answer (RFC 9112 §9.3).
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.options.is_persistent(self.line.version)
    }

    /// Returns whether the client waits for a 100 before it sends its body (RFC 9110 §10.1.1): expectations
    /// of HTTP/1.0 and of requests without a body are ignored, as it demands.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.line.version == Version::Http11
            && self.body() != BodyFraming::None
            && self.fields.all(KnownField::Expect).any(|value| value.eq_ignore_ascii_case(b"100-continue"))
    }
}

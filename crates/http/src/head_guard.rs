//! Follows the framing of one HTTP/1.1 connection's requests, strictly.
//!
//! Decides, for each byte a client sent, whether it may reach the HTTP parser. Two parsers that disagree on
//! where a request ends are how requests are smuggled past an intermediary (RFC 9112 §11.2); so any input
//! that can be read in two ways is refused here, before any parser has seen the end of the head it is in.
//!
//! Pure: bytes in, verdict out. Cost is linear in the bytes: body bytes are skipped, head lines are found
//! with `memchr` and judged once. One buffer (at most `max_head_bytes`) is kept, for a line that two reads
//! share.

use crate::head_line::{RequestVersion, judge_field, judge_request_line};
use crate::rules::field::{Field, Framing};
use crate::violation::FramingViolation;
use flashweir_core::limits::{CHUNK_LINE_BYTES, EMPTY_LINES_BEFORE_REQUEST};

/// Bounds on one request head (and, likewise, on one trailer section).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes from the first of the request line to the empty line's end. At least 1.
    pub bytes_max: usize,
    /// Field lines.
    pub fields_max: usize,
}

/// Phase of a connection between two requests' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPhase {
    /// Between requests: no byte of the next one has come.
    Idle,
    /// Some but not all of a head has come.
    ReadingHead,
    /// The head is complete, the body (or its trailers) is not.
    ReadingBody,
}

/// Refusal of a message for its framing: where the acceptable bytes end, and how to make the parser above
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingRefusal {
    /// The violation.
    pub violation: FramingViolation,
    /// Number of inspected bytes that may still be passed on.
    pub keep_len: usize,
    /// Part with the fault: a head (the parser can be made to answer) or a body (the read must fail).
    pub part: MessagePart,
}

/// Part of a message in which a violation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// Request line or fields.
    Head,
    /// Chunk framing or trailers.
    Body,
}

/// The state machine of one connection. See the module's documentation.
///
/// ```
/// use flashweir_http::head_guard::{HeadGuard, HeadLimits, ReadPhase};
/// let mut guard = HeadGuard::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// assert!(guard.inspect(b"GET / HTTP/1.1\r\nHost: exa").is_ok());
/// assert_eq!(guard.phase(), ReadPhase::ReadingHead);
/// assert!(guard.inspect(b"mple.org\r\n\r\n").is_ok());
/// assert_eq!(guard.phase(), ReadPhase::Idle);
/// assert!(guard.inspect(b"GET / HTTP/1.1\nHost: a\r\n\r\n").is_err());
/// ```
#[derive(Debug)]
pub struct HeadGuard {
    limits: HeadLimits,
    state: State,
    /// The part of a line that earlier reads brought.
    line: Vec<u8>,
    head: Head,
    heads: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Head,
    Body { remaining: u64 },
    Chunk(Chunk),
    Trailers,
}

/// Inside a chunked body, before the last chunk's size line has ended (RFC 9112 §7.1).
#[derive(Clone, Copy, Debug)]
enum Chunk {
    Size { size: u64, digits: u32 },
    SizeSpace { size: u64, length: usize },
    Extension { size: u64, length: usize },
    SizeLf { size: u64 },
    Data { remaining: u64 },
    DataCr,
    DataLf,
}

/// Progress in the current head or trailer section.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    version: Option<RequestVersion>,
    /// The method is HEAD.
    is_head: bool,
    bytes: usize,
    fields: usize,
    empty_lines: usize,
    framing: Framing,
}

const METHOD_HEAD: &[u8] = b"HEAD ";

impl HeadGuard {
    /// A guard for a new connection. Allocates nothing until a line spans two reads.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self { limits, state: State::Idle, line: Vec::new(), head: Head::default(), heads: 0 }
    }

    /// Phase of the connection after the bytes inspected so far.
    #[must_use]
    pub fn phase(&self) -> ReadPhase {
        match self.state {
            State::Idle => ReadPhase::Idle,
            State::Head => ReadPhase::ReadingHead,
            State::Body { .. } | State::Chunk(_) | State::Trailers => ReadPhase::ReadingBody,
        }
    }

    /// Number of heads that have begun on this connection: distinguishes one slow head from two quick ones.
    #[must_use]
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// Returns whether the request whose head is being read has the method HEAD: its answer has no content
    /// (RFC 9110 §9.3.2).
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.head.is_head
    }

    /// Follows the next bytes from the client, however they are split.
    ///
    /// # Errors
    /// [`FramingRefusal`] at the first violation. The guard must not be used afterwards: framing is lost for
    /// good.
    pub fn inspect(&mut self, bytes: &[u8]) -> Result<(), FramingRefusal> {
        let mut at = 0;
        // A head that began in an earlier read begins, as far as this read is concerned, at its start.
        let mut head_start = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Idle => {
                    self.head = Head::default();
                    self.state = State::Head;
                    self.heads += 1;
                    head_start = at;
                }
                State::Head => at += self.head_line(rest, at, head_start)?,
                State::Trailers => at += self.trailer_line(rest, at)?,
                State::Body { remaining } => {
                    let skipped = skip(remaining, rest);
                    at += skipped;
                    let remaining = remaining - skipped as u64;
                    self.state = if remaining == 0 { State::Idle } else { State::Body { remaining } };
                }
                State::Chunk(chunk) => {
                    at += self.chunk(chunk, rest).map_err(|violation| FramingRefusal {
                        violation,
                        keep_len: at,
                        part: MessagePart::Body,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Takes one line, or the start of one, of the head; gives the bytes taken.
    fn head_line(&mut self, rest: &[u8], at: usize, head_start: usize) -> Result<usize, FramingRefusal> {
        let refuse = |violation, keep_len| FramingRefusal { violation, keep_len, part: MessagePart::Head };
        if self.head.version.is_none() {
            // Before the line is judged: it may be refused.
            let line = if self.line.is_empty() { rest } else { &self.line };
            self.head.is_head = line.starts_with(METHOD_HEAD);
        }
        let room = self.limits.bytes_max.saturating_sub(self.head.bytes);
        let line_len = memchr::memchr(b'\n', rest).map(|line_feed| line_feed + 1);
        let taken = line_len.unwrap_or(rest.len());
        // Passing on exactly the bytes that fit makes the parser above, which has the same limit, answer 431.
        if taken > room || (taken == room && line_len.is_none()) {
            return Err(refuse(FramingViolation::HeadTooLarge, at + room.min(taken)));
        }
        self.head.bytes += taken;
        if line_len.is_none() {
            self.line.extend_from_slice(rest);
            return Ok(taken);
        }
        let judged = with_whole_line(&mut self.line, &rest[..taken], |line| self.head.take_line(line));
        match judged.map_err(|violation| refuse(violation, head_start))? {
            Taken::More if self.head.fields > self.limits.fields_max => {
                Err(refuse(FramingViolation::TooManyFields, at + taken))
            }
            Taken::More if self.head.bytes == self.limits.bytes_max => {
                Err(refuse(FramingViolation::HeadTooLarge, at + taken))
            }
            Taken::More => Ok(taken),
            Taken::End => {
                self.state = self.head.body().map_err(|violation| refuse(violation, head_start))?;
                Ok(taken)
            }
        }
    }

    /// Takes one line, or the start of one, of the trailer section; gives the bytes taken.
    fn trailer_line(&mut self, rest: &[u8], at: usize) -> Result<usize, FramingRefusal> {
        let refused =
            FramingRefusal { violation: FramingViolation::Trailer, keep_len: at, part: MessagePart::Body };
        let line_len = memchr::memchr(b'\n', rest).map(|line_feed| line_feed + 1);
        let taken = line_len.unwrap_or(rest.len());
        self.head.bytes += taken;
        if self.head.bytes > self.limits.bytes_max {
            return Err(refused);
        }
        if line_len.is_none() {
            self.line.extend_from_slice(rest);
            return Ok(taken);
        }
        let judged = with_whole_line(&mut self.line, &rest[..taken], judge_trailer_line);
        match judged.map_err(|violation| FramingRefusal { violation, ..refused })? {
            Taken::End => self.state = State::Idle,
            Taken::More => {
                self.head.fields += 1;
                if self.head.fields > self.limits.fields_max {
                    return Err(refused);
                }
            }
        }
        Ok(taken)
    }

    /// Follows chunk framing: one byte of it, or all the chunk data there is; gives the bytes taken.
    fn chunk(&mut self, chunk: Chunk, rest: &[u8]) -> Result<usize, FramingViolation> {
        if let Chunk::Data { remaining } = chunk {
            let skipped = skip(remaining, rest);
            let remaining = remaining - skipped as u64;
            self.state = State::Chunk(if remaining == 0 { Chunk::DataCr } else { Chunk::Data { remaining } });
            return Ok(skipped);
        }
        self.state = match chunk.next(rest[0])? {
            Some(next) => State::Chunk(next),
            None => {
                self.head = Head::default();
                State::Trailers
            }
        };
        Ok(1)
    }
}

/// Result of a line: the end of its section or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    More,
    End,
}

impl Head {
    /// Judges one whole line without its line end.
    fn take_line(&mut self, line: &[u8]) -> Result<Taken, FramingViolation> {
        if self.version.is_none() {
            if !line.is_empty() {
                self.is_head = line.starts_with(METHOD_HEAD);
                self.version = Some(judge_request_line(line)?);
                return Ok(Taken::More);
            }
            self.empty_lines += 1;
            return if self.empty_lines > EMPTY_LINES_BEFORE_REQUEST {
                Err(FramingViolation::RequestLine)
            } else {
                Ok(Taken::More)
            };
        }
        if line.is_empty() {
            return Ok(Taken::End);
        }
        self.fields += 1;
        self.framing.take(judge_field(line)?)?;
        Ok(Taken::More)
    }

    /// State after the head (RFC 9112 §6.3, without any of its leniences).
    fn body(&self) -> Result<State, FramingViolation> {
        let is_http11 = self.version == Some(RequestVersion::Http11);
        match (self.framing.is_chunked, self.framing.content_length) {
            _ if is_http11 && !self.framing.has_host => Err(FramingViolation::MissingHost),
            (true, Some(_)) => Err(FramingViolation::LengthAndTransferEncoding),
            (true, None) if !is_http11 => Err(FramingViolation::TransferEncoding),
            (true, None) => Ok(State::Chunk(Chunk::Size { size: 0, digits: 0 })),
            (false, None | Some(0)) => Ok(State::Idle),
            (false, Some(remaining)) => Ok(State::Body { remaining }),
        }
    }
}

impl Chunk {
    /// The state after one byte of chunk framing; `None` when the last chunk's size line has ended.
    fn next(self, byte: u8) -> Result<Option<Self>, FramingViolation> {
        let next = match (self, byte) {
            // 16 digits fill a u64; a size beyond 2^63 is no body but an attack on a parser's arithmetic.
            (Self::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < 16 && size < 1 << 59 => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Self::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { digits: 0, .. }, _) => return Err(FramingViolation::ChunkSize),
            (Self::Size { size, .. } | Self::SizeSpace { size, .. }, b';') => {
                Self::Extension { size, length: 0 }
            }
            (Self::Size { size, .. } | Self::Extension { size, .. }, b'\r') => Self::SizeLf { size },
            (Self::Size { size, .. }, b' ' | b'\t') => Self::SizeSpace { size, length: 0 },
            (Self::SizeSpace { size, length }, b' ' | b'\t') if length < CHUNK_LINE_BYTES => {
                Self::SizeSpace { size, length: length + 1 }
            }
            (Self::Extension { size, length }, b'\t' | b' '..=b'~' | 0x80..) if length < CHUNK_LINE_BYTES => {
                Self::Extension { size, length: length + 1 }
            }
            (Self::SizeLf { size: 0 }, b'\n') => return Ok(None),
            (Self::SizeLf { size }, b'\n') => Self::Data { remaining: size },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size { size: 0, digits: 0 },
            (Self::DataCr | Self::DataLf, _) => return Err(FramingViolation::ChunkEnd),
            _ => return Err(FramingViolation::ChunkSize),
        };
        Ok(Some(next))
    }
}

/// Trailers may hold no field that frames or routes a message (RFC 9110 §6.5.1).
fn judge_trailer_line(line: &[u8]) -> Result<Taken, FramingViolation> {
    match (line.is_empty(), judge_field(line)) {
        (true, _) => Ok(Taken::End),
        (false, Ok(Field::Other)) => Ok(Taken::More),
        (false, _) => Err(FramingViolation::Trailer),
    }
}

/// Joins `tail` (which ends in LF) to what earlier reads left in `start`, takes CRLF off and judges the line.
fn with_whole_line(
    start: &mut Vec<u8>,
    tail: &[u8],
    judge: impl FnOnce(&[u8]) -> Result<Taken, FramingViolation>,
) -> Result<Taken, FramingViolation> {
    if start.is_empty() {
        return judge(tail.strip_suffix(b"\r\n").ok_or(FramingViolation::BareLf)?);
    }
    start.extend_from_slice(tail);
    let judged = start.strip_suffix(b"\r\n").ok_or(FramingViolation::BareLf).and_then(judge);
    start.clear();
    judged
}

/// Number of bytes of `rest` that belong to a run of `remaining` bytes.
fn skip(remaining: u64, rest: &[u8]) -> usize {
    usize::try_from(remaining).map_or(rest.len(), |remaining| remaining.min(rest.len()))
}

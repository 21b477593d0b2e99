//! Steps over a body: ranges of content, trailers, the end. Copies nothing.

use super::BodyFraming;
use super::chunk::Chunk;
use crate::head::{Fields, HeadLimits, TrailerReader};
use crate::violation::FramingViolation;
use core::ops::Range;

/// Reader of the bodies of one connection, one after another.
///
/// Cost: a few instructions for each run of content; ten for each byte of chunk framing.
///
/// ```
/// use flashweir_http1::body::{BodyFraming, BodyPart, BodyReader};
/// use flashweir_http1::head::HeadLimits;
/// let mut reader = BodyReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// reader.begin(BodyFraming::Chunked);
/// let bytes = b"5\r\nhello\r\n0\r\n\r\nnext";
/// let first = reader.read(bytes).expect("a good body");
/// assert_eq!((first.taken, first.part), (8, Some(BodyPart::Content(3..8))));
/// let last = reader.read(&bytes[8..]).expect("a good body");
/// assert_eq!((last.taken, last.part), (7, Some(BodyPart::End)));
/// ```
#[derive(Debug)]
pub struct BodyReader {
    limits: HeadLimits,
    state: State,
    trailers: TrailerReader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length {
        remaining: u64,
    },
    Chunk(Chunk),
    Trailers,
    UntilClose,
    /// All but the end has been reported.
    Ending,
    Ended,
}

/// Part of a body; places are relative to the bytes of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// Content.
    Content(Range<usize>),
    /// The trailer section, which has fields: [`BodyReader::trailers`] shows them over these bytes.
    Trailers(Range<usize>),
    /// The body has ended; the next message begins behind the bytes taken.
    End,
}

/// Result of one step. Bytes that were not taken are given again, with those that come after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyStep {
    /// Bytes that are done with, once the part has been used.
    pub taken: usize,
    /// The part found; `None` where more bytes must come first.
    pub part: Option<BodyPart>,
}

impl BodyReader {
    /// A reader at the end of a body; `limits` bound trailers.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        Self { limits, state: State::Ended, trailers: TrailerReader::default() }
    }

    /// A body of this framing begins.
    pub fn begin(&mut self, framing: BodyFraming) {
        self.state = match framing {
            BodyFraming::None | BodyFraming::Tunnel | BodyFraming::Length(0) => State::Ending,
            BodyFraming::Length(remaining) => State::Length { remaining },
            BodyFraming::Chunked => State::Chunk(Chunk::START),
            BodyFraming::UntilClose => State::UntilClose,
        };
    }

    /// Returns whether the end has been reported.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Content that is still to come, if its length is known.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Length { remaining } => Some(remaining),
            State::Ending | State::Ended | State::Trailers => Some(0),
            State::Chunk(_) | State::UntilClose => None,
        }
    }

    /// Counts content of a known length that went another way than through [`read`](Self::read): never more
    /// than [remains](Self::remaining).
    pub fn skip(&mut self, bytes: u64) {
        if let State::Length { remaining } = self.state {
            debug_assert!(bytes <= remaining, "content behind the end of its body");
            let remaining = remaining.saturating_sub(bytes);
            self.state = if remaining == 0 { State::Ending } else { State::Length { remaining } };
        }
    }

    /// Takes the next part. Each call returns at most one; call again while it returns one. Bytes behind the
    /// end are not touched.
    ///
    /// # Errors
    /// The rule that chunk framing or a trailer breaks. Framing is lost for good.
    #[inline]
    pub fn read(&mut self, bytes: &[u8]) -> Result<BodyStep, FramingViolation> {
        match self.state {
            State::Length { remaining } => Ok(self.read_length(remaining, bytes)),
            State::UntilClose => Ok(BodyStep::content(0..bytes.len())),
            State::Ending => {
                self.state = State::Ended;
                Ok(BodyStep { taken: 0, part: Some(BodyPart::End) })
            }
            State::Ended => Ok(BodyStep { taken: 0, part: None }),
            State::Chunk(chunk) => self.read_chunk(chunk, bytes),
            State::Trailers => self.read_trailers(bytes, 0),
        }
    }

    /// The connection has ended. True if that is the end of the body (which then has been reported), false
    /// if it was cut short.
    pub fn finish(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Ended;
        }
        self.state == State::Ended
    }

    /// Trailers that were read last, over the bytes of their part.
    #[must_use]
    pub fn trailers<'b>(&'b self, bytes: &'b [u8]) -> Fields<'b> {
        self.trailers.fields(bytes)
    }

    /// Releases memory: for a connection that falls idle.
    pub(crate) fn release(&mut self) {
        self.trailers.release();
    }

    fn read_length(&mut self, remaining: u64, bytes: &[u8]) -> BodyStep {
        let length = length_within(remaining, bytes);
        let remaining = remaining - length as u64;
        self.state = if remaining == 0 { State::Ending } else { State::Length { remaining } };
        BodyStep::content(0..length)
    }

    fn read_chunk(&mut self, mut chunk: Chunk, bytes: &[u8]) -> Result<BodyStep, FramingViolation> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if let Chunk::Data { remaining } = chunk {
                let length = length_within(remaining, &bytes[at..]);
                let remaining = remaining - length as u64;
                self.state =
                    State::Chunk(if remaining == 0 { Chunk::DataCr } else { Chunk::Data { remaining } });
                return Ok(BodyStep::content(at..at + length));
            }
            at += 1;
            let Some(next) = chunk.next(byte)? else {
                self.state = State::Trailers;
                self.trailers.restart();
                return self.read_trailers(&bytes[at..], at);
            };
            chunk = next;
        }
        self.state = State::Chunk(chunk);
        Ok(BodyStep { taken: at, part: None })
    }

    /// Reads trailers that begin `before` bytes behind the start of the call's bytes.
    fn read_trailers(&mut self, bytes: &[u8], before: usize) -> Result<BodyStep, FramingViolation> {
        let Some(length) = self.trailers.read(bytes, self.limits)? else {
            return Ok(BodyStep { taken: before, part: None });
        };
        let taken = before + length;
        if self.trailers.is_empty() {
            self.state = State::Ended;
            return Ok(BodyStep { taken, part: Some(BodyPart::End) });
        }
        self.state = State::Ending;
        Ok(BodyStep { taken, part: Some(BodyPart::Trailers(before..taken)) })
    }
}

impl BodyStep {
    fn content(range: Range<usize>) -> Self {
        let taken = range.end;
        Self { taken, part: (!range.is_empty()).then_some(BodyPart::Content(range)) }
    }
}

/// Number of bytes of `bytes` that belong to a run of `remaining`.
fn length_within(remaining: u64, bytes: &[u8]) -> usize {
    usize::try_from(remaining).map_or(bytes.len(), |remaining| remaining.min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::FramingViolation::*;

    const LIMITS: HeadLimits = HeadLimits { bytes_max: 64, fields_max: 3 };

    /// Content, trailers as text and the place of the end; reads as a driver does whose buffer grows by
    /// `piece` bytes.
    fn read(
        framing: BodyFraming,
        bytes: &[u8],
        piece: usize,
    ) -> Result<(Vec<u8>, String, Option<usize>), FramingViolation> {
        let mut reader = BodyReader::new(LIMITS);
        reader.begin(framing);
        let (mut content, mut trailers, mut at, mut come) = (Vec::new(), String::new(), 0, 0);
        loop {
            let step = reader.read(&bytes[at..come])?;
            match step.part {
                Some(BodyPart::Content(range)) => content.extend_from_slice(&bytes[at..come][range]),
                Some(BodyPart::Trailers(range)) => {
                    for field in reader.trailers(&bytes[at..come][range]).iter() {
                        trailers += &format!("{}={};", field.name.escape_ascii(), field.value.escape_ascii());
                    }
                }
                Some(BodyPart::End) => {
                    assert!(reader.is_ended());
                    return Ok((content, trailers, Some(at + step.taken)));
                }
                None if come == bytes.len() => return Ok((content, trailers, None)),
                None => come = (come + piece).min(bytes.len()),
            }
            at += step.taken;
        }
    }

    #[test]
    fn bodies_end_where_they_say_however_they_come() {
        for (framing, bytes, content, trailers, end) in [
            (BodyFraming::None, "next", "", "", Some(0)),
            (BodyFraming::Length(5), "hellonext", "hello", "", Some(5)),
            (BodyFraming::Length(5), "hel", "hel", "", None),
            (BodyFraming::Chunked, "5\r\nhello\r\n0\r\n\r\nnext", "hello", "", Some(15)),
            (
                BodyFraming::Chunked,
                "1;a=b\r\nx\r\n0A \t;c\r\n0123456789\r\n00\r\n\r\n",
                "x0123456789",
                "",
                Some(36),
            ),
            (BodyFraming::Chunked, "0\r\nA: b\r\nC:d\r\n\r\nnext", "", "A=b;C=d;", Some(16)),
            (BodyFraming::Chunked, "5\r\nhello\r\n0\r\nA: b\r\n", "hello", "", None),
            (BodyFraming::UntilClose, "all of it", "all of it", "", None),
        ] {
            let expected = Ok((content.as_bytes().to_vec(), trailers.to_owned(), end));
            for piece in 1..=bytes.len() {
                assert_eq!(read(framing, bytes.as_bytes(), piece), expected, "{bytes:?} by {piece}");
            }
        }
    }

    #[test]
    fn faults_of_chunks_and_trailers_are_named_however_they_come() {
        for (bytes, violation) in [
            ("-1\r\n\r\n", ChunkSize),
            ("0x5\r\nhello", ChunkSize),
            ("\r\nhello", ChunkSize),
            ("5 \r\nhello", ChunkSize),
            ("5\nhello", ChunkSize),
            ("5;a\nb\r\nhello", ChunkSize),
            ("5\rxhello", ChunkSize),
            ("00000000000000005\r\nhello", ChunkSize),
            ("ffffffffffffffff\r\nhello", ChunkSize),
            ("5\r\nhelloX\r\n0\r\n\r\n", ChunkEnd),
            ("5\r\nhello\n0\r\n\r\n", ChunkEnd),
            ("0\r\nContent-Length: 5\r\n\r\n", Trailer),
            ("0\r\nHost: b\r\n\r\n", Trailer),
            ("0\r\ntransfer_encoding: b\r\n\r\n", Trailer),
            ("0\r\nbad name: b\r\n\r\n", Trailer),
            ("0\r\n folded: b\r\n\r\n", Trailer),
            ("0\r\nA: b\n\r\n", BareLf),
            ("0\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", Trailer),
            ("0\r\nA: 0123456789012345678901234567890123456789012345678901234567890\r\n\r\n", Trailer),
        ] {
            for piece in 1..=bytes.len() {
                let outcome = read(BodyFraming::Chunked, bytes.as_bytes(), piece);
                assert_eq!(outcome, Err(violation), "{bytes:?} by {piece}");
            }
        }
        let long = format!("5;{}\r\nhello", "x".repeat(flashweir_core::limits::CHUNK_LINE_BYTES));
        assert!(read(BodyFraming::Chunked, long.as_bytes(), 1).is_ok());
        let longer = format!("5;{}\r\nhello", "x".repeat(flashweir_core::limits::CHUNK_LINE_BYTES + 1));
        assert_eq!(read(BodyFraming::Chunked, longer.as_bytes(), 1_000), Err(ChunkSize));
    }

    #[test]
    fn the_end_of_the_connection_ends_one_kind_of_body_only() {
        for (framing, is_end) in
            [(BodyFraming::UntilClose, true), (BodyFraming::Length(3), false), (BodyFraming::Chunked, false)]
        {
            let mut reader = BodyReader::new(LIMITS);
            reader.begin(framing);
            assert_eq!(reader.finish(), is_end, "{framing:?}");
        }
    }
}

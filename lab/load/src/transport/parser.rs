//! Reads one HTTP/1 answer from bytes as they arrive: no socket, no clock, and no copy of what arrives whole.
//!
//! Pieces may be cut anywhere; only a head, a chunk's size line or trailers that are cut are kept until the
//! rest arrives. Each call costs time linear in its bytes, plus one more look at what is kept
//! ([`LOAD_HEAD_BYTES`] at most).

use super::head::{self, Framing, Head, Malformed};
use flashweir_core::limits::{CHUNK_LINE_BYTES, LOAD_ANSWER_FIELDS, LOAD_HEAD_BYTES};
use httparse::{EMPTY_HEADER, Status};

/// One answer on its way.
#[derive(Debug)]
pub(super) struct Parser {
    asks_for_body: bool,
    state: State,
    /// The beginning of what cannot be understood before its end has arrived.
    kept: Vec<u8>,
    head: Option<Head>,
    body_bytes: u64,
}

/// The part that arrives next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// This number of bytes of the body, and then the end.
    Body(u64),
    ChunkSize,
    /// This number of bytes of a chunk, and then its line end.
    Chunk(u64),
    ChunkEnd,
    Trailers,
    UntilClose,
    Whole,
}

/// Result of feeding a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// The answer goes on.
    More,
    /// The answer is whole.
    Whole {
        /// Nothing came after its end, which it announced itself: the connection is in order.
        in_order: bool,
    },
}

impl Parser {
    /// `asks_for_body` is false for `HEAD`.
    pub(super) fn new(asks_for_body: bool) -> Self {
        Self { asks_for_body, state: State::Head, kept: Vec::new(), head: None, body_bytes: 0 }
    }

    /// The final head, once it has arrived.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Bytes of the body so far.
    pub(super) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Takes the next bytes that arrived; not to be called again once the answer is whole.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<Fed, Malformed> {
        while self.state != State::Whole {
            // Ends: each step but the one from a body of no bytes takes at least one byte.
            if bytes.is_empty() && self.state != State::Body(0) {
                return Ok(Fed::More);
            }
            let used = self.step(bytes)?;
            bytes = &bytes[used..];
        }
        Ok(Fed::Whole { in_order: bytes.is_empty() })
    }

    /// Returns whether the answer would be whole if the server closed the connection now.
    pub(super) fn is_whole_when_closed(&self) -> bool {
        self.state == State::UntilClose
    }

    /// One part of the answer; returns how many of the bytes it took.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self.state {
            State::Head => self.read_head(bytes),
            State::Body(left) => Ok(self.skip(bytes, left, State::Body, State::Whole)),
            State::Chunk(left) => Ok(self.skip(bytes, left, State::Chunk, State::ChunkEnd)),
            State::ChunkSize => self.read_chunk_size(bytes),
            State::ChunkEnd => self.read_chunk_end(bytes),
            State::Trailers => self.read_trailers(bytes),
            State::UntilClose => {
                self.body_bytes += bytes.len() as u64;
                Ok(bytes.len())
            }
            State::Whole => Ok(0),
        }
    }

    fn read_head(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let asks_for_body = self.asks_for_body;
        let (used, head) = self.gather(bytes, LOAD_HEAD_BYTES, |bytes| head::parse(bytes, asks_for_body))?;
        // Heads of 1xx only announce the final one (RFC 9110 §15.2).
        if let Some(head) = head.filter(|head| head.status >= 200) {
            self.head = Some(head);
            self.state = match head.framing {
                Framing::Length(bytes) => State::Body(bytes),
                Framing::Chunked => State::ChunkSize,
                Framing::UntilClose => State::UntilClose,
            };
        }
        Ok(used)
    }

    fn skip(&mut self, bytes: &[u8], left: u64, goes_on: fn(u64) -> State, then: State) -> usize {
        // The smaller of the two fits both types.
        let used = left.min(bytes.len() as u64);
        self.body_bytes += used;
        self.state = if used == left { then } else { goes_on(left - used) };
        used as usize
    }

    fn read_chunk_size(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let (used, size) = self.gather(bytes, CHUNK_LINE_BYTES, chunk_size)?;
        match size {
            None => {}
            Some(0) => self.state = State::Trailers,
            Some(size) => self.state = State::Chunk(size),
        }
        Ok(used)
    }

    fn read_chunk_end(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let (used, end) = self.gather(bytes, LINE_END.len(), |bytes| {
            let there = bytes.len().min(LINE_END.len());
            if bytes[..there] != LINE_END[..there] {
                return Err(Malformed);
            }
            Ok((there == LINE_END.len()).then_some((there, ())))
        })?;
        if end.is_some() {
            self.state = State::ChunkSize;
        }
        Ok(used)
    }

    fn read_trailers(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let (used, end) = self.gather(bytes, LOAD_HEAD_BYTES, trailers)?;
        if end.is_some() {
            self.state = State::Whole;
        }
        Ok(used)
    }

    /// Understands what was kept and `bytes` together, or keeps them; at most `most` bytes, wherever they are
    /// cut. Returns how many of `bytes` were taken, and what they say once they are complete.
    fn gather<T>(
        &mut self,
        bytes: &[u8],
        most: usize,
        parse: impl FnOnce(&[u8]) -> Result<Option<(usize, T)>, Malformed>,
    ) -> Result<(usize, Option<T>), Malformed> {
        let kept_before = self.kept.len();
        if kept_before > 0 {
            self.kept.extend_from_slice(bytes);
        }
        let together = if kept_before > 0 { &self.kept[..] } else { bytes };
        match parse(together)? {
            Some((length, _)) if length > most => Err(Malformed),
            Some((length, value)) => {
                self.kept.clear();
                // It was incomplete without these bytes, so it ends within them.
                Ok((length.saturating_sub(kept_before), Some(value)))
            }
            None if together.len() > most => Err(Malformed),
            None => {
                if kept_before == 0 {
                    self.kept.extend_from_slice(bytes);
                }
                Ok((bytes.len(), None))
            }
        }
    }
}

const LINE_END: &[u8] = b"\r\n";

/// The length of a chunk's size line and the size it gives.
fn chunk_size(bytes: &[u8]) -> Result<Option<(usize, u64)>, Malformed> {
    // An empty size would be read as zero, which ends the body.
    if bytes.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) {
        return Err(Malformed);
    }
    match httparse::parse_chunk_size(bytes) {
        Ok(Status::Complete(size)) => Ok(Some(size)),
        Ok(Status::Partial) => Ok(None),
        Err(_) => Err(Malformed),
    }
}

/// The length of trailers, the empty line at their end included.
fn trailers(bytes: &[u8]) -> Result<Option<(usize, ())>, Malformed> {
    let mut space = [EMPTY_HEADER; LOAD_ANSWER_FIELDS];
    match httparse::parse_headers(bytes, &mut space) {
        Ok(Status::Complete((length, _))) => Ok(Some((length, ()))),
        Ok(Status::Partial) => Ok(None),
        Err(_) => Err(Malformed),
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;

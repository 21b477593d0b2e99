//! Frames of content to send, which keep to what the head announced (RFC 9112 §6, §7.1). A chunk is its
//! prefix, its data and [`CHUNK_END`], which go out in one vectored write.

use super::BodyFraming;

/// Line end behind a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";
/// The last chunk; trailers follow, or [`NO_TRAILERS`].
pub const LAST_CHUNK: &[u8] = b"0\r\n";
/// End of a trailer section.
pub const NO_TRAILERS: &[u8] = b"\r\n";

/// Longest prefix: 16 digits and a line end.
const PREFIX_BYTES: usize = 18;

/// Size line of one chunk.
///
/// ```
/// use flashweir_http1::body::ChunkPrefix;
/// assert_eq!(ChunkPrefix::new(255).as_bytes(), b"FF\r\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkPrefix {
    bytes: [u8; PREFIX_BYTES],
    start: u8,
}

impl ChunkPrefix {
    /// Prefix of a chunk of `size` bytes. A size of 0 would end the body: callers send no empty chunk.
    #[must_use]
    pub fn new(size: u64) -> Self {
        let mut bytes = *b"0000000000000000\r\n";
        let (mut rest, mut start) = (size, PREFIX_BYTES - 2);
        loop {
            start -= 1;
            bytes[start] = b"0123456789ABCDEF"[(rest & 0xf) as usize];
            rest >>= 4;
            if rest == 0 {
                return Self { bytes, start: start as u8 };
            }
        }
    }

    /// The line.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// Frame around one piece of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFrame {
    /// None: the content is sent as it is.
    Plain,
    /// The prefix, the content, [`CHUNK_END`].
    Chunk(ChunkPrefix),
    /// The content is not sent: the message has none, as an answer to HEAD.
    Discard,
}

/// Content that is not as long as the head announced. The connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// More content than announced.
    #[error("more content than announced")]
    Exceeded,
    /// The body ends before the announced length.
    #[error("less content than announced")]
    Short,
}

/// Account of one body being sent.
///
/// ```
/// use flashweir_http1::body::{BodyFraming, BodyWriter, ContentFrame, LengthError};
/// let mut writer = BodyWriter::default();
/// writer.begin(BodyFraming::Length(5));
/// assert_eq!(writer.frame(3), Ok(ContentFrame::Plain));
/// assert_eq!(writer.frame(3), Err(LengthError::Exceeded));
/// assert_eq!(writer.end(), Err(LengthError::Short));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyWriter(State);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ended,
    /// There is no content, or none may be sent.
    Empty,
    Length {
        remaining: u64,
    },
    Chunked,
    UntilClose,
}

impl BodyWriter {
    /// A body of this framing begins.
    pub fn begin(&mut self, framing: BodyFraming) {
        self.0 = match framing {
            BodyFraming::None | BodyFraming::Tunnel => State::Empty,
            BodyFraming::Length(remaining) => State::Length { remaining },
            BodyFraming::Chunked => State::Chunked,
            BodyFraming::UntilClose => State::UntilClose,
        };
    }

    /// Frame of the next `bytes` of content; an empty piece is not sent.
    ///
    /// # Errors
    /// [`LengthError::Exceeded`]; nothing of the piece may be sent.
    pub fn frame(&mut self, bytes: u64) -> Result<ContentFrame, LengthError> {
        match &mut self.0 {
            _ if bytes == 0 => Ok(ContentFrame::Discard),
            State::Empty => Ok(ContentFrame::Discard),
            State::Length { remaining } => {
                *remaining = remaining.checked_sub(bytes).ok_or(LengthError::Exceeded)?;
                Ok(ContentFrame::Plain)
            }
            State::Chunked => Ok(ContentFrame::Chunk(ChunkPrefix::new(bytes))),
            State::UntilClose => Ok(ContentFrame::Plain),
            State::Ended => Err(LengthError::Exceeded),
        }
    }

    /// Ends a body without trailers; returns the bytes that end it. Calling it twice ends nothing more.
    ///
    /// # Errors
    /// [`LengthError::Short`]; the connection must be closed, so that the other end sees the cut.
    pub fn end(&mut self) -> Result<&'static [u8], LengthError> {
        match core::mem::take(&mut self.0) {
            State::Length { remaining: 1.. } => Err(LengthError::Short),
            State::Chunked => Ok(b"0\r\n\r\n"),
            State::Length { .. } | State::Empty | State::UntilClose | State::Ended => Ok(b""),
        }
    }

    /// Ends a chunked body whose trailers the caller writes
    /// ([`write_trailers`](crate::write::write_trailers)). False where the framing has none: end it as
    /// without.
    pub fn end_with_trailers(&mut self) -> bool {
        let has_trailers = self.0 == State::Chunked;
        if has_trailers {
            self.0 = State::Ended;
        }
        has_trailers
    }

    /// Returns whether the body has been ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.0 == State::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_keeps_to_what_was_announced() {
        let mut writer = BodyWriter::default();
        assert_eq!(writer.frame(1), Err(LengthError::Exceeded), "nothing has begun");
        writer.begin(BodyFraming::Length(4));
        assert_eq!(writer.frame(4), Ok(ContentFrame::Plain));
        assert_eq!(writer.frame(0), Ok(ContentFrame::Discard));
        assert_eq!(writer.frame(1), Err(LengthError::Exceeded));
        assert_eq!(writer.end(), Ok(&b""[..]));
        assert!(writer.is_ended());
        writer.begin(BodyFraming::Chunked);
        assert_eq!(writer.frame(16), Ok(ContentFrame::Chunk(ChunkPrefix::new(16))));
        assert_eq!(writer.frame(0), Ok(ContentFrame::Discard), "an empty chunk would end the body");
        assert_eq!(writer.end(), Ok(&b"0\r\n\r\n"[..]));
        assert_eq!(writer.end(), Ok(&b""[..]), "once");
        writer.begin(BodyFraming::None);
        assert_eq!(writer.frame(5), Ok(ContentFrame::Discard));
        assert!(!writer.end_with_trailers());
        writer.begin(BodyFraming::Chunked);
        assert!(writer.end_with_trailers() && writer.is_ended());
        writer.begin(BodyFraming::UntilClose);
        assert_eq!((writer.frame(9), writer.end()), (Ok(ContentFrame::Plain), Ok(&b""[..])));
    }

    #[test]
    fn a_prefix_is_the_size_in_hexadecimal() {
        for size in [1, 9, 15, 16, 255, 4_096, 65_536, u64::from(u32::MAX), u64::MAX] {
            let expected = format!("{size:X}\r\n");
            assert_eq!(ChunkPrefix::new(size).as_bytes(), expected.as_bytes());
        }
    }
}

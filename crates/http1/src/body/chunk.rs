//! Framing of chunks, byte by byte (RFC 9112 §7.1), strictly: a size is up to 16 hexadecimal digits, every
//! line ends in CRLF.

use crate::byte_class::TEXT;
use crate::violation::FramingViolation;
use flashweir_core::limits::CHUNK_LINE_BYTES;

/// Place inside a chunked body, before the last chunk's size line has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Size { size: u64, digits: u32 },
    SizeSpace { size: u64, length: usize },
    Extension { size: u64, length: usize },
    SizeLf { size: u64 },
    Data { remaining: u64 },
    DataCr,
    DataLf,
}

/// Hexadecimal digits of a size: they fill a `u64`.
const SIZE_DIGITS_MAX: u32 = 16;
/// A size beyond 2^63 is no body but an attack on a parser's arithmetic.
const SIZE_BEFORE_DIGIT_MAX: u64 = 1 << 59;

impl Chunk {
    /// Before the first chunk.
    pub(super) const START: Self = Self::Size { size: 0, digits: 0 };

    /// The place behind one byte of framing; `None` when the last chunk's size line has ended.
    ///
    /// # Errors
    /// [`FramingViolation::ChunkSize`] in a size line, [`FramingViolation::ChunkEnd`] behind a chunk's data.
    #[inline]
    pub(super) fn next(self, byte: u8) -> Result<Option<Self>, FramingViolation> {
        let next = match (self, byte) {
            (Self::Size { size, digits }, _)
                if byte.is_ascii_hexdigit() && digits < SIZE_DIGITS_MAX && size < SIZE_BEFORE_DIGIT_MAX =>
            {
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
            (Self::Extension { size, length }, _) if TEXT.has(byte) && length < CHUNK_LINE_BYTES => {
                Self::Extension { size, length: length + 1 }
            }
            (Self::SizeLf { size: 0 }, b'\n') => return Ok(None),
            (Self::SizeLf { size }, b'\n') => Self::Data { remaining: size },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::START,
            (Self::DataCr | Self::DataLf, _) => return Err(FramingViolation::ChunkEnd),
            _ => return Err(FramingViolation::ChunkSize),
        };
        Ok(Some(next))
    }
}

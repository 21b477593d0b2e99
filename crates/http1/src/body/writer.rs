//! Frames of chunks to send (RFC 9112 §7.1). A chunk is its prefix, its data and [`CHUNK_END`], which go out
//! in one vectored write.

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

#[cfg(test)]
mod tests {
    use super::ChunkPrefix;

    #[test]
    fn a_prefix_is_the_size_in_hexadecimal() {
        for size in [1, 9, 15, 16, 255, 4_096, 65_536, u64::from(u32::MAX), u64::MAX] {
            let expected = format!("{size:X}\r\n");
            assert_eq!(ChunkPrefix::new(size).as_bytes(), expected.as_bytes());
        }
    }
}

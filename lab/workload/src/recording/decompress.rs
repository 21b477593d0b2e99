//! Undoes the compression of a log that is read: with a window of bounded size for logs of any size.

use crate::recording::peek::{Peeked, peek};
use flashweir_core::limits::LOG_ZSTD_WINDOW_BYTES;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// First bytes of other compressed files, and the programs that make them, each of which undoes it with
/// `-dc`.
const OTHERS: [(&[u8], &str); 2] = [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];
/// The longest of these beginnings.
const MAGIC_BYTES: u64 = 6;
/// The first of the magic numbers of frames that hold no data; they differ in the last four bits (RFC 8878
/// §3.1.2).
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The bytes of a log, decompressed if they are compressed by a program that is known by its beginning.
pub(super) fn open<'r>(source: impl Read + 'r) -> Box<dyn Read + 'r> {
    let Peeked { beginning, all } = peek(source, MAGIC_BYTES);
    if beginning.starts_with(GZIP) {
        // Several files that were compressed one by one may follow one another.
        Box::new(MultiGzDecoder::new(BufReader::new(all)))
    } else if beginning.starts_with(ZSTD) || is_skippable(&beginning) {
        Box::new(ZstdFrames::new(BufReader::new(all)))
    } else {
        Box::new(all)
    }
}

/// The program that undoes the compression of a file that begins so, where this does not.
pub(super) fn other_program(beginning: &[u8]) -> Option<&'static str> {
    let twice = [(GZIP, "gzip"), (ZSTD, "zstd")];
    OTHERS.iter().chain(&twice).find(|(magic, _)| beginning.starts_with(magic)).map(|(_, program)| *program)
}

fn is_skippable(beginning: &[u8]) -> bool {
    matches!(beginning, [0x50..=0x5f, rest @ ..] if rest.starts_with(&SKIPPABLE))
}

/// The frames of a zstd file, one after the other (RFC 8878 §3.1).
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LOG_ZSTD_WINDOW_BYTES);
        Self { source, decoder }
    }

    /// Begins the next frame that holds data; `false` at the end.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A block gives at most 128 KiB, and may give nothing.
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                if !self.begin_frame()? {
                    return Ok(0);
                }
            } else {
                let decoded =
                    self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
        }
        self.decoder.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn opened(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        open(bytes).read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn one_file_or_several_of_each_program() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|number| (number % 1_000).to_le_bytes()).collect();
        for compress in [gzip, zstd] {
            let two = [compress(&text), compress(b""), compress(b"the second")].concat();
            assert!(opened(&two).unwrap() == [&text[..], b"the second"].concat());
        }
        assert_eq!(opened(b"as it is").unwrap(), b"as it is");
        assert_eq!(opened(b"").unwrap(), b"");
    }

    /// RFC 8878 §3.1.2.
    #[test]
    fn frames_without_data_are_skipped() {
        let skippable = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let all = [skippable.clone(), zstd(b"one"), skippable.clone(), zstd(b" two"), skippable].concat();
        assert_eq!(opened(&all).unwrap(), b"one two");
    }

    /// Made by `printf 'a log line\n%.0s' $(seq 9) | zstd -3` (1.5.4), which adds a checksum.
    #[test]
    fn a_file_of_the_program_itself() {
        let file = b"\x28\xb5\x2f\xfd\x04\x58\x95\0\0\x58a log line\n\x01\0\xe5\xa9\x78\x01\x56\x18\x92\xc7";
        assert_eq!(opened(file).unwrap(), b"a log line\n".repeat(9));
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        for whole in [gzip(b"some text"), zstd(&b"some text ".repeat(99))] {
            assert!(opened(&whole[..whole.len() - 5]).is_err());
            for at in 3..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x55;
                // Without a checksum wrong bytes may be read; nothing worse.
                let _ = opened(&damaged);
            }
        }
    }

    #[test]
    fn a_window_beyond_the_bound_is_refused() {
        // Magic, a header without content size, and a window of 2^41 bytes.
        let error = opened(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 1, 0, 0]).unwrap_err().to_string();
        assert!(error.contains("window"), "{error}");
    }
}

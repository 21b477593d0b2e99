//! The beginning of a reader, looked at before all of it is read.

use std::io::{self, Chain, Cursor, Read};

/// The beginning of a reader, and all of it.
pub(super) struct Peeked<R> {
    pub(super) beginning: Vec<u8>,
    pub(super) all: Chain<Cursor<Vec<u8>>, Rest<R>>,
}

/// Looks at the first bytes, at most `bytes` of them.
pub(super) fn peek<R: Read>(mut reader: R, bytes: u64) -> Peeked<R> {
    let mut beginning = Vec::new();
    let failure = reader.by_ref().take(bytes).read_to_end(&mut beginning).err();
    let all = Cursor::new(beginning.clone()).chain(Rest { failure, reader });
    Peeked { beginning, all }
}

/// The bytes after the beginning. A failure met while reading the beginning comes in its turn, so that its
/// message names the line it struck.
pub(super) struct Rest<R> {
    failure: Option<io::Error>,
    reader: R,
}

impl<R: Read> Read for Rest<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.failure.take().map_or_else(|| self.reader.read(buffer), Err)
    }
}

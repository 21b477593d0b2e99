//! Bytes of one connection on their way into its socket: heads, frames and small parts gathered, large parts
//! as they are. Bounded: it takes a further part only while it [has room](Outbox::has_room).

use crate::pipe::{Pipe, WritePipe};
use bytes::{Buf, Bytes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Bytes to be written next.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    gathered: Vec<u8>,
    /// Bytes of `gathered` that are written.
    written: usize,
    /// Behind what is gathered.
    content: Bytes,
    /// Instead of content. Boxed, for most connections never have one.
    pipe: Option<Box<Pipe>>,
    /// Behind the content or the pipe.
    tail: &'static [u8],
    /// A byte was taken since the last clearance.
    has_written: bool,
}

/// Content up to this length is copied, so that it goes out with its head, and with other small parts.
const SMALL_BYTES: usize = 4 << 10;
/// With as much gathered, it is written before more is taken.
const GATHERED_MAX: usize = 16 << 10;
/// Room that is kept for the next message.
const KEPT_BYTES: usize = 2 << 10;

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.gathered.is_empty() && !self.has_content()
    }

    /// A further part may be added.
    pub(crate) fn has_room(&self) -> bool {
        !self.has_content() && self.gathered.len() < GATHERED_MAX
    }

    /// Place for heads and other bytes that are made here; while there is room.
    pub(crate) fn gathered(&mut self) -> &mut Vec<u8> {
        debug_assert!(!self.has_content(), "bytes in the wrong order");
        &mut self.gathered
    }

    /// Adds a part of a body in its frame; while there is room.
    pub(crate) fn put(&mut self, prefix: &[u8], content: Bytes, tail: &'static [u8]) {
        let gathered = self.gathered();
        gathered.extend_from_slice(prefix);
        if content.len() <= SMALL_BYTES {
            gathered.extend_from_slice(&content);
            gathered.extend_from_slice(tail);
        } else {
            (self.content, self.tail) = (content, tail);
        }
    }

    /// Adds a part of a body that is in a pipe; while there is room. It is written by
    /// [`poll_write_pipe`](Self::poll_write_pipe).
    pub(crate) fn put_pipe(&mut self, prefix: &[u8], pipe: Pipe, tail: &'static [u8]) {
        self.gathered().extend_from_slice(prefix);
        (self.pipe, self.tail) = (Some(Box::new(pipe)), tail);
    }

    /// Adds the end of a body behind everything; it is empty, or that of a body in chunks.
    pub(crate) fn put_end(&mut self, end: &'static [u8]) {
        match (self.has_content(), end.is_empty()) {
            (_, true) => {}
            (false, false) => self.gathered.extend_from_slice(end),
            // The end of the chunk, the last chunk and no trailers.
            (true, false) => self.tail = b"\r\n0\r\n\r\n",
        }
    }

    /// The first byte is written already.
    pub(crate) fn skip_byte(&mut self) {
        self.written += 1;
    }

    /// A byte was taken since the last clearance.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.gathered.clear();
        (self.written, self.content, self.tail, self.has_written) = (0, Bytes::new(), b"", false);
        self.pipe = None;
    }

    /// Releases memory: for a connection that falls idle.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.gathered = Vec::new();
        }
    }

    /// Writes until nothing is left, but for what is in a pipe or behind one.
    pub(crate) fn poll_write<Io: AsyncWrite + Unpin>(
        &mut self,
        io: &mut Io,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let tail = if self.pipe.is_none() { self.tail } else { b"" };
            let parts = [&self.gathered[self.written..], &self.content[..], tail];
            let left: usize = parts.iter().map(|part| part.len()).sum();
            if left == 0 {
                self.gathered.clear();
                if self.gathered.capacity() > GATHERED_MAX {
                    self.gathered.shrink_to(KEPT_BYTES);
                }
                self.written = 0;
                return Poll::Ready(Ok(()));
            }
            let io = Pin::new(&mut *io);
            let mut written = if parts[0].len() == left {
                ready!(io.poll_write(cx, parts[0]))?
            } else {
                ready!(io.poll_write_vectored(cx, &parts.map(IoSlice::new)))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_written = true;
            let of_gathered = written.min(parts[0].len());
            self.written += of_gathered;
            written -= of_gathered;
            let of_content = written.min(self.content.len());
            self.content.advance(of_content);
            self.tail = &self.tail[written - of_content..];
        }
    }

    /// Writes until nothing is left, to a stream that takes pipes.
    pub(crate) fn poll_write_pipe<Io: AsyncWrite + Unpin>(
        &mut self,
        io: &mut Io,
        cx: &mut Context<'_>,
        write_pipe: WritePipe<Io>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_write(io, cx))?;
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Ok(())) };
        while !pipe.is_empty() {
            if ready!(write_pipe(io, cx, pipe))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        self.pipe = None;
        self.poll_write(io, cx)
    }

    fn has_content(&self) -> bool {
        !self.content.is_empty() || !self.tail.is_empty() || self.pipe.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::Pipes;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Takes this many bytes of each write, and keeps them.
    struct Narrow(usize, Vec<u8>);

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = self.0.min(bytes.len());
            self.1.extend_from_slice(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let taken = self.0.min(all.len());
            self.1.extend_from_slice(&all[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// A pipe with these bytes.
    fn pipe(bytes: &[u8]) -> Pipe {
        let (mut from, source) = UnixStream::pair().unwrap();
        from.write_all(bytes).unwrap();
        let mut pipe = Pipes::new(1).take().unwrap();
        assert_eq!(pipe.fill(&source, u64::MAX).unwrap(), bytes.len());
        pipe
    }

    fn write_pipe(io: &mut Narrow, _: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        let (sink, mut to) = UnixStream::pair().unwrap();
        let mut taken = vec![0; pipe.drain(&sink).unwrap()];
        to.read_exact(&mut taken).unwrap();
        io.1.extend(&taken);
        Poll::Ready(Ok(taken.len()))
    }

    #[test]
    fn a_pipe_is_written_between_what_comes_before_it_and_its_tail() {
        for (end, rest) in [(&b""[..], "\r\n"), (b"0\r\n\r\n", "\r\n0\r\n\r\n")] {
            let (mut outbox, mut io) = (Outbox::default(), Narrow(3, Vec::new()));
            outbox.gathered().extend_from_slice(b"head");
            outbox.put_pipe(b"7\r\n", pipe(b"content"), b"\r\n");
            outbox.put_end(if end.is_empty() { b"" } else { b"0\r\n\r\n" });
            assert!(!outbox.has_room() && !outbox.is_empty());
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(matches!(outbox.poll_write_pipe(&mut io, &mut cx, write_pipe), Poll::Ready(Ok(()))));
            assert!(outbox.is_empty() && outbox.has_room());
            assert_eq!(String::from_utf8(io.1).unwrap(), format!("head7\r\ncontent{rest}"));
        }
    }

    #[test]
    fn everything_is_written_in_order_however_little_is_taken() {
        let long = Bytes::from(vec![b'x'; SMALL_BYTES + 1]);
        for (content, end) in
            [(&long, &b"0\r\n\r\n"[..]), (&long, b""), (&Bytes::from_static(b"hi"), b"0\r\n\r\n")]
        {
            let expected = [b"head", &b"1\r\n"[..], content, b"\r\n", end].concat();
            for width in [1, 2, 3, 5, 1_000, 1_000_000] {
                let (mut outbox, mut io) = (Outbox::default(), Narrow(width, Vec::new()));
                outbox.gathered().extend_from_slice(b"head");
                outbox.put(b"1\r\n", content.clone(), b"\r\n");
                outbox.put_end(if end.is_empty() { b"" } else { b"0\r\n\r\n" });
                let mut cx = Context::from_waker(std::task::Waker::noop());
                assert!(matches!(outbox.poll_write(&mut io, &mut cx), Poll::Ready(Ok(()))));
                assert!(io.1 == expected && outbox.is_empty() && outbox.has_room(), "by {width}");
            }
        }
    }
}

//! The client's connection as the gateway sees it, below TLS: counts bytes, notices when a response has left,
//! and gives up on a client that does not read.
//!
//! [`Wire`] is shared: hyper reads and writes through [`WireIo`], while the list of responses awaiting their
//! acknowledgement keeps the socket open and asks the kernel about it. All of it stays on one worker's
//! thread.

use flashweir_core::{Duration, Instant};
use flashweir_http::pipe::{Pipe, PipeSink};
use flashweir_kernel::TcpInfo;
use flashweir_runtime::Clock;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A client's socket and what was sent through it.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    clock: Clock,
    bytes_read: Cell<u64>,
    bytes_written: Cell<u64>,
    marks_asked: Cell<u32>,
    marks_met: Cell<u32>,
    last_met: Cell<MarkMet>,
}

/// Names one response's end in the stream of bytes; met at the first flush after it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u32);

/// Position and time at which a response's last byte was handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkMet {
    /// Bytes written on the connection up to and including the response.
    pub(crate) position: u64,
    /// Time at which the kernel had taken them.
    pub(crate) at: Instant,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, clock: Clock) -> Rc<Self> {
        Rc::new(Self {
            stream,
            clock,
            bytes_read: Cell::new(0),
            bytes_written: Cell::new(0),
            marks_asked: Cell::new(0),
            marks_met: Cell::new(0),
            last_met: Cell::new(MarkMet { position: 0, at: Instant::ZERO }),
        })
    }

    /// Bytes the kernel took from us so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written.get()
    }

    /// Bytes the client sent us so far, as taken from the kernel.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    /// Asks to remember where the stream stands when hyper next flushes. hyper flushes only when its own
    /// buffer is empty, so the first flush after a body's end is the moment the response has left the
    /// program.
    pub(crate) fn ask_mark(&self) -> Mark {
        self.marks_asked.set(self.marks_asked.get().wrapping_add(1));
        Mark(self.marks_asked.get())
    }

    /// End of the response asked about; `None` while it is still in a buffer. A later response on the same
    /// connection may have moved the mark on: it is then too late rather than too early.
    pub(crate) fn mark_met(&self, mark: Mark) -> Option<MarkMet> {
        let behind = mark.0.wrapping_sub(self.marks_met.get());
        let met = behind == 0 || behind > u32::MAX / 2;
        met.then(|| self.last_met.get())
    }

    /// The kernel's state of the connection; one system call.
    pub(crate) fn tcp_info(&self) -> io::Result<TcpInfo> {
        flashweir_kernel::tcp_info(&self.stream)
    }

    /// Makes the coming close a reset: a response cut short must not look complete to a client that takes the
    /// end of the connection for the end of the response (HTTP/1.0, RFC 9112 §6.3).
    pub(crate) fn reset_on_close(&self) {
        // Failing only means that the socket is dead already.
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    /// Ends the connection now, and as broken: what reads and writes it finds it closed.
    pub(crate) fn cut(&self) {
        self.reset_on_close();
        // Failing only means that the socket is dead already.
        let _ = socket2::SockRef::from(&self.stream).shutdown(Shutdown::Both);
    }

    /// Reads and throws away what the client still sends, until it closes, `most_bytes` came or the caller
    /// stops polling. Closing with unread bytes makes the kernel send a reset, which would destroy the answer
    /// in flight.
    pub(crate) async fn discard(&self, most_bytes: usize) {
        let mut left = most_bytes;
        let mut trash = [0; 4_096];
        while left > 0 && self.stream.readable().await.is_ok() {
            match self.stream.try_read(&mut trash) {
                Ok(0) => return,
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Resolves when the connection is reset.
    pub(crate) async fn broken(&self) {
        // Failing means that the runtime ends.
        let _ = self.stream.ready(Interest::ERROR).await;
    }

    fn shut_down_writing(&self) -> io::Result<()> {
        match socket2::SockRef::from(&self.stream).shutdown(Shutdown::Write) {
            // The client was faster.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }

    fn flushed(&self) {
        if self.marks_asked != self.marks_met {
            self.last_met.set(MarkMet { position: self.bytes_written(), at: self.clock.now() });
            self.marks_met.set(self.marks_asked.get());
        }
    }
}

/// Stream that hyper (or rustls) reads and writes: the wire plus the write-stall timeout.
#[derive(Debug)]
pub(crate) struct WireIo {
    wire: Rc<Wire>,
    stall_timeout: Duration,
    /// Allocated at the first stall, then kept: most connections never stall.
    stall: Option<Pin<Box<Sleep>>>,
    stalled: bool,
}

impl WireIo {
    /// `stall_timeout`: how long the client may leave our bytes unread before the connection fails.
    pub(crate) fn new(wire: Rc<Wire>, stall_timeout: Duration) -> Self {
        Self { wire, stall_timeout, stall: None, stalled: false }
    }

    /// One write attempt after another until the kernel takes something, refuses, or the client stalled too
    /// long.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.wire.stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_stalled(cx),
            }
            match write(&self.wire.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    self.stalled = false;
                    self.wire.bytes_written.set(self.wire.bytes_written() + count as u64);
                    return Poll::Ready(Ok(count));
                }
            }
        }
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let sleep = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.stall_timeout)));
        if !self.stalled {
            sleep.as_mut().reset(tokio::time::Instant::now() + self.stall_timeout);
            self.stalled = true;
        }
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")))
    }
}

impl AsyncRead for WireIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = &self.wire.stream;
        loop {
            ready!(stream.poll_read_ready(cx))?;
            let room = buf.remaining();
            match stream.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    self.wire.bytes_read.set(self.wire.bytes_read() + count as u64);
                    if count > 0 && count < room {
                        // The kernel's buffer is empty now. Marking it so spares the read that would only
                        // return "would block", one system call for each request (tokio's own streams do the
                        // same).
                        let _ = stream.try_io(Interest::READABLE, || {
                            io::Result::<()>::Err(io::ErrorKind::WouldBlock.into())
                        });
                    }
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for WireIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.flushed();
        Poll::Ready(self.wire.shut_down_writing())
    }
}

impl PipeSink for WireIo {
    fn poll_write_pipe(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_io(Interest::WRITABLE, || pipe.drain(stream)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair(stall_timeout: Duration) -> (Rc<Wire>, WireIo, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let client = TcpStream::connect(listener.local_addr().expect("address")).await.expect("connect");
        let (server, _) = listener.accept().await.expect("accept");
        let wire = Wire::new(server, Clock::start());
        (wire.clone(), WireIo::new(wire, stall_timeout), client)
    }

    #[tokio::test]
    async fn bytes_are_counted_and_a_mark_is_met_at_the_flush_after_it() {
        let (wire, mut io, mut client) = pair(Duration::from_secs(60)).await;
        io.write_all(b"first").await.expect("write");
        io.flush().await.expect("flush");
        let mark = wire.ask_mark();
        assert_eq!(wire.mark_met(mark), None, "nothing flushed since it was asked for");
        io.write_all(b", second").await.expect("write");
        assert_eq!(wire.mark_met(mark), None);
        io.flush().await.expect("flush");
        assert_eq!(wire.mark_met(mark).expect("met").position, 13);
        assert_eq!(wire.bytes_written(), 13);

        client.write_all(b"hello").await.expect("write");
        let mut read = [0; 5];
        io.read_exact(&mut read).await.expect("read");
        assert_eq!((&read, wire.bytes_read()), (b"hello", 5));
    }

    #[tokio::test]
    async fn a_second_read_still_sees_what_came_after_a_short_one() {
        let (_wire, mut io, mut client) = pair(Duration::from_secs(60)).await;
        let mut buffer = [0; 64];
        for round in 0..50u8 {
            client.write_all(&[round; 3]).await.expect("write");
            let mut got = 0;
            while got < 3 {
                got += io.read(&mut buffer[got..]).await.expect("read");
            }
            assert_eq!(&buffer[..3], &[round; 3]);
        }
        drop(client);
        assert_eq!(io.read(&mut buffer).await.expect("end"), 0);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_fails_the_write_after_the_timeout() {
        let (_wire, mut io, client) = pair(Duration::from_millis(30)).await;
        let block = vec![0u8; 1 << 20];
        let error = loop {
            if let Err(error) = io.write_all(&block).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test]
    async fn discarding_ends_with_the_client() {
        let (wire, _io, mut client) = pair(Duration::from_secs(60)).await;
        client.write_all(&[1; 10_000]).await.expect("write");
        client.shutdown().await.expect("shutdown");
        wire.discard(1 << 20).await;
    }
}

//! An upstream's socket, which the pool asks whether it is readable.

use crate::pipe::Pipe;
use socket2::SockRef;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    /// Returns whether a read would return at once: the upstream has ended the connection, or sent bytes that
    /// no request asked for.
    ///
    /// The reactor's last report costs no system call. `asks_kernel` also notices what came since: one
    /// `recv`.
    pub(super) fn is_readable(&self, asks_kernel: bool) -> bool {
        let peek = || SockRef::from(&self.0).peek(&mut [MaybeUninit::uninit()]);
        let peeked = if asks_kernel { peek() } else { self.0.try_io(Interest::READABLE, peek) };
        !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Moves at most `bytes_max` of what has come into a pipe that is empty; 0 at the end of the connection.
    pub(super) fn poll_fill(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        bytes_max: u64,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_io(Interest::READABLE, || pipe.fill(&self.0, bytes_max)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }
}

/// One attempt after another until the kernel takes something or refuses.
fn poll_write_with(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    write: impl Fn(&TcpStream) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        match write(stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(stream.poll_write_ready(cx))?,
            other => return Poll::Ready(other),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = &self.0;
        loop {
            ready!(stream.poll_read_ready(cx))?;
            let room = buf.remaining();
            match stream.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    if count > 0 && count < room {
                        // The kernel's buffer is empty now. Marking it so spares the read that would only
                        // return "would block", as tokio's own streams do.
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

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        poll_write_with(&self.0, cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_write_with(&self.0, cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.0).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream as Peer};
    use tokio::io::AsyncReadExt as _;

    async fn pair() -> (Socket, Peer) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Socket::new(stream), listener.accept().unwrap().0)
    }

    /// The peer is a blocking socket on the same thread, so the reactor has no turn between its act and the
    /// question.
    #[tokio::test]
    async fn the_kernel_knows_of_bytes_and_of_an_end_before_the_reactor_does() {
        let (socket, mut peer) = pair().await;
        assert!(!socket.is_readable(false) && !socket.is_readable(true), "quiet");
        peer.write_all(b"stray").unwrap();
        assert!(!socket.is_readable(false), "the reactor has had no turn");
        assert!(socket.is_readable(true), "stray bytes");
        socket.0.readable().await.unwrap();
        assert!(socket.is_readable(false), "the reactor has reported them");

        let (socket, peer) = pair().await;
        drop(peer);
        assert!(socket.is_readable(true), "close-wait");
    }

    #[tokio::test]
    async fn a_socket_that_was_read_empty_is_quiet_again() {
        let (mut socket, mut peer) = pair().await;
        peer.write_all(b"answer").unwrap();
        assert_eq!(socket.read(&mut [0; 64]).await.unwrap(), 6);
        assert!(!socket.is_readable(false) && !socket.is_readable(true));
    }
}

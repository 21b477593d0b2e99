//! A stream of HTTP/2 as the client's end of a tunnel.

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads what the client sends on a stream and writes to it. Dropped before both halves have ended, it resets
/// the stream.
pub(super) struct StreamIo {
    to_client: SendStream<Bytes>,
    client: RecvStream,
    /// Came and was not read yet.
    ahead: Bytes,
}

impl StreamIo {
    pub(super) fn new(to_client: SendStream<Bytes>, client: RecvStream) -> Self {
        Self { to_client, client, ahead: Bytes::new() }
    }
}

impl AsyncRead for StreamIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.ahead.is_empty() {
            match ready!(self.client.poll_data(cx)) {
                Some(Ok(data)) => self.ahead = data,
                None => return Poll::Ready(Ok(())),
                // A client that is done with the tunnel may say so (RFC 8441 §5).
                Some(Err(error)) if matches!(error.reason(), Some(Reason::NO_ERROR | Reason::CANCEL)) => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
        let bytes = self.ahead.len().min(buf.remaining());
        buf.put_slice(&self.ahead[..bytes]);
        self.ahead.advance(bytes);
        // Fails only where the stream has ended.
        let _ = self.client.flow_control().release_capacity(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StreamIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.to_client.reserve_capacity(bytes.len());
        let room = loop {
            match self.to_client.capacity() {
                0 => match ready!(self.to_client.poll_capacity(cx)) {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                    None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                },
                room => break room,
            }
        };
        let bytes = &bytes[..bytes.len().min(room)];
        let sent = self.to_client.send_data(Bytes::copy_from_slice(bytes), false);
        Poll::Ready(sent.map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.to_client.send_data(Bytes::new(), true).map_err(io::Error::other))
    }
}

//! Reads no more at once than a bound.
//!
//! hyper doubles its read buffer whenever a read fills it, up to the bound on a response's head, and hands
//! the whole of it on as one part of a body. A client that reads slowly would keep parts of half a megabyte
//! in memory, twice; with reads that stay below a bound, the buffer stops growing there, while heads may
//! still be as long as before.

use flashweir_core::limits::UPSTREAM_READ_BYTES;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose reads bring less than [`UPSTREAM_READ_BYTES`] each.
#[derive(Debug)]
pub(super) struct SmallReads<Io>(Io);

/// A read that brings as much as hyper's buffer holds makes it double.
const MOST: usize = UPSTREAM_READ_BYTES - 1;

impl<Io> SmallReads<Io> {
    pub(super) fn new(io: Io) -> Self {
        Self(io)
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for SmallReads<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() <= MOST {
            return Pin::new(&mut self.0).poll_read(cx, buf);
        }
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(MOST));
        let polled = Pin::new(&mut self.0).poll_read(cx, &mut part);
        let filled = part.filled().len();
        buf.advance(filled);
        polled
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for SmallReads<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

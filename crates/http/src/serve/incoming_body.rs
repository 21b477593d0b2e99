//! Body of a client's request, over HTTP/1 or HTTP/2.

use crate::interim::Interims;
use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Body of a request as it arrives from the client. A client that sent `Expect: 100-continue` is sent 100 at
/// the first poll of the body over HTTP/1.1, and over HTTP/2 if that poll has to wait for data (RFC 9110
/// §10.1.1).
#[derive(Debug)]
pub enum IncomingBody {
    /// Read by hyper.
    Http1(Incoming),
    /// Of one stream.
    Http2(StreamBody),
    /// There is none: the stream is to be a tunnel.
    None,
}

/// DATA and trailers of one HTTP/2 stream.
#[derive(Debug)]
pub struct StreamBody {
    stream: RecvStream,
    /// Remaining bytes of the length that the client announced; the HTTP/2 library enforces it.
    left: Option<u64>,
    is_data_over: bool,
    /// Sender of `100 Continue` for a client that waits for it, until it is sent or the body has begun.
    expects_continue: Option<Interims>,
}

/// A request's body that broke off, or whose framing is wrong.
#[derive(Debug, thiserror::Error)]
pub enum IncomingBodyError {
    /// In HTTP/1.
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    /// In HTTP/2: the client reset the stream, or the connection ended.
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

impl StreamBody {
    pub(super) fn new(
        stream: RecvStream,
        announced: Option<u64>,
        expects_continue: Option<Interims>,
    ) -> Self {
        Self { stream, left: announced, is_data_over: false, expects_continue }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.is_data_over {
            let polled = self.stream.poll_data(cx);
            if let Some(interims) = self.expects_continue.take()
                && polled.is_pending()
            {
                interims.say_continue();
            }
            if let Some(data) = ready!(polled) {
                let data = data?;
                // Fails only where the stream has ended.
                let _ = self.stream.flow_control().release_capacity(data.len());
                self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            self.is_data_over = true;
        }
        self.stream.poll_trailers(cx).map(|trailers| Some(trailers.transpose()?.map(Frame::trailers)))
    }

    fn size_hint(&self) -> SizeHint {
        let left = if self.stream.is_end_stream() { Some(0) } else { self.left };
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        match &mut *self {
            Self::Http1(body) => Pin::new(body).poll_frame(cx).map_err(IncomingBodyError::Http1),
            Self::Http2(body) => body.poll_frame(cx).map_err(IncomingBodyError::Http2),
            Self::None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.stream.is_end_stream(),
            Self::None => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
            Self::None => SizeHint::with_exact(0),
        }
    }
}

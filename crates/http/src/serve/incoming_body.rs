//! Body of a client's request, over HTTP/1 or HTTP/2.

use crate::interim::Interims;
use crate::violation::FramingViolation;
use bytes::Bytes;
use flashweir_http1::body::BodyFraming;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Body of a request as it arrives from the client. A client that sent `Expect: 100-continue` is sent 100 at
/// the first poll of the body that has to wait for data (RFC 9110 §10.1.1).
#[derive(Debug)]
pub enum IncomingBody {
    /// Of the request under way on a connection.
    Http1(Http1Body),
    /// Of one stream.
    Http2(StreamBody),
    /// There is none.
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
    Http1(#[from] RequestBodyError),
    /// In HTTP/2: the client reset the stream, or the connection ended.
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

/// Body of one request of HTTP/1.1.
pub struct Http1Body {
    source: Rc<dyn BodySource>,
    /// Number of its request on the connection.
    number: u64,
    /// Bytes to come, where the client has said how many.
    left: Option<u64>,
    is_ended: bool,
}

/// Failure of a body over HTTP/1.1.
#[derive(Debug, thiserror::Error)]
pub enum RequestBodyError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client, or this server, ended the connection before the body's end.
    #[error("the request's body broke off")]
    Incomplete,
    /// Its framing is refused.
    #[error("the request's body is not framed as HTTP: {0}")]
    Framing(FramingViolation),
}

/// A connection, as the bodies of its requests see it.
pub(super) trait BodySource {
    /// The next part of the body of this request.
    fn poll_frame(
        &self,
        number: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>>;

    /// Returns whether no part follows the one that was given last.
    fn has_ended(&self, number: u64) -> bool;

    /// The rest of the body is not wanted.
    fn drop_body(&self, number: u64);
}

impl Http1Body {
    pub(super) fn new(source: Rc<dyn BodySource>, number: u64, framing: BodyFraming) -> Self {
        let left = match framing {
            BodyFraming::Length(length) => Some(length),
            _ => None,
        };
        Self { source, number, left, is_ended: false }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        let polled = ready!(self.source.poll_frame(self.number, cx));
        match &polled {
            Some(Ok(frame)) => {
                if let (Some(left), Some(data)) = (&mut self.left, frame.data_ref()) {
                    *left = left.saturating_sub(data.len() as u64);
                }
                self.is_ended = self.source.has_ended(self.number);
            }
            Some(Err(_)) => {}
            None => self.is_ended = true,
        }
        Poll::Ready(polled)
    }
}

impl Drop for Http1Body {
    fn drop(&mut self) {
        if !self.is_ended {
            self.source.drop_body(self.number);
        }
    }
}

impl fmt::Debug for Http1Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1Body").field("left", &self.left).finish_non_exhaustive()
    }
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
            Self::Http1(body) => body.poll_frame(cx).map_err(IncomingBodyError::Http1),
            Self::Http2(body) => body.poll_frame(cx).map_err(IncomingBodyError::Http2),
            Self::None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_ended,
            Self::Http2(body) => body.stream.is_end_stream(),
            Self::None => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.left.map_or_else(SizeHint::default, SizeHint::with_exact),
            Self::Http2(body) => body.size_hint(),
            Self::None => SizeHint::with_exact(0),
        }
    }
}

//! Bodies: a request's, which may be kept so that it can be sent again, and a response's.

use bytes::Bytes;
use flashweir_core::limits::EGRESS_REPLAY_BYTES;
use flashweir_http::fields::prepare_trailers;
use flashweir_http::serve::{IncomingBody, IncomingBodyError};
use flashweir_http::upstream::UpstreamBody;
use flashweir_tower::client::WatchedBody;
use http::{HeaderMap, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A request's body.
pub(crate) enum RequestBody {
    /// All of it, or what is still to be sent of it.
    Kept(Option<Bytes>),
    /// As it comes.
    Streamed(IncomingBody),
}

/// A response's body.
pub(crate) enum Body {
    /// Our own.
    Own(Full<Bytes>),
    /// The upstream's.
    Forwarded(Pin<Box<AnswerBody>>),
}

/// The body of a server's answer, whose trailers its node hears.
pub(crate) type AnswerBody = WatchedBody<UpstreamBody<RequestBody>>;

pub(crate) type BodyError = Box<dyn StdError + Send + Sync>;

impl RequestBody {
    /// Keeps a body of known, small length; another one goes as it comes, and cannot be sent again. In
    /// HTTP/2, trailers may follow a body of any length, so that only none at all is kept.
    ///
    /// # Errors
    /// Errors of the process's connection.
    pub(crate) async fn take(body: IncomingBody, version: Version) -> Result<Self, IncomingBodyError> {
        if body.is_end_stream() {
            return Ok(Self::Kept(None));
        }
        let is_small = body.size_hint().exact().is_some_and(|length| length <= EGRESS_REPLAY_BYTES as u64);
        if version > Version::HTTP_11 || !is_small {
            return Ok(Self::Streamed(body));
        }
        Ok(Self::Kept(Some(body.collect().await?.to_bytes())))
    }

    /// The same once more, if it was kept.
    pub(crate) fn copy(&self) -> Option<Self> {
        match self {
            Self::Kept(bytes) => Some(Self::Kept(bytes.clone())),
            Self::Streamed(_) => None,
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Kept(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Streamed(body) => clean(Pin::new(body).poll_frame(cx)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Kept(bytes) => bytes.is_none(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Kept(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Streamed(body) => body.size_hint(),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Own(body) => clean(Pin::new(body).poll_frame(cx)),
            Self::Forwarded(body) => clean(body.as_mut().poll_frame(cx)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Forwarded(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Forwarded(body) => body.size_hint(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own(_) => "Own",
            Self::Forwarded(_) => "Forwarded",
        })
    }
}

type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// Trailers without what belongs to one hop.
fn clean<E: Into<BodyError>>(polled: Polled<E>) -> Polled<BodyError> {
    polled.map(|frame| {
        frame.map(|frame| {
            let mut frame = frame.map_err(Into::into)?;
            let trailers: Option<&mut HeaderMap> = frame.trailers_mut();
            trailers.into_iter().for_each(prepare_trailers);
            Ok(frame)
        })
    })
}

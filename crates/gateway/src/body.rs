//! The body of any answer to a client.

use crate::access_log::{AnswerSource, Entry};
use crate::cache::CopyBody;
use crate::finish::ForwardedBody;
use bytes::Bytes;
use flashweir_http::pipe::{PipeSource, PolledPipe};
use flashweir_http::upstream::UpstreamError;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// Body sent to a client: of the gateway's own answer, an upstream's response, or a stored one.
    #[project = BodyProjection]
    pub(crate) enum Body {
        Own { #[pin] body: Full<Bytes> },
        Forwarded { #[pin] body: ForwardedBody },
        Copy { #[pin] body: CopyBody },
        Logged { body: LoggedBody },
    }
}

impl Body {
    /// An answer that is complete already.
    pub(crate) fn own(bytes: Bytes) -> Self {
        Self::Own { body: Full::new(bytes) }
    }

    /// The same, whose end writes the line of this request.
    pub(crate) fn logged(self, entry: Box<Entry>) -> Self {
        entry.set_complete(self.is_end_stream());
        Self::Logged { body: LoggedBody { body: Box::pin(self), entry } }
    }

    /// Its source, for the access log.
    pub(crate) fn source(&self) -> AnswerSource {
        match self {
            Self::Own { .. } => AnswerSource::Gateway,
            Self::Copy { .. } => AnswerSource::Cache,
            Self::Forwarded { body } => AnswerSource::Upstream(body.upstream()),
            Self::Logged { body } => body.body.source(),
        }
    }
}

impl PipeSource for Body {
    fn poll_pipe(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledPipe {
        match self.project() {
            BodyProjection::Forwarded { body } => body.poll_pipe(cx),
            BodyProjection::Logged { body } => body.poll_pipe(cx),
            BodyProjection::Own { .. } | BodyProjection::Copy { .. } => Poll::Ready(None),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        match self.project() {
            BodyProjection::Own { body } => body.poll_frame(cx).map_err(|never| match never {}),
            BodyProjection::Forwarded { body } => body.poll_frame(cx),
            BodyProjection::Copy { body } => body.poll_frame(cx),
            BodyProjection::Logged { body } => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own { body } => body.is_end_stream(),
            Self::Forwarded { body } => body.is_end_stream(),
            Self::Copy { body } => body.is_end_stream(),
            Self::Logged { body } => body.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { body } => body.size_hint(),
            Self::Forwarded { body } => body.size_hint(),
            Self::Copy { body } => body.size_hint(),
            Self::Logged { body } => body.body.size_hint(),
        }
    }
}

/// Body of a response whose request gets a line in the access log when it ends.
pub(crate) struct LoggedBody {
    body: Pin<Box<Body>>,
    entry: Box<Entry>,
}

impl LoggedBody {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let polled = self.body.as_mut().poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => self.passed(frame.data_ref().map_or(0, Bytes::len)),
            Poll::Ready(None) => self.entry.set_complete(true),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn poll_pipe(&mut self, cx: &mut Context<'_>) -> PolledPipe {
        let polled = self.body.as_mut().poll_pipe(cx);
        if let Poll::Ready(Some(Ok(pipe))) = &polled {
            self.passed(pipe.len());
        }
        polled
    }

    fn passed(&self, bytes: usize) {
        self.entry.passed(bytes);
        self.entry.set_complete(self.body.is_end_stream());
    }
}

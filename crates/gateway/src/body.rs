//! The body of any answer to a client.

use crate::access_log::LoggedBody;
use crate::cache::CopyBody;
use crate::finish::ForwardedBody;
use bytes::Bytes;
use flashweir_http::pipe::{PipeSource, PolledPipe};
use flashweir_http::upstream::UpstreamError;
use http_body::{Frame, SizeHint};
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

    /// The upstream whose response it is, by its place in the configuration.
    pub(crate) fn upstream(&self) -> Option<usize> {
        match self {
            Self::Forwarded { body } => Some(body.upstream()),
            Self::Own { .. } | Self::Copy { .. } | Self::Logged { .. } => None,
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
            Self::Logged { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { body } => body.size_hint(),
            Self::Forwarded { body } => body.size_hint(),
            Self::Copy { body } => body.size_hint(),
            Self::Logged { body } => body.size_hint(),
        }
    }
}

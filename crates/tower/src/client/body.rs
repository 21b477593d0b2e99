//! A response's body whose trailers the node hears.

use crate::client::node::Node;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The body of an answer, unchanged. Its trailers are shown to the [`Node`], because a gRPC answer with
    /// messages says only there that a quota is spent ([`Node::hear_trailers`]).
    #[derive(Clone, Debug)]
    pub struct WatchedBody<B> {
        #[pin]
        body: B,
        node: Node,
    }
}

impl<B> WatchedBody<B> {
    /// The body of an answer of this node.
    #[must_use]
    pub fn new(body: B, node: Node) -> Self {
        Self { body, node }
    }

    /// The body itself; trailers that are still to come are not heard.
    #[must_use]
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        let polled = this.body.poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(trailers) = frame.trailers_ref()
        {
            this.node.hear_trailers(trailers);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

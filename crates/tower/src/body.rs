//! Body of an admitted response: its end frees the place.

use crate::gatekeeper::Admitted;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// A response's body, unchanged. Its request is in flight until the body has ended or is dropped; while
    /// the client is slow to take a part, others have its place.
    #[derive(Debug)]
    pub struct AdmittedBody<B> {
        #[pin]
        body: B,
        admitted: Option<Admitted>,
    }
}

impl<B: Body> AdmittedBody<B> {
    pub(crate) fn new(body: B, admitted: Admitted) -> Self {
        if body.is_end_stream() {
            admitted.complete();
            return Self { body, admitted: None };
        }
        Self { body, admitted: Some(admitted) }
    }

    /// A body that needs no place.
    pub(crate) fn without_place(body: B) -> Self {
        Self { body, admitted: None }
    }
}

impl<B: Default> Default for AdmittedBody<B> {
    /// An empty body of a response that needs no place.
    fn default() -> Self {
        Self { body: B::default(), admitted: None }
    }
}

impl<B: Body> Body for AdmittedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        if let Some(admitted) = this.admitted {
            admitted.resume();
        }
        let polled = this.body.as_mut().poll_frame(cx);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Err(_))) => {
                if let Some(admitted) = this.admitted.take() {
                    admitted.fail();
                }
            }
            Poll::Ready(None) => {
                if let Some(admitted) = this.admitted.take() {
                    admitted.complete();
                }
            }
            Poll::Ready(Some(Ok(_))) if this.body.is_end_stream() => {
                if let Some(admitted) = this.admitted.take() {
                    admitted.complete();
                }
            }
            // The client has a part that is not the last; the rest is asked for when it has room.
            Poll::Ready(Some(Ok(_))) => {
                if let Some(admitted) = this.admitted {
                    admitted.pause();
                }
            }
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

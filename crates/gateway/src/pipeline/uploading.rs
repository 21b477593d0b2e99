//! A request's body on its way to the origin, which tells whether its client is waited for.
//!
//! hyper asks for the next part when the origin has room for it. A part that is not there then is the client's to
//! send: until it comes, the origin can do nothing but wait (`slow_clients`).

use super::slow_clients::Yielding;
use bytes::Bytes;
use flashweir_runtime::Clock;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll};

/// A client's body. Watched only where a part of it is still to come and its request has a place at the origin.
#[derive(Debug)]
pub(crate) struct Uploading {
    body: Incoming,
    clock: Clock,
    /// The place; it may be gone before the body.
    place: Weak<Yielding>,
}

impl Uploading {
    /// Tells `place` of its waits; one made by [`Weak::new`] is told nothing, at no cost.
    pub(crate) fn new(body: Incoming, clock: Clock, place: Weak<Yielding>) -> Self {
        Self { body, clock, place }
    }
}

impl Body for Uploading {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(place) = self.place.upgrade() {
            match &polled {
                Poll::Pending => place.owes(self.clock.now()),
                // Nothing goes on: the request is about to fail.
                Poll::Ready(Some(Err(_))) => {}
                Poll::Ready(Some(Ok(_)) | None) => place.sent(self.clock.now()),
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

impl Drop for Uploading {
    fn drop(&mut self) {
        // Whatever the client still has, nobody waits for it.
        if let Some(place) = self.place.upgrade() {
            place.is_owed_nothing();
        }
    }
}

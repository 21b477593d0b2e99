//! A request's body on its way to the origin, which tells whether its client is waited for.
//!
//! hyper asks for the next part when the origin has room for it. A part that is not there then is the client's to
//! send: until it comes, the origin can do nothing but wait (`slow_clients`).

use super::slow_clients::Yielding;
use bytes::Bytes;
use flashweir_http::FramingViolation;
use flashweir_http::fields::prepare_trailers;
use flashweir_http::rules::judge_http2_trailers;
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
    trailers_max: usize,
}

/// Why a client's body cannot be passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// It broke off, or its framing is wrong.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// Its trailers say what trailers may not say.
    #[error("the trailers break a rule: {0}")]
    Trailers(FramingViolation),
}

impl Uploading {
    /// Tells `place` of its waits; one made by [`Weak::new`] is told nothing, at no cost.
    pub(crate) fn new(body: Incoming, clock: Clock, place: Weak<Yielding>, trailers_max: usize) -> Self {
        Self { body, clock, place, trailers_max }
    }

    fn check_trailers(&self, frame: &mut Frame<Bytes>) -> Result<(), UploadError> {
        let Some(trailers) = frame.trailers_mut() else { return Ok(()) };
        // Those of HTTP/1 have been judged, and pass again.
        judge_http2_trailers(trailers, self.trailers_max).map_err(UploadError::Trailers)?;
        prepare_trailers(trailers);
        Ok(())
    }
}

impl Body for Uploading {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(cx).map_err(UploadError::Broken);
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Err(error) = self.check_trailers(frame)
        {
            polled = Poll::Ready(Some(Err(error)));
        }
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

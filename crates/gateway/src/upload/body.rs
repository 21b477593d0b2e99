//! A request's body on its way to the origin: what was gathered of it, then the rest as it comes.
//!
//! hyper asks for the next part when the origin has room for it. A part that is not there then is the
//! client's to send: until it comes, the origin can do nothing but wait. The request's slot at the origin is
//! notified of that (`slow_clients`), and so is the [`UploadRoom`], for the request holds an upstream
//! connection meanwhile.

use super::expectation::Expectation;
use super::room::{HoldOptions, UploadRoom, UploadTicket};
use crate::pipeline::Yielding;
use bytes::Bytes;
use flashweir_core::{Instant, limits};
use flashweir_http::FramingViolation;
use flashweir_http::fields::prepare_trailers;
use flashweir_http::rules::judge_http2_trailers;
use flashweir_http::serve::{IncomingBody, IncomingBodyError};
use flashweir_runtime::Clock;
use flashweir_telemetry::UploadCut;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

/// A body as far as it has come; nearly all requests have none, and then it takes no room.
#[derive(Debug)]
pub(crate) struct PartialBody(Option<Box<Announced>>);

/// A body that the client said there is, and be it an empty one.
#[derive(Debug)]
struct Announced {
    first: Bytes,
    /// The part of the body that has not arrived yet; none when the body is whole.
    rest: Option<IncomingBody>,
    trailers: Option<HeaderMap>,
    was_waited_for: bool,
}

/// Receivers of notices that an upload waits for its client.
#[derive(Clone, Debug)]
pub(crate) struct Watchers {
    /// The request's place at the origin; it may be gone before the body. One made by [`Weak::new`] costs
    /// nothing.
    pub(crate) place: Weak<Yielding>,
    pub(crate) room: Rc<UploadRoom>,
    pub(crate) client: u64,
    pub(crate) pool: HoldOptions,
    /// Reason for which the upload was cut, for the answer to its client.
    pub(crate) cut: Rc<Cell<Option<UploadCut>>>,
}

/// A client's body as an upstream gets it.
#[derive(Debug)]
pub(crate) struct UploadBody(Option<Box<Upload>>);

#[derive(Debug)]
struct Upload {
    body: Announced,
    /// True if hyper has asked for it; an empty body has not ended before.
    was_asked_for: bool,
    clock: Clock,
    watchers: Watchers,
    /// Since the client was waited for.
    ticket: Option<UploadTicket>,
    /// Until the origin wants the body.
    expectation: Option<Expectation>,
    /// Time by which it has to begin, if its origin was asked first.
    begins_until: Option<Instant>,
    trailers_max: usize,
}

/// Reason for which a client's body cannot be passed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// It broke off, or its framing is wrong.
    #[error(transparent)]
    Broken(#[from] IncomingBodyError),
    /// Its trailers say what trailers may not say.
    #[error("the trailers break a rule: {0}")]
    Trailers(FramingViolation),
    /// It came too slowly while others needed its connection.
    #[error("the body came too slowly")]
    Cut,
}

/// Judges trailers (those of HTTP/1 have been judged, and pass again) and makes them fit to be passed on.
pub(super) fn check_trailers(trailers: &mut HeaderMap, most: usize) -> Result<(), UploadError> {
    judge_http2_trailers(trailers, most).map_err(UploadError::Trailers)?;
    prepare_trailers(trailers);
    Ok(())
}

impl PartialBody {
    pub(super) fn new(
        first: Bytes,
        rest: Option<IncomingBody>,
        trailers: Option<HeaderMap>,
        was_waited_for: bool,
    ) -> Self {
        Self(Some(Box::new(Announced { first, rest, trailers, was_waited_for })))
    }

    /// A body of which nothing was read.
    pub(crate) fn untouched(body: IncomingBody) -> Self {
        if body.is_end_stream() {
            return Self(None);
        }
        Self::new(Bytes::new(), Some(body), None, false)
    }

    /// There is none.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Something is still to come.
    pub(crate) fn is_partial(&self) -> bool {
        self.0.as_ref().is_some_and(|body| body.rest.is_some())
    }

    /// Less than a first part has come, and it goes on all the same.
    pub(crate) fn is_short(&self) -> bool {
        let is_short = |body: &Announced| body.first.len() < limits::UPLOAD_FIRST_PART_BYTES;
        self.is_partial() && self.0.as_deref().is_some_and(is_short)
    }

    /// Time has gone by since its request came.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.0.as_ref().is_some_and(|body| body.was_waited_for)
    }

    /// Takes away what is still to come.
    pub(crate) fn take_rest(&mut self) -> Option<IncomingBody> {
        self.0.as_mut()?.rest.take()
    }
}

impl UploadBody {
    /// No body.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// No body where `body` is none.
    pub(crate) fn new(
        body: PartialBody,
        clock: Clock,
        watchers: Watchers,
        expectation: Option<Expectation>,
        trailers_max: usize,
    ) -> Self {
        let upload = |body: Box<Announced>| {
            Box::new(Upload {
                body: *body,
                was_asked_for: false,
                clock,
                watchers,
                ticket: None,
                expectation,
                begins_until: None,
                trailers_max,
            })
        };
        Self(body.0.map(upload))
    }

    /// The same body once more: none, or one held whole. None while a part is still to come, for that part
    /// can be sent once only.
    pub(crate) fn copy(&self) -> Option<Self> {
        let Some(upload) = &self.0 else { return Some(Self::none()) };
        Some(Self(Some(Box::new(upload.copy()?))))
    }
}

impl Upload {
    fn copy(&self) -> Option<Self> {
        let Announced { first, rest: None, trailers, was_waited_for } = &self.body else { return None };
        let body = Announced {
            first: first.clone(),
            rest: None,
            trailers: trailers.clone(),
            was_waited_for: *was_waited_for,
        };
        let (clock, watchers, trailers_max) = (self.clock, self.watchers.clone(), self.trailers_max);
        let is_whole = !self.was_asked_for;
        is_whole.then_some(Self {
            body,
            was_asked_for: false,
            clock,
            watchers,
            ticket: None,
            expectation: None,
            begins_until: None,
            trailers_max,
        })
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        self.was_asked_for = true;
        if let Some(expectation) = &mut self.expectation {
            self.begins_until = Some(ready!(expectation.poll(cx)));
            self.expectation = None;
        }
        if !self.body.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.body.first)))));
        }
        if let Some(why) = self.ticket.as_ref().and_then(UploadTicket::cut) {
            self.watchers.cut.set(Some(why));
            return Poll::Ready(Some(Err(UploadError::Cut)));
        }
        if let Some(trailers) = self.body.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        self.poll_rest(cx)
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let Some(rest) = &mut self.body.rest else { return Poll::Ready(None) };
        let mut polled = Pin::new(rest).poll_frame(cx).map_err(UploadError::Broken);
        let place = self.watchers.place.upgrade();
        match &mut polled {
            Poll::Pending => {
                let now = self.clock.now();
                place.iter().for_each(|place| place.owes(now));
                let Watchers { room, client, pool, .. } = &self.watchers;
                let ticket = self.ticket.get_or_insert_with(|| room.hold(*client, *pool, self.begins_until));
                ticket.waits(now, cx.waker());
            }
            // Nothing goes on: the request is about to fail.
            Poll::Ready(Some(Err(_))) => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(trailers) = frame.trailers_mut()
                    && let Err(error) = check_trailers(trailers, self.trailers_max)
                {
                    return Poll::Ready(Some(Err(error)));
                }
                if self.begins_until.take().is_some() {
                    self.ticket = None;
                }
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                if place.is_some() || self.ticket.is_some() {
                    let now = self.clock.now();
                    place.iter().for_each(|place| place.sent(now));
                    self.ticket.iter().for_each(|ticket| ticket.received(now, bytes));
                }
            }
            Poll::Ready(None) => place.iter().for_each(|place| place.sent(self.clock.now())),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let Announced { first, rest, trailers, .. } = &self.body;
        let is_rest_over = rest.as_ref().is_none_or(IncomingBody::is_end_stream);
        self.was_asked_for && first.is_empty() && trailers.is_none() && is_rest_over
    }

    fn size_hint(&self) -> SizeHint {
        let gathered = self.body.first.len() as u64;
        let rest = self.body.rest.as_ref().map(Body::size_hint).unwrap_or_else(|| SizeHint::with_exact(0));
        let mut hint = SizeHint::new();
        hint.set_lower(gathered + rest.lower());
        // A body of known length is sent with that, and then has no place for trailers.
        if let Some(upper) = rest.upper().filter(|_| self.body.trailers.is_none()) {
            hint.set_upper(gathered + upper);
        }
        hint
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match &mut self.0 {
            Some(upload) => upload.poll(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|upload| upload.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |upload| upload.size_hint())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // What the client has not sent is not waited for.
        if let Some(place) = self.watchers.place.upgrade() {
            place.is_owed_nothing();
        }
    }
}

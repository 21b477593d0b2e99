//! Counts a connection's requests from the service's call to the response body's end: those of HTTP/1 for
//! hyper.

use super::{Connection, IncomingBody, date};
use bytes::Buf;
use http::header::{CONTENT_LENGTH, DATE};
use http::{Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Instant;

/// The service hyper calls: the gateway's, counted.
pub(super) struct Counted<S> {
    service: S,
    connection: Connection,
}

/// One request in flight on its connection.
#[derive(Debug)]
pub(super) struct InFlight(Connection);

pin_project! {
    /// The response to come of a counted request.
    #[derive(Debug)]
    pub struct CountedFuture<F> {
        #[pin]
        response: F,
        in_flight: Option<InFlight>,
        is_http11: bool,
    }
}

pin_project! {
    /// The response body of a counted request.
    #[derive(Debug)]
    pub struct CountedBody<B> {
        #[pin]
        body: B,
        _in_flight: Option<InFlight>,
    }
}

impl<S> Counted<S> {
    pub(super) fn new(service: S, connection: Connection) -> Self {
        Self { service, connection }
    }
}

impl InFlight {
    pub(super) fn begin(connection: &Connection) -> Self {
        connection.state.requests.set(connection.state.requests.get() + 1);
        connection.state.guard.end().begin();
        Self(connection.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let state = &self.0.state;
        if state.guard.end().end() {
            state.idle_since.set(Instant::now());
        }
    }
}

impl<S, F, B, E> Service<Request<Incoming>> for Counted<S>
where
    S: Fn(Request<IncomingBody>, &Connection) -> F,
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Response = Response<CountedBody<B>>;
    type Error = E;
    type Future = CountedFuture<F>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_flight = Some(InFlight::begin(&self.connection));
        let is_http11 = request.version() == Version::HTTP_11;
        let request = request.map(IncomingBody::Http1);
        CountedFuture { response: (self.service)(request, &self.connection), in_flight, is_http11 }
    }
}

impl<F, B, E> Future for CountedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<CountedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.response.poll(cx))?;
        response.headers_mut().entry(DATE).or_insert_with(date::now);
        let in_flight = this.in_flight.take();
        // As hyper will send it: while such a response is silent, only a byte ahead of the next chunk shows
        // that its client has gone.
        if *this.is_http11
            && response.body().size_hint().exact().is_none()
            && !response.headers().contains_key(CONTENT_LENGTH)
            && let Some(in_flight) = &in_flight
        {
            in_flight.0.state.guard.end().begin_chunks();
        }
        Poll::Ready(Ok(response.map(|body| CountedBody { body, _in_flight: in_flight })))
    }
}

impl<B> Body for CountedBody<B>
where
    B: Body,
    B::Data: Buf,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

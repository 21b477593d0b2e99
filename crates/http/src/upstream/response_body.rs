//! A response's body, which owns its upstream connection until it has been read to its end.

use super::RequestBody;
use super::error::{UpstreamError, UpstreamErrorKind};
use super::multiplex::Http2Stream;
use super::pool::{Http1Connection, Http1Pool};
use super::shared::InFlight;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// A connection on loan, with everything that is counted for it.
pub(super) enum Lease<B> {
    Http1 { connection: Http1Connection<B>, pool: Rc<Http1Pool<B>>, in_flight: InFlight },
    Http2 { _stream: Http2Stream<B>, in_flight: InFlight },
}

pin_project! {
    /// The body of an upstream's response.
    ///
    /// Read to its end, its HTTP/1.1 connection goes back to the pool. Dropped before, or failed, the
    /// connection is closed (HTTP/2: the stream is reset), so no server works for a client that has gone. An
    /// end before the announced length is an error, never an end. For a 101 response it must be held as long
    /// as the tunnel.
    pub struct UpstreamBody<B> {
        #[pin]
        incoming: Incoming,
        #[pin]
        silence: Option<Sleep>,
        idle_timeout: Duration,
        index: usize,
        lease: Option<Lease<B>>,
    }
}

impl<B: RequestBody> Lease<B> {
    /// The exchange is over and the connection intact.
    fn give_back(self) {
        if let Self::Http1 { connection, pool, in_flight } = self {
            drop(in_flight);
            pool.give_back(connection);
        }
    }

    fn index(&self) -> usize {
        match self {
            Self::Http1 { in_flight, .. } | Self::Http2 { in_flight, .. } => in_flight.index(),
        }
    }
}

impl<B: RequestBody> UpstreamBody<B> {
    pub(super) fn new(
        incoming: Incoming,
        lease: Lease<B>,
        is_switching: bool,
        idle_timeout: Duration,
    ) -> Self {
        let index = lease.index();
        let lease = if incoming.is_end_stream() && !is_switching {
            lease.give_back();
            None
        } else {
            Some(lease)
        };
        Self { incoming, silence: None, idle_timeout, index, lease }
    }

    /// The upstream that it comes from: a place in the configured addresses.
    #[must_use]
    pub fn upstream(&self) -> usize {
        self.index
    }
}

impl<B: RequestBody> Body for UpstreamBody<B> {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let mut this = self.project();
        match this.incoming.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.silence.set(None);
                if this.incoming.is_end_stream() {
                    this.lease.take().into_iter().for_each(Lease::give_back);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                *this.lease = None;
                Poll::Ready(Some(Err(UpstreamError::from_hyper(error, *this.index))))
            }
            Poll::Ready(None) => {
                this.lease.take().into_iter().for_each(Lease::give_back);
                Poll::Ready(None)
            }
            Poll::Pending => {
                // Most bodies never wait, so the timer is made only now.
                if this.silence.is_none() {
                    this.silence.set(Some(sleep(*this.idle_timeout)));
                }
                let is_silent = this.silence.as_pin_mut().is_some_and(|sleep| sleep.poll(cx).is_ready());
                if !is_silent {
                    return Poll::Pending;
                }
                *this.lease = None;
                let error = UpstreamError::new(UpstreamErrorKind::BodyTimeout, Some(*this.index));
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl<B> std::fmt::Debug for UpstreamBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamBody").field("upstream", &self.index).finish_non_exhaustive()
    }
}

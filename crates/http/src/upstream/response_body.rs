//! A response's body, which owns its upstream connection until it has been read to its end.

use super::RequestBody;
use super::early_answer::{EarlyAnswer, settle};
use super::error::{UpstreamError, UpstreamErrorKind};
use super::multiplex::Http2Stream;
use super::pool::{Http1Connection, Http1Pool};
use super::shared::InFlight;
use super::stream::UpstreamStream;
use crate::pipe::Pipe;
use bytes::Bytes;
use flashweir_http1::body::BodyFraming;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep};

/// Source of the body, with everything that is counted for it.
enum Source<B> {
    Http1 { connection: Box<Http1Connection<B>>, pool: Rc<Http1Pool<B>>, _in_flight: InFlight },
    Early { answer: EarlyAnswer, _in_flight: InFlight },
    Http2 { incoming: Incoming, _stream: Http2Stream<B>, _in_flight: InFlight },
    Ended,
}

/// The body of an upstream's response.
///
/// Read to its end, its HTTP/1.1 connection goes back to the pool. Dropped before, or failed, the
/// connection is closed (HTTP/2: the stream is reset), so no server works for a client that has gone. An
/// end before the announced length is an error, never an end. That of a 101 response becomes [a
/// stream](Self::into_stream).
pub struct UpstreamBody<B> {
    /// Made when the body first waits, as most never do.
    silence: Option<Pin<Box<Sleep>>>,
    idle_timeout: Duration,
    index: usize,
    /// Bytes to come of an HTTP/1.1 body that has said how many.
    left: Option<u64>,
    source: Source<B>,
}

impl<B: RequestBody> UpstreamBody<B> {
    pub(super) fn of_http1(
        connection: Box<Http1Connection<B>>,
        pool: &Rc<Http1Pool<B>>,
        in_flight: InFlight,
        idle_timeout: Duration,
    ) -> Self {
        let (index, framing) = (in_flight.index(), connection.exchange.framing());
        let left = match framing {
            BodyFraming::Length(length) => Some(length),
            BodyFraming::None => Some(0),
            _ => None,
        };
        let pool = Rc::clone(pool);
        let source = match (framing, connection.exchange.is_sent()) {
            (BodyFraming::None, true) => {
                pool.give_back(connection);
                Source::Ended
            }
            (BodyFraming::None, false) => {
                spawn_local(settle(connection, pool));
                Source::Ended
            }
            (BodyFraming::Tunnel, _) | (_, true) => Source::Http1 { connection, pool, _in_flight: in_flight },
            (_, false) => {
                Source::Early { answer: EarlyAnswer::start(connection, pool), _in_flight: in_flight }
            }
        };
        Self { silence: None, idle_timeout, index, left, source }
    }

    pub(super) fn of_http2(
        incoming: Incoming,
        stream: Http2Stream<B>,
        in_flight: InFlight,
        idle_timeout: Duration,
    ) -> Self {
        let index = in_flight.index();
        let source = Source::Http2 { incoming, _stream: stream, _in_flight: in_flight };
        Self { silence: None, idle_timeout, index, left: None, source }
    }

    /// The upstream that it comes from: a place in the configured addresses.
    #[must_use]
    pub fn upstream(&self) -> usize {
        self.index
    }

    /// Bytes of content that are still in the upstream's socket, or still to come to it, and can be moved
    /// from there into pipes.
    #[must_use]
    pub fn movable_bytes(&self) -> u64 {
        match &self.source {
            Source::Http1 { connection, .. } => connection.exchange.movable().unwrap_or(0),
            Source::Early { .. } | Source::Http2 { .. } | Source::Ended => 0,
        }
    }

    /// Moves the next part of the body into a pipe that is empty; `None` where it is to be read as a frame.
    pub fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<Option<Result<(), UpstreamError>>> {
        let Source::Http1 { connection, .. } = &mut self.source else { return Poll::Ready(None) };
        match connection.exchange.poll_fill(cx, pipe) {
            Poll::Ready(Some(Ok(()))) => self.receive(pipe.len() as u64),
            Poll::Ready(Some(Err(error))) => {
                self.source = Source::Ended;
                return Poll::Ready(Some(Err(error)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return self.poll_silence(cx).map(|error| Some(Err(error))),
        }
        Poll::Ready(Some(Ok(())))
    }

    /// Counts content that has come, and sees whether it was the last.
    fn receive(&mut self, bytes: u64) {
        self.silence = None;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes);
        }
        // The task that reads an early answer knows its end, too.
        if self.source.has_ended() || self.left == Some(0) {
            self.source.end();
        }
    }

    /// Ready once the upstream has been silent for too long; that ends the body.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamError> {
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(self.idle_timeout)));
        ready!(silence.as_mut().poll(cx));
        self.source = Source::Ended;
        Poll::Ready(UpstreamError::new(UpstreamErrorKind::BodyTimeout, Some(self.index)))
    }

    /// The stream that a 101 response has made of its connection; none for any other.
    #[must_use]
    pub fn into_stream(self) -> Option<UpstreamStream> {
        match self.source {
            Source::Http1 { connection, _in_flight, .. }
                if connection.exchange.framing() == BodyFraming::Tunnel =>
            {
                Some(connection.into_stream(_in_flight))
            }
            _ => None,
        }
    }
}

impl<B: RequestBody> Source<B> {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        index: usize,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        match self {
            Self::Http1 { connection, .. } => connection.exchange.poll_frame(cx),
            Self::Early { answer, .. } => answer.poll_frame(cx),
            Self::Http2 { incoming, .. } => {
                Pin::new(incoming).poll_frame(cx).map_err(|error| UpstreamError::from_hyper(error, index))
            }
            Self::Ended => Poll::Ready(None),
        }
    }

    /// Returns whether no further frame comes.
    fn has_ended(&mut self) -> bool {
        match self {
            Self::Http1 { connection, .. } => connection.exchange.has_ended(),
            Self::Http2 { incoming, .. } => incoming.is_end_stream(),
            Self::Early { .. } => false,
            Self::Ended => true,
        }
    }

    /// The body has ended, and the connection may go on.
    fn end(&mut self) {
        if let Self::Http1 { connection, pool, _in_flight } = std::mem::replace(self, Self::Ended) {
            drop(_in_flight);
            pool.give_back(connection);
        }
    }
}

impl<B: RequestBody> Body for UpstreamBody<B> {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = self.get_mut();
        match this.source.poll_frame(cx, this.index) {
            Poll::Ready(Some(Ok(frame))) => {
                this.receive(frame.data_ref().map_or(0, |data| data.len() as u64));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.source = Source::Ended;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                this.source.end();
                Poll::Ready(None)
            }
            Poll::Pending => this.poll_silence(cx).map(|error| Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Http2 { incoming, .. } => incoming.is_end_stream(),
            Source::Http1 { .. } | Source::Early { .. } => false,
            Source::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.source, self.left) {
            (Source::Http2 { incoming, .. }, _) => incoming.size_hint(),
            (_, Some(left)) => SizeHint::with_exact(left),
            (_, None) => SizeHint::default(),
        }
    }
}

impl<B> std::fmt::Debug for UpstreamBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamBody").field("upstream", &self.index).finish_non_exhaustive()
    }
}

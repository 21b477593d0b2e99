//! Body wrappers: an idle timeout between frames, and a report of how a body ended.

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOutcome {
    /// It was read to its end.
    Finished,
    /// It gave an error.
    Failed,
    /// It was dropped before its end: the reader went away.
    Dropped,
}

/// What is known of a body once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyEnd {
    /// How it ended.
    pub outcome: BodyOutcome,
    /// Data bytes handed on.
    pub bytes: u64,
    /// Whether two frames came more than a second apart: its duration then says nothing about the network.
    pub has_gap: bool,
}

pin_project! {
    /// Calls `on_end` exactly once when the inner body has ended, in whichever way.
    ///
    /// One clock reading for each frame; no allocation.
    #[derive(Debug)]
    pub struct Watched<B, F>
    where
        B: Body,
        F: FnOnce(BodyEnd),
    {
        #[pin]
        body: B,
        watch: Watch<F>,
    }

    impl<B, F> PinnedDrop for Watched<B, F>
    where
        B: Body,
        F: FnOnce(BodyEnd),
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Servers do not poll a body again whose last frame they know they have.
            let is_finished = this.body.is_end_stream();
            this.watch.end(if is_finished { BodyOutcome::Finished } else { BodyOutcome::Dropped });
        }
    }
}

#[derive(Debug)]
struct Watch<F> {
    on_end: Option<F>,
    bytes: u64,
    has_gap: bool,
    frame_at: Option<Instant>,
}

/// Fails when the inner body gives no frame for too long. `Unpin` if the inner body is.
#[derive(Debug)]
pub struct IdleTimeout<B> {
    body: B,
    idle_timeout: Duration,
    /// Made at the first wait; small bodies never wait.
    silence: Option<Pin<Box<Sleep>>>,
}

/// The error of [`IdleTimeout`].
#[derive(Debug, thiserror::Error)]
pub enum IdleTimeoutError {
    /// Nothing came for the idle timeout.
    #[error("no byte of the body came for {0:?}")]
    Idle(Duration),
    /// The body's own error.
    #[error(transparent)]
    Body(Box<dyn StdError + Send + Sync>),
}

/// A longer pause between two frames means that the sender thinks, not that the network is slow.
const GAP: Duration = Duration::from_secs(1);

impl<B, F> Watched<B, F>
where
    B: Body,
    F: FnOnce(BodyEnd),
{
    /// Watches `body`.
    pub fn new(body: B, on_end: F) -> Self {
        Self { body, watch: Watch { on_end: Some(on_end), bytes: 0, has_gap: false, frame_at: None } }
    }
}

impl<F: FnOnce(BodyEnd)> Watch<F> {
    fn frame(&mut self, bytes: usize) {
        let now = Instant::now();
        let previous = self.frame_at.replace(now);
        self.has_gap |= previous.is_some_and(|previous| now.duration_since(previous) > GAP);
        self.bytes += bytes as u64;
    }

    fn end(&mut self, outcome: BodyOutcome) {
        if let Some(on_end) = self.on_end.take() {
            on_end(BodyEnd { outcome, bytes: self.bytes, has_gap: self.has_gap });
        }
    }
}

impl<B, F> Body for Watched<B, F>
where
    B: Body,
    F: FnOnce(BodyEnd),
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let polled = this.body.poll_frame(cx);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => this.watch.frame(frame.data_ref().map_or(0, Buf::remaining)),
            Poll::Ready(Some(Err(_))) => this.watch.end(BodyOutcome::Failed),
            Poll::Ready(None) => this.watch.end(BodyOutcome::Finished),
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

impl<B> IdleTimeout<B> {
    /// Bounds the wait for each frame of `body`.
    pub fn new(body: B, idle_timeout: Duration) -> Self {
        Self { body, idle_timeout, silence: None }
    }
}

impl<B> Body for IdleTimeout<B>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Data = B::Data;
    type Error = IdleTimeoutError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, IdleTimeoutError>>> {
        let this = &mut *self;
        if let Poll::Ready(polled) = Pin::new(&mut this.body).poll_frame(cx) {
            this.silence = None;
            return Poll::Ready(
                polled.map(|frame| frame.map_err(|error| IdleTimeoutError::Body(error.into()))),
            );
        }
        let idle_timeout = this.idle_timeout;
        let silence = this.silence.get_or_insert_with(|| Box::pin(sleep(idle_timeout)));
        silence.as_mut().poll(cx).map(|()| Some(Err(IdleTimeoutError::Idle(idle_timeout))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};
    use http_body_util::channel::Channel;
    use http_body_util::{BodyExt, Full};
    use std::cell::Cell;
    use tokio::time::advance;

    fn watched<B: Body>(body: B, seen: &Cell<Option<BodyEnd>>) -> Watched<B, impl FnOnce(BodyEnd)> {
        Watched::new(body, |end| assert!(seen.replace(Some(end)).is_none(), "reported twice"))
    }

    #[tokio::test]
    async fn each_way_to_end_is_reported_once() {
        let seen = Cell::new(None);
        watched(Full::<Bytes>::from("hello"), &seen).collect().await.unwrap();
        let finished = BodyEnd { outcome: BodyOutcome::Finished, bytes: 5, has_gap: false };
        assert_eq!(seen.take(), Some(finished));

        // As servers do with a known length: the last frame, and no poll after it.
        let mut body = Box::pin(watched(Full::<Bytes>::from("hello"), &seen));
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(seen.take(), Some(finished));

        drop(watched(Full::<Bytes>::from("hello"), &seen));
        assert_eq!(seen.take().unwrap().outcome, BodyOutcome::Dropped);

        let (sender, body) = Channel::<Bytes, &str>::new(1);
        sender.abort("broken");
        assert!(watched(body, &seen).collect().await.is_err());
        assert_eq!(seen.take().unwrap().outcome, BodyOutcome::Failed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_between_frames_is_seen_and_trailers_pass() {
        for (pause_ms, has_gap) in [(900, false), (1_100, true)] {
            let seen = Cell::new(None);
            let (mut sender, body) = Channel::<Bytes>::new(1);
            let mut body = Box::pin(watched(body, &seen));
            // Before the first frame the upstream thinks; that is no gap.
            advance(Duration::from_secs(5)).await;
            sender.send_data(Bytes::from("ab")).await.unwrap();
            body.frame().await.unwrap().unwrap();
            advance(Duration::from_millis(pause_ms)).await;
            let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("x"))]);
            sender.send_trailers(trailers).await.unwrap();
            assert!(body.frame().await.unwrap().unwrap().is_trailers());
            drop(sender);
            assert!(body.frame().await.is_none());
            assert_eq!(seen.take(), Some(BodyEnd { outcome: BodyOutcome::Finished, bytes: 2, has_gap }));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_fails_a_body_and_frames_restart_the_clock() {
        let (mut sender, body) = Channel::<Bytes>::new(1);
        let mut body = IdleTimeout::new(body, Duration::from_secs(10));
        for _ in 0..3 {
            let (frame, ()) = tokio::join!(body.frame(), async {
                sleep(Duration::from_secs(9)).await;
                sender.send_data(Bytes::from("x")).await.unwrap();
            });
            assert!(frame.unwrap().is_ok());
        }
        assert!(matches!(body.frame().await, Some(Err(IdleTimeoutError::Idle(_)))));
    }
}

//! Responses that begin before their request has ended.
//!
//! The client may read nothing before it has sent all, so the rest of the request must not wait for a reader
//! of the response: a separate task carries both. Rare, and bounded by the connections.

use super::RequestBody;
use super::error::UpstreamError;
use super::pool::{Http1Connection, Http1Pool};
use bytes::Bytes;
use http_body::Frame;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// A response's body whose connection is with a task; dropping it ends that.
#[derive(Debug)]
pub(super) struct EarlyAnswer(mpsc::Receiver<Result<Frame<Bytes>, UpstreamError>>);

/// Time for the rest of a request after its response has ended; then the connection is closed.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);

impl EarlyAnswer {
    pub(super) fn start<B: RequestBody>(
        mut connection: Box<Http1Connection<B>>,
        pool: Rc<Http1Pool<B>>,
    ) -> Self {
        let (frames, receiver) = mpsc::channel(1);
        spawn_local(async move {
            let is_whole = tokio::select! {
                is_whole = carry(&mut connection, &frames) => is_whole,
                () = frames.closed() => false,
            };
            drop(frames);
            if is_whole {
                settle(connection, pool).await;
            }
        });
        Self(receiver)
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        self.0.poll_recv(cx)
    }
}

/// The response has ended: sends the rest of the request, and gives the connection back.
pub(super) async fn settle<B: RequestBody>(mut connection: Box<Http1Connection<B>>, pool: Rc<Http1Pool<B>>) {
    let sent = timeout(SETTLE_TIMEOUT, poll_fn(|cx| connection.exchange.poll_send(cx))).await;
    if sent.is_ok_and(|sent| sent.is_ok()) {
        pool.give_back(connection);
    }
}

/// Passes the response on while the request is being sent; false if it has failed.
async fn carry<B: RequestBody>(
    connection: &mut Http1Connection<B>,
    frames: &mpsc::Sender<Result<Frame<Bytes>, UpstreamError>>,
) -> bool {
    let exchange = &mut connection.exchange;
    loop {
        let (mut room, mut failed) = (pin!(frames.reserve()), None);
        let room = poll_fn(|cx| {
            if failed.is_none()
                && let Poll::Ready(Err(error)) = exchange.poll_send(cx)
            {
                failed = Some(Err(error));
            }
            room.as_mut().poll(cx)
        });
        let Ok(room) = room.await else { return false };
        let frame = poll_fn(|cx| {
            if failed.is_some() {
                return Poll::Ready(failed.take());
            }
            match exchange.poll_send(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
                _ => exchange.poll_frame(cx),
            }
        });
        match frame.await {
            None => return true,
            Some(frame) => {
                let has_failed = frame.is_err();
                room.send(frame);
                if has_failed || exchange.has_ended() {
                    return !has_failed;
                }
            }
        }
    }
}

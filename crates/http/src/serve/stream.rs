//! One stream of a client's HTTP/2 connection, from its request to the end of the response.

use super::counted::InFlight;
use super::date;
use super::stream_io::StreamIo;
use crate::head::IntoAnswer;
use crate::interim::Interims;
use crate::tunnel::PendingTunnel;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Response};
use http_body::Body;
use std::cell::{OnceCell, RefCell};
use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::task::AbortHandle;

/// State of one stream that its request's service uses.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub(super) cut: StreamCut,
    pub(super) interims: Interims,
    /// Tunnel that takes the stream over once its 200 has been sent.
    pub(super) tunnel: RefCell<Option<PendingTunnel>>,
}

/// Ends one HTTP/2 stream of a client while the others of its connection go on.
#[derive(Clone, Debug, Default)]
pub struct StreamCut(Rc<OnceCell<AbortHandle>>);

impl StreamCut {
    /// Resets the stream; nothing happens to one that has ended.
    pub fn cut(&self) {
        self.0.get().into_iter().for_each(AbortHandle::abort);
    }

    pub(super) fn set(&self, task: AbortHandle) {
        // A stream has one task.
        let _ = self.0.set(task);
    }
}

/// Sends what the service answers. Dropped, it resets the stream; it ends early where the client resets it.
pub(super) async fn answer<F, A, B, E>(
    state: Rc<StreamState>,
    in_flight: InFlight,
    response: F,
    mut respond: SendResponse<Bytes>,
    upgrade: Option<RecvStream>,
) where
    F: Future<Output = Result<A, E>>,
    A: IntoAnswer<Body = B>,
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    // Until the end of the response's body.
    let _in_flight = in_flight;
    let Some(response) = await_response(&state, response, &mut respond).await else { return };
    let (mut head, body) = match response {
        Ok(response) => Response::from(response.into_answer()).into_parts(),
        Err(_) => return respond.send_reset(Reason::INTERNAL_ERROR),
    };
    remove_connection_fields(&mut head.headers);
    head.headers.entry(DATE).or_insert_with(date::now);
    let tunnel = state.tunnel.take().filter(|_| head.status.is_success());
    if let (Some(tunnel), Some(client)) = (tunnel, upgrade) {
        if let Ok(to_client) = respond.send_response(Response::from_parts(head, ()), false) {
            tunnel.run(StreamIo::new(to_client, client), &[]).await;
        }
        return;
    }
    let is_over = body.is_end_stream();
    if !is_over && let Some(bytes) = body.size_hint().exact() {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| bytes.into());
    }
    match respond.send_response(Response::from_parts(head, ()), is_over) {
        Ok(_) if is_over => {}
        // An error is the client's reset, which has ended the stream.
        Ok(mut to_client) => drop(send_body(pin!(body), &mut to_client).await),
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// The response, after the interim responses before it; none where the client has reset the stream.
async fn await_response<F: Future>(
    state: &StreamState,
    response: F,
    respond: &mut SendResponse<Bytes>,
) -> Option<F::Output> {
    let mut response = pin!(response);
    poll_fn(|cx| {
        let polled = response.as_mut().poll(cx);
        // Of a stream or a connection that failed there is no answer either.
        if respond.poll_reset(cx).is_ready() {
            return Poll::Ready(None);
        }
        if polled.is_pending() {
            state.interims.wake_with(cx);
        }
        if state.interims.is_waiting() {
            for head in state.interims.take_for_stream() {
                // Fails where the connection has ended.
                let _ = respond.send_informational(head);
            }
        }
        polled.map(Some)
    })
    .await
}

/// Fields that only HTTP/1 has (RFC 9113 §8.2.2); the h2 crate refuses to send them.
fn remove_connection_fields(fields: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE, TE] {
        fields.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        fields.remove(name);
    }
}

/// Sends a body at the pace at which the client takes it,
/// [`STREAM_SEND_BYTES`](flashweir_core::limits::STREAM_SEND_BYTES) ahead.
async fn send_body<B>(mut body: Pin<&mut B>, to_client: &mut SendStream<Bytes>) -> Result<(), h2::Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    loop {
        let frame = poll_fn(|cx| match poll_reset(to_client, cx) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => body.as_mut().poll_frame(cx).map(Ok),
        })
        .await?;
        match frame {
            None => return to_client.send_data(Bytes::new(), true),
            Some(Err(error)) => {
                to_client.send_reset(reason_of(&*error.into()));
                return Ok(());
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    let is_last = body.is_end_stream();
                    if !data.is_empty() {
                        await_room(to_client).await?;
                    }
                    to_client.send_data(data, is_last)?;
                    if is_last {
                        return Ok(());
                    }
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        return to_client.send_trailers(trailers);
                    }
                }
            },
        }
    }
}

/// Waits until the client takes more. Asks for one byte only: a claim to more would keep it from other
/// streams.
async fn await_room(to_client: &mut SendStream<Bytes>) -> Result<(), h2::Error> {
    to_client.reserve_capacity(1);
    poll_fn(|cx| {
        while to_client.capacity() == 0 {
            if let Poll::Ready(error) = poll_reset(to_client, cx) {
                return Poll::Ready(Err(error));
            }
            match to_client.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Err(Reason::STREAM_CLOSED.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// Ready with the error where the client has reset the stream.
fn poll_reset(to_client: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<h2::Error> {
    to_client.poll_reset(cx).map(|reset| reset.map_or_else(|error| error, h2::Error::from))
}

/// The code with which a stream ends whose body failed: that of an HTTP/2 upstream, if it was one that failed
/// it.
fn reason_of(error: &(dyn StdError + 'static)) -> Reason {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(reason) = error.downcast_ref::<h2::Error>().and_then(h2::Error::reason) {
            return reason;
        }
        cause = error.source();
    }
    Reason::INTERNAL_ERROR
}

//! Times at which a response's place is free: at its end, while its client is slow, at once for event
//! streams, and after errors.

use crate::{AdmissionLayer, AdmittedBody};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Channel, combinators::UnsyncBoxBody};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time;
use tower_layer::Layer as _;
use tower_service::Service;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Answers with a status and a kind of body: whole at once, parts that a test sends, or one that breaks off.
#[derive(Clone)]
struct Speaker;

type Sender = http_body_util::channel::Sender<Bytes, std::io::Error>;

impl Service<Request<(StatusCode, &'static str)>> for Speaker {
    type Response = Response<Body>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<(StatusCode, &'static str)>) -> Self::Future {
        let (status, kind) = *request.body();
        Box::pin(async move {
            if kind == "error" {
                return Err(std::io::Error::other("no database"));
            }
            let (sender, parts) = Channel::<Bytes, std::io::Error>::new(4);
            let mut response = Response::builder().status(status).header("content-type", kind);
            let extensions = response.extensions_mut().expect("a response");
            extensions.insert(std::sync::Arc::new(std::sync::Mutex::new(Some(sender))));
            Ok(response.body(parts.boxed_unsync()).expect("a response"))
        })
    }
}

async fn ask(layer: &AdmissionLayer, status: StatusCode, kind: &'static str) -> (Sender, AdmittedBody<Body>) {
    let answer = layer.layer(Speaker).call(Request::new((status, kind))).await;
    let mut response = answer.expect("an answer");
    let sender = response.extensions_mut().remove::<std::sync::Arc<std::sync::Mutex<Option<Sender>>>>();
    let sender = sender.expect("a sender").lock().expect("no panic").take().expect("a sender");
    (sender, response.into_body())
}

async fn frame(body: &mut AdmittedBody<Body>) -> Option<Result<Frame<Bytes>, std::io::Error>> {
    std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_while_the_client_is_slow_and_when_the_body_has_ended() {
    let layer = AdmissionLayer::new(Duration::from_secs(1));
    let in_flight = || layer.status().in_flight;
    let (mut sender, mut body) = ask(&layer, StatusCode::OK, "text/plain").await;
    assert_eq!(in_flight(), 1);
    sender.send_data(Bytes::from_static(b"part")).await.expect("a reader");
    assert!(frame(&mut body).await.is_some_and(|frame| frame.is_ok()));
    assert_eq!(in_flight(), 0, "the client has something to read");
    // It asks for more, and the service has nothing yet.
    assert!(time::timeout(Duration::from_millis(10), frame(&mut body)).await.is_err());
    assert_eq!(in_flight(), 1, "the service is waited for");
    drop(sender);
    assert!(frame(&mut body).await.is_none());
    assert_eq!((in_flight(), layer.status().completed), (0, 1));
    drop(body);
    assert_eq!((in_flight(), layer.status().completed), (0, 1), "once");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_break_off_or_are_dropped_are_not_completed() {
    let layer = AdmissionLayer::new(Duration::from_secs(1));
    let (sender, mut body) = ask(&layer, StatusCode::OK, "text/plain").await;
    sender.abort(std::io::Error::other("broken"));
    assert!(frame(&mut body).await.is_some_and(|frame| frame.is_err()));
    let (_sender, body) = ask(&layer, StatusCode::OK, "text/plain").await;
    assert_eq!(layer.status().in_flight, 1);
    drop(body);
    let status = layer.status();
    assert_eq!((status.in_flight, status.completed, status.admitted), (0, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn event_streams_and_tunnels_hold_no_place_and_errors_are_no_completions() {
    let layer = AdmissionLayer::new(Duration::from_secs(1));
    let kept = [
        ask(&layer, StatusCode::OK, "text/event-stream; charset=utf-8").await,
        ask(&layer, StatusCode::SWITCHING_PROTOCOLS, "").await,
        ask(&layer, StatusCode::BAD_GATEWAY, "text/plain").await,
    ];
    let status = layer.status();
    assert_eq!((status.in_flight, status.completed, status.admitted), (0, 2, 3));
    drop(kept);
    let answer = layer.layer(Speaker).call(Request::new((StatusCode::OK, "error"))).await;
    assert_eq!(answer.expect_err("no database").to_string(), "no database");
    let status = layer.status();
    assert_eq!((status.in_flight, status.completed, status.admitted), (0, 2, 4));
}

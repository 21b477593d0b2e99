//! HTTP/2 with prior knowledge: proxied, refused and drained like HTTP/1.1.

use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{PATIENCE, Running};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// At a test's end its runtime no longer runs, so the client's half of a connection cannot say goodbye.
const DRAIN_SOON: &str = "bounds.drain_timeout = '1s'";

async fn connect(gateway: &Running) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(gateway.address).await.expect("connect");
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

async fn get(sender: &mut SendRequest<Empty<Bytes>>, path: &str) -> (u16, String, http::HeaderMap) {
    let request =
        http::Request::get(format!("http://example.org{path}")).body(Empty::new()).expect("request");
    let exchange = async {
        let response = sender.send_request(request).await.expect("a response");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned(), head.headers)
    };
    tokio::time::timeout(PATIENCE, exchange).await.expect("in time")
}

#[tokio::test]
async fn requests_share_a_connection_and_reach_the_origin_as_http1() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, DRAIN_SOON);
    let mut sender = connect(&gateway).await;
    let (status, body, fields) = get(&mut sender, "/hello").await;
    assert_eq!((status, body.as_str()), (200, "hello"));
    assert_eq!(fields["via"], "1.1 flashweir");
    let head = origin.next_head();
    assert!(head.starts_with("get /hello http/1.1\r\n"), "{head}");
    assert!(head.contains("host: example.org\r\n") && head.contains("via: 2 flashweir"), "{head}");
    assert_eq!(get(&mut sender, "/large").await.1.len(), 1 << 20);
    gateway.await_metric("flashweir_requests_by_protocol_total{protocol=\"http2\"}", 2.0);
    gateway.await_metric("flashweir_responses_measured_total", 2.0);
}

#[tokio::test]
async fn a_refusal_ends_its_stream_and_not_the_connection() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, &format!("bounds.max_requests_in_flight = 1\n{DRAIN_SOON}"));
    let mut holder = gateway.connect();
    holder.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n");
    origin.next_head();
    let mut sender = connect(&gateway).await;
    let (status, _, fields) = get(&mut sender, "/hello").await;
    assert_eq!(status, 503);
    assert!(!fields.contains_key("connection") && fields.contains_key("retry-after"));
    origin.release.send(()).expect("release");
    assert_eq!(holder.response().text(), "released");
    assert_eq!(get(&mut sender, "/hello").await.0, 200);
}

#[tokio::test]
async fn a_connection_too_many_is_told_and_then_ended() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, &format!("bounds.max_connections = 1\n{DRAIN_SOON}"));
    let mut inside = gateway.connect();
    assert_eq!(inside.get("/hello").status, 200);
    let mut sender = connect(&gateway).await;
    let (status, _, fields) = get(&mut sender, "/hello").await;
    assert_eq!(status, 503);
    assert!(fields["flashweir-decision"].to_str().expect("ascii").ends_with("reason=connections"));
    let ended = async {
        while !sender.is_closed() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("ended after its answer");
}

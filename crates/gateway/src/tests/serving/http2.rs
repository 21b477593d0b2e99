//! HTTP/2 with prior knowledge: proxied, refused and drained like HTTP/1.1.

use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{PATIENCE, Running};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// At a test's end its runtime no longer runs, so the client's half of a connection cannot say goodbye.
const DRAIN_SOON: &str = "bounds.drain_timeout = '1s'";

async fn connect(gateway: &Running) -> SendRequest<Empty<Bytes>> {
    connect_to_break(gateway).await.0
}

/// The connection, and its socket, to end it.
async fn connect_to_break(gateway: &Running) -> (SendRequest<Empty<Bytes>>, std::net::TcpStream) {
    let stream = TcpStream::connect(gateway.address).await.expect("connect").into_std().expect("a socket");
    let socket = stream.try_clone().expect("a second handle");
    let stream = TcpStream::from_std(stream).expect("the first again");
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    (sender, socket)
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

/// Asks for a tunnel on a connection that has been answered once, so that its client has the gateway's
/// SETTINGS.
async fn open_stream(
    sender: &mut SendRequest<Empty<Bytes>>,
    protocol: &'static str,
    path: &str,
) -> http::Response<hyper::body::Incoming> {
    let request = http::Request::connect(format!("http://example.org{path}"))
        .extension(hyper::ext::Protocol::from_static(protocol))
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat")
        .body(Empty::new())
        .expect("request");
    tokio::time::timeout(PATIENCE, sender.send_request(request)).await.expect("in time").expect("a response")
}

#[tokio::test]
async fn a_websocket_is_a_stream_of_its_own() {
    let origin = Origin::start();
    let gateway =
        Running::start(origin.address, "bounds.keep_alive_timeout = '1s'\nbounds.drain_timeout = '1s'");
    let mut sender = connect(&gateway).await;
    assert_eq!(get(&mut sender, "/hello").await.0, 200);
    origin.next_head();
    let mut response = open_stream(&mut sender, "websocket", "/websocket?room=1").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    for gone in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
        assert!(!response.headers().contains_key(gone), "{gone}");
    }
    let head = origin.next_head();
    assert!(head.starts_with("get /websocket?room=1 http/1.1\r\n"), "{head}");
    for field in
        ["host: example.org", "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"]
    {
        assert!(head.contains(&format!("{field}\r\n")), "{field}: {head}");
    }
    let stream = hyper::upgrade::on(&mut response).await.expect("a stream");
    let mut stream = TokioIo::new(stream);
    let mut echo = vec![0; 300_000];
    let sent: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
    for bytes in [1, 6, 300_000] {
        let (mut reader, mut writer) = tokio::io::split(&mut stream);
        let exchange = async {
            let (read, written) =
                tokio::join!(reader.read_exact(&mut echo[..bytes]), writer.write_all(&sent[..bytes]));
            read.and(written.map(|()| 0)).expect("an echo");
        };
        tokio::time::timeout(PATIENCE, exchange).await.expect("in time");
        assert!(echo[..bytes] == sent[..bytes], "{bytes} bytes");
    }
    // Silent for longer than a connection may be idle, it is in flight all the same; other requests go on
    // beside it.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    gateway.await_metric("flashweir_requests_in_flight", 1.0);
    assert_eq!(get(&mut sender, "/hello").await.0, 200);
    assert_eq!(gateway.metric("flashweir_tunnels_open"), 1.0);
    stream.shutdown().await.expect("its end");
    let end = tokio::time::timeout(PATIENCE, stream.read(&mut echo)).await.expect("in time");
    assert_eq!(end.expect("an end in order"), 0);
    gateway.await_metric("flashweir_tunnels_open", 0.0);
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
    gateway.await_metric("flashweir_requests_completed_total", 3.0);
}

#[tokio::test]
async fn a_stream_that_becomes_no_websocket_is_never_answered_with_success() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, DRAIN_SOON);
    let mut sender = connect(&gateway).await;
    assert_eq!(get(&mut sender, "/hello").await.0, 200);
    // RFC 8441 §4: 2xx says that it is open.
    for (protocol, path, status, error) in [
        ("websocket", "/hello", 502, Some("no_websocket")),
        // It switches, and has not understood the key.
        ("websocket", "/socket", 502, Some("malformed")),
        ("websocket", "/failing", 500, None),
        // RFC 9220 §3, of any version.
        ("connect-udp", "/websocket", 501, Some("protocol")),
    ] {
        let response = open_stream(&mut sender, protocol, path).await;
        let named =
            response.headers().get("flashweir-error").map(|error| error.to_str().expect("ascii").to_owned());
        assert_eq!((response.status().as_u16(), named.as_deref()), (status, error), "{protocol} {path}");
        response.into_body().collect().await.expect("a body");
    }
    assert_eq!(get(&mut sender, "/hello").await.0, 200, "the connection goes on");
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
    assert_eq!(gateway.metric("flashweir_tunnels_opened_total"), 0.0);
}

#[tokio::test]
async fn a_websocket_ends_with_its_client_and_holds_up_no_other_stream() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, DRAIN_SOON);
    let (mut sender, socket) = connect_to_break(&gateway).await;
    assert_eq!(get(&mut sender, "/hello").await.0, 200);
    let mut response = open_stream(&mut sender, "websocket", "/websocket").await;
    let stream = hyper::upgrade::on(&mut response).await.expect("a stream");
    let mut stream = TokioIo::new(stream);
    // The client does not read the echo: the stream's window fills, and so does every buffer between.
    let bytes = vec![0; 1 << 20];
    while tokio::time::timeout(std::time::Duration::from_millis(300), stream.write_all(&bytes)).await.is_ok()
    {
    }
    assert_eq!(get(&mut sender, "/large").await.1.len(), 1 << 20);
    gateway.await_metric("flashweir_tunnels_open", 1.0);
    socket.shutdown(Shutdown::Both).expect("an end");
    let ended = async {
        // The client's half of the connection needs this thread.
        while gateway.metric("flashweir_tunnels_open") > 0.0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("ended with its client");
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
}

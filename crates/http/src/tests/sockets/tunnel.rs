//! WebSocket-like upgrades from a client through the gateway's parts to an upstream and back.

use crate::fields::{ClientScheme, Hop, prepare_request, prepare_response};
use crate::serve::HeadLimits;
use crate::serve::{Connection, ConnectionEnd, IncomingBody, ServeSettings, Served, Server};
use crate::tests::sockets::support::{RawUpstream, read_head, run, settings, until};
use crate::tunnel::{PendingTunnel, TunnelEnd, TunnelReport};
use crate::upstream::{UpstreamShared, Upstreams};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};

type Reports = Rc<Cell<Option<TunnelReport>>>;
type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// A gateway in small: forwards one connection's requests and hands over upgrades.
async fn gateway(
    upstream: &RawUpstream,
    idle_timeout: Duration,
) -> (TcpStream, Reports, JoinHandle<Served>, Arc<UpstreamShared>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let reports = Reports::default();
    let shared = UpstreamShared::new(settings(&[upstream.address])).unwrap();
    let upstreams = Rc::new(Upstreams::<IncomingBody>::new(Arc::clone(&shared), flashweir_core::Rng::new(1)));
    let reported = Rc::clone(&reports);
    let served = spawn_local(async move {
        let server = Server::new(ServeSettings {
            head: HeadLimits { bytes_max: 4_096, fields_max: 50 },
            head_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
            http2_streams_max: 1,
            http2_ping_after: Duration::from_secs(5),
        });
        let service = move |request: Request<IncomingBody>, connection: &Connection| {
            let (upstreams, connection, reported) =
                (Rc::clone(&upstreams), connection.clone(), Rc::clone(&reported));
            async move { forward(request, &connection, &upstreams, reported, idle_timeout).await }
        };
        server.serve(server.guard(accepted), None, service, std::future::pending()).await
    });
    (client, reports, served, shared)
}

async fn forward(
    request: Request<IncomingBody>,
    connection: &Connection,
    upstreams: &Upstreams<IncomingBody>,
    reports: Reports,
    idle_timeout: Duration,
) -> Result<Response<Body>, std::io::Error> {
    let (mut parts, body) = request.into_parts();
    let hop =
        Hop { peer: IpAddr::V4(Ipv4Addr::LOCALHOST), is_peer_trusted: false, scheme: ClientScheme::Http };
    prepare_request(&mut parts, &hop).unwrap();
    let response = upstreams.send(Request::from_parts(parts, body)).await.map_err(std::io::Error::other)?;
    let (mut parts, body) = response.into_parts();
    prepare_response(&mut parts).map_err(std::io::Error::other)?;
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        let on_end = move |report| reports.set(Some(report));
        connection.hand_over(PendingTunnel::new(body.into_stream().unwrap(), idle_timeout, on_end));
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        return Ok(Response::from_parts(parts, nothing));
    }
    let body = body.collect().await.map_err(std::io::Error::other)?;
    Ok(Response::from_parts(parts, body.map_err(|never| match never {}).boxed_unsync()))
}

/// Switches protocols, greets at once, then echoes.
async fn echoing() -> RawUpstream {
    RawUpstream::start(|_, mut stream| async move {
        let head = read_head(&mut stream).await.unwrap().to_ascii_lowercase();
        assert!(
            head.contains("connection: upgrade\r\n") && head.contains("upgrade: websocket\r\n"),
            "{head}"
        );
        let switch =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhi\n";
        stream.write_all(switch).await.unwrap();
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    })
    .await
}

async fn read_until(client: &mut TcpStream, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        read.push(char::from(client.read_u8().await.unwrap()));
    }
    read
}

#[test]
fn bytes_pass_both_ways_until_the_client_ends() {
    run(async {
        let upstream = echoing().await;
        let (mut client, reports, served, shared) = gateway(&upstream, Duration::from_secs(5)).await;
        client.write_all(UPGRADE).await.unwrap();
        let switched = read_until(&mut client, "hi\n").await;
        assert!(switched.starts_with("HTTP/1.1 101 "), "{switched}");
        // Not HTTP at all: the guard must have stepped aside.
        let frame = b"\x81\x02\0\n GET\n\n";
        client.write_all(frame).await.unwrap();
        let mut echoed = vec![0; frame.len()];
        client.read_exact(&mut echoed).await.unwrap();
        assert_eq!(echoed, frame);
        assert_eq!(shared.in_flight(), 1, "a tunnel counts as in flight");
        client.shutdown().await.unwrap();
        let ended = TunnelReport { upstream_bytes: 10, client_bytes: 13, end: TunnelEnd::ClientClosed };
        assert!(matches!(served.await.unwrap().end, ConnectionEnd::Tunnel(report) if report == ended));
        assert_eq!(reports.get(), Some(ended));
        assert_eq!(shared.in_flight(), 0);
    });
}

#[test]
fn a_silent_tunnel_ends_and_so_does_one_whose_upstream_leaves() {
    run(async {
        let upstream = echoing().await;
        let (mut client, reports, _served, _) = gateway(&upstream, Duration::from_millis(50)).await;
        client.write_all(UPGRADE).await.unwrap();
        read_until(&mut client, "hi\n").await;
        assert_eq!(client.read(&mut [0]).await.unwrap_or(0), 0);
        until(|| reports.get().is_some()).await;
        assert_eq!(reports.get().unwrap().end, TunnelEnd::Idle);

        let upstream =
            RawUpstream::answering(b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
                .await;
        let (mut client, reports, _served, _) = gateway(&upstream, Duration::from_secs(5)).await;
        client.write_all(UPGRADE).await.unwrap();
        read_until(&mut client, "\r\n\r\n").await;
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        read_until(&mut client, "\r\n\r\n").await;
        client.write_all(b"x").await.unwrap();
        drop(client);
        until(|| reports.get().is_some()).await;
    });
}

#[test]
fn an_upgrade_the_upstream_declines_stays_http() {
    run(async {
        let upstream = RawUpstream::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        let (mut client, reports, served, _) = gateway(&upstream, Duration::from_secs(5)).await;
        client.write_all(UPGRADE).await.unwrap();
        read_until(&mut client, "ok").await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n").await.unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).await.unwrap();
        assert!(rest.starts_with("HTTP/1.1 400 "), "still guarded: {rest}");
        drop(client);
        assert!(reports.get().is_none());
        assert!(served.await.unwrap().violation.is_some());
    });
}

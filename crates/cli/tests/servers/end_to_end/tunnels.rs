//! A connection that changes its protocol becomes a tunnel.

use flashweir_testkit::{Client, Connection, Upstream, eventually, pattern};

use crate::end_to_end::support::before;

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const AGREE: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Agrees to every upgrade and sends back what comes.
fn echoing() -> Upstream {
    Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_none() || !connection.send(AGREE) {
            return;
        }
        loop {
            let bytes = connection.read_some(64 << 10);
            if bytes.is_empty() || !connection.send(bytes) {
                return;
            }
        }
    })
}

fn upgraded(client: &mut Client) {
    let response = client.ask(ASK);
    assert_eq!((response.status(), response.field("upgrade")), (101, Some("websocket")), "{response:?}");
    assert!(response.fields.has("sec-websocket-accept"));
}

#[test]
fn a_websocket_is_a_tunnel_both_ways() {
    let upstream = echoing();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    upgraded(&mut client);
    let seen = upstream.last_request();
    assert_eq!((seen.field("upgrade"), seen.field("sec-websocket-version")), (Some("websocket"), Some("13")));
    // Frames that are no HTTP at all, and one that looks like a request.
    for frame in
        [b"\x81\x05hello".to_vec(), b"GET /x HTTP/1.1\nbroken \0 \r\r\n\r\n".to_vec(), pattern(200_000)]
    {
        client.send(&frame);
        assert!(client.read_exactly(frame.len()) == frame, "another frame came back");
    }
    assert_eq!(gateway.in_flight(), 1, "a tunnel is a request in flight");
    assert_eq!(gateway.metrics().value("flashweir_tunnels_open"), 1.0);
    drop(client);
    gateway.wait_in_flight(0);
    eventually("the upstream's half closed", || (upstream.open_connections() == 0).then_some(()));
    assert_eq!(gateway.metrics().value("flashweir_tunnels_open"), 0.0);
}

#[test]
fn a_tunnel_ends_with_its_upstream() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.send(AGREE);
            connection.send("bye");
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    upgraded(&mut client);
    assert_eq!(client.read_to_end().expect("an end in order"), b"bye");
    gateway.wait_in_flight(0);
}

#[test]
fn bytes_sent_right_behind_the_request_belong_to_the_tunnel_or_are_refused() {
    // A client may not send them before the 101; in no case are they a second request.
    let upstream = echoing();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(format!("{ASK}GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"));
    let status = client.response().status();
    assert!(matches!(status, 101 | 400), "{status}");
    assert_eq!(upstream.request_count(), 1, "one request was read");
    drop(client);
    gateway.wait_in_flight(0);
}

#[test]
fn an_upgrade_the_upstream_declines_is_an_ordinary_request() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(ASK).status(), 200);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 200, "the connection goes on");
}

#[test]
fn nobody_upgrades_to_another_http_behind_our_back() {
    let (upstream, gateway) = crate::end_to_end::support::reflecting();
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
        HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    assert_eq!(gateway.connect().ask(request).status(), 200);
    let seen = upstream.last_request();
    assert!(!seen.fields.has("upgrade") && !seen.fields.has("http2-settings"), "{:?}", seen.fields);
}

#[test]
fn an_upstream_that_switches_without_being_asked_is_at_fault() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.send(AGREE);
            connection.stall();
        }
    });
    let gateway = before(&upstream).start();
    let response = gateway.connect().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(response.status(), 502);
    gateway.wait_in_flight(0);
}

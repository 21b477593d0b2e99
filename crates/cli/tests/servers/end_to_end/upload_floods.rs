//! Uploads that never end take nothing that others need: no upstream connection, no place at the server.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use flashweir_testkit::{
    Client, Connection, Gateway, GatewayBuilder, Http2Client, StreamEnd, Upstream, eventually, frame,
};

use crate::end_to_end::support::{before, binary, get};

const UPLOAD: &[(&str, &[u8])] =
    &[(":method", b"POST"), (":scheme", b"http"), (":path", b"/up"), (":authority", b"a")];

/// Connections to the server, far fewer than there are attackers.
const POOL: &str = "16";

/// Each from its own network.
fn attacker(index: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 66, index, 1)
}

/// The share of honest requests, each on its own connection, that are answered well within a second.
fn honest_share(gateway: &Gateway, requests: usize) -> f64 {
    let served = (0..requests).filter(|_| {
        let begun = Instant::now();
        let is_served = Client::try_connect(gateway.address())
            .and_then(|mut client| client.try_send(get("/")).map(|()| client))
            .is_ok_and(|mut client| client.try_response().is_ok_and(|response| response.status() == 200));
        std::thread::park_timeout(Duration::from_millis(5));
        is_served && begun.elapsed() < Duration::from_secs(1)
    });
    served.count() as f64 / requests as f64
}

#[test]
fn bodies_that_drip_reach_no_server_and_starve_nobody() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("upstream.max_connections", POOL).start();
    let mut slow: Vec<Client> = (0..200)
        .map(|index| {
            let mut client = Client::connect_from(attacker(index), gateway.address());
            client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx");
            client
        })
        .collect();
    gateway.wait_metric("flashweir_uploads_gathering", 200.0);
    let share = honest_share(&gateway, 100);
    assert!(share >= 0.97, "{share} of the honest requests were answered in time");
    assert!(!upstream.received().contains("POST"), "an upload that is not here reached the server");
    // One of them was only slow.
    slow[0].send(vec![b'x'; 999]);
    assert_eq!(slow[0].response().field("x-body-bytes"), Some("1000"));
    drop(slow);
    eventually("the room empty", || {
        (gateway.metrics().value("flashweir_uploads_gathering") == 0.0).then_some(())
    });
}

#[test]
fn streams_without_an_end_starve_nobody() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("upstream.max_connections", POOL).start();
    let mut clients: Vec<Http2Client> =
        (0..4).map(|index| Http2Client::connect_from(attacker(index), gateway.address())).collect();
    for stream in (1..200).step_by(2) {
        clients.iter_mut().for_each(|client| client.request(stream, UPLOAD, 0));
    }
    gateway.wait_metric("flashweir_uploads_gathering", 400.0);
    let share = honest_share(&gateway, 100);
    assert!(share >= 0.97, "{share} of the honest requests were answered in time");
    assert!(!upstream.received().contains("POST"));
    let client = &mut clients[0];
    client.send_frame(frame::DATA, frame::END_STREAM, 1, b"whole");
    assert_eq!(client.outcome(1), StreamEnd::Status(200));
    drop(clients);
    eventually("the room empty", || {
        (gateway.metrics().value("flashweir_uploads_gathering") == 0.0).then_some(())
    });
}

#[test]
fn large_uploads_that_stall_hold_a_part_of_the_pool_only() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("upstream.max_connections", POOL).set("gateway.workers", "1").start();
    let begin = |index: u8| {
        let mut client = Client::connect_from(attacker(index), gateway.address());
        client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
        let _ = client.try_send(vec![b'x'; 70_000]);
        client
    };
    let mut slow: Vec<Client> = (0..14).map(begin).collect();
    gateway.wait_metric("flashweir_uploads_cut_total{bound=\"held\"}", 6.0);
    let share = honest_share(&gateway, 100);
    assert!(share >= 0.97, "{share} of the honest requests were answered in time");
    let metrics = gateway.metrics();
    assert!(metrics.value("flashweir_uploads_holding") <= 8.0, "half of the pool");
    let cut = slow.iter_mut().filter_map(|client| {
        client.is_answered_within(Duration::from_millis(100)).then(|| client.response())
    });
    let cut: Vec<_> =
        cut.map(|answer| (answer.status(), answer.field("flashweir-error") == Some("slow_body"))).collect();
    assert_eq!(cut, [(408, true); 6]);
    assert_eq!(gateway.metrics().value("flashweir_requests_bad_total{kind=\"slow_body\"}"), 6.0);
}

#[test]
fn one_client_holds_less_than_all_may() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("upstream.max_connections", POOL).set("gateway.workers", "1").start();
    let slow: Vec<Client> = (0..6)
        .map(|_| {
            let mut client = Client::connect_from(attacker(1), gateway.address());
            client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
            let _ = client.try_send(vec![b'x'; 70_000]);
            client
        })
        .collect();
    gateway.wait_metric("flashweir_uploads_cut_total{bound=\"held_per_client\"}", 4.0);
    drop(slow);
}

#[test]
fn a_body_that_does_not_come_is_answered_408() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("upstream.response_header_timeout", "500ms").start();
    let mut client = gateway.connect();
    client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
    let response = client.response();
    assert_eq!((response.status(), response.field("connection")), (408, Some("close")));
    assert_eq!(upstream.request_count(), 0);
    gateway.wait_metric("flashweir_uploads_cut_total{bound=\"timeout\"}", 1.0);
    let asks_first = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n";
    let mut client = gateway.connect();
    client.send(asks_first);
    assert_eq!(client.response().status(), 100);
    assert_eq!(client.response().status(), 408);
    // The origin was asked whether it wants the body, and that it did not come is not its fault.
    assert_eq!(upstream.request_count(), 1);
    assert_eq!(gateway.metrics().sum("flashweir_upstream_failures_total"), 0.0);
    let mut client = gateway.connect();
    client.send(asks_first);
    assert_eq!(client.response().status(), 100);
    client.send("0123456789");
    assert_eq!(client.response().field("x-body-bytes"), Some("10"));
}

#[test]
fn a_conversation_before_an_http2_server_is_not_held_up() {
    // The server of HTTP/2 is another gateway; the one behind it reads heads before bodies.
    let server = Upstream::start(|connection: &mut Connection| {
        while let Some(mut request) = connection.read_head() {
            if !connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n") {
                return;
            }
            connection.read_body(&mut request);
            connection.send("0\r\n\r\n");
        }
    });
    let whole = before(&server).start();
    let gateway = GatewayBuilder::new(&binary())
        .upstream(&format!("http://{}", whole.address()))
        .text("upstream.protocol", "http2")
        .start();
    let mut client = Http2Client::connect(gateway.address());
    client.request(1, UPLOAD, 0);
    client.send_frame(frame::DATA, 0, 1, b"question");
    // The gateway itself lets it go on; the inner one, before HTTP/1.1, waits for the rest.
    gateway.wait_metric("flashweir_uploads_holding", 1.0);
    whole.wait_metric("flashweir_uploads_gathering", 1.0);
    client.send_frame(frame::DATA, frame::END_STREAM, 1, b"!");
    assert_eq!(client.outcome(1), StreamEnd::Status(200));
}

//! Clients that send their bodies slowly, or not at all: while the server waits for them, others are served.

use std::time::Duration;

use flashweir_testkit::{Client, Connection, Gateway, GatewayBuilder, Latch, Upstream, eventually};

use crate::end_to_end::support::{before, binary, get};

/// Number of requests that go at once to a server of which nothing is known.
const LIMIT: usize = 8;

/// Bytes that must be here before an upload goes to a server: 64 KiB, or all of it.
const FIRST_PART: usize = 64 << 10;

/// A POST of which all but the last byte comes, and that is enough for it to go to a server.
fn begin(gateway: &Gateway) -> Client {
    let mut client = gateway.connect();
    client.send(format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", FIRST_PART + 1));
    client.send(vec![b'x'; FIRST_PART]);
    client
}

/// A number of the sentry's status.
fn sentry(gateway: &Gateway, key: &str) -> u64 {
    gateway.status()["services"][0]["sentry"][key].as_u64().expect(key)
}

fn await_nobody_at_the_server(gateway: &Gateway) {
    eventually("no request at the server", || (sentry(gateway, "in_flight") == 0).then_some(()));
}

/// Many times as many uploads as the limit begin; a stranger is served; they go on and are served, too.
fn check(upstream: &Upstream, gateway: &Gateway) {
    let mut slow: Vec<Client> = (0..3 * LIMIT).map(|_| begin(gateway)).collect();
    eventually("all uploads at the server", || (upstream.request_count() == 3 * LIMIT).then_some(()));
    for _ in 0..LIMIT {
        assert_eq!(gateway.get("/").status(), 200);
    }
    await_nobody_at_the_server(gateway);
    slow.iter_mut().for_each(|client| client.send("y"));
    for client in &mut slow {
        let response = client.response();
        assert_eq!((response.status(), response.field("x-body-bytes")), (200, Some("65537")));
    }
    await_nobody_at_the_server(gateway);
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_requests_completed_total"), (4 * LIMIT) as f64);
    assert_eq!(metrics.value("flashweir_requests_failed_total"), 0.0);
}

#[test]
fn uploads_that_stall_leave_the_server_to_others() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("sentry.response_target", "10s").start();
    check(&upstream, &gateway);
}

#[test]
fn uploads_over_http2_do_too() {
    let upstream = Upstream::reflecting();
    let behind = before(&upstream).text("sentry.policing", "off").start();
    let gateway = GatewayBuilder::new(&binary())
        .upstream(&format!("http://{}", behind.address()))
        .text("upstream.protocol", "http2")
        .text("sentry.response_target", "10s")
        .start();
    check(&upstream, &gateway);
}

#[test]
fn who_leaves_in_the_middle_is_counted_once() {
    let latch = Latch::new();
    let closed = latch.clone();
    let upstream = Upstream::start(move |connection: &mut Connection| {
        // Connections are kept: one that closes behind an answer may be about to get the next request.
        while connection.read_request().is_some() {
            closed.wait();
            if !connection.answer(200, "", "held") {
                return;
            }
        }
    });
    let gateway = before(&upstream).text("sentry.response_target", "10s").start();
    let slow: Vec<Client> = (0..2 * LIMIT).map(|_| begin(&gateway)).collect();
    eventually("all uploads at the server", || (upstream.request_count() == 2 * LIMIT).then_some(()));
    await_nobody_at_the_server(&gateway);
    slow.into_iter().for_each(Client::reset);
    gateway.wait_in_flight(0);
    // The limit is met exactly: no slot was given back twice, or never.
    let mut clients: Vec<Client> = (0..LIMIT + 3).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    eventually("three to wait", || (sentry(&gateway, "waiting") == 3).then_some(()));
    assert_eq!(sentry(&gateway, "in_flight"), LIMIT as u64);
    latch.open();
    clients.iter_mut().for_each(|client| assert_eq!(client.response().text(), "held"));
    await_nobody_at_the_server(&gateway);
}

#[test]
fn a_server_that_answers_before_it_has_read_all_is_done_then() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_head().is_some() && connection.answer(200, "", "early") {
            connection.stall();
        }
    });
    let gateway = before(&upstream).text("sentry.response_target", "10s").start();
    let mut clients: Vec<Client> = (0..3 * LIMIT).map(|_| begin(&gateway)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.response().text(), "early"));
    await_nobody_at_the_server(&gateway);
}

/// An upload that takes longer than the server may take for its answer goes on for as long as it moves; one
/// that stands still or drips does not.
#[test]
#[expect(clippy::disallowed_methods, reason = "the client is slow")]
fn only_a_standing_or_dripping_upload_runs_into_the_time_limit_of_the_answer() {
    const PIECES: usize = 5;
    /// In 900 ms; far from the bytes a second that are wanted, so that a slow machine changes nothing.
    const PIECE_BYTES: usize = 4_096;
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("upstream.response_header_timeout", "3s").start();
    let head = format!(
        "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        FIRST_PART + PIECES * PIECE_BYTES
    );
    let begin = || {
        let mut client = gateway.connect();
        client.send(&head);
        client.send(vec![b'x'; FIRST_PART]);
        client
    };
    let (mut moving, mut dripping, mut standing) = (begin(), begin(), begin());
    for _ in 0..PIECES {
        std::thread::sleep(Duration::from_millis(900));
        moving.send(vec![b'y'; PIECE_BYTES]);
        dripping.send("y");
    }
    assert_eq!(moving.response().status(), 200);
    assert_eq!(dripping.response().status(), 504);
    assert_eq!(standing.response().status(), 504);
}

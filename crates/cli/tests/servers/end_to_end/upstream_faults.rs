//! For every fault of a server, its client gets a clear answer or a clear break, never half an answer that
//! looks whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashweir_testkit::{Connection, Nginx, ReadError, Signal, Upstream, eventually, reserve_address};

use crate::end_to_end::support::{before, binary, get};
use flashweir_testkit::{Gateway, GatewayBuilder};

/// Sends these bytes for every request, then ends the connection as `end` does.
fn scripted(bytes: &'static [u8], end: fn(&mut Connection)) -> Upstream {
    Upstream::start(move |connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.send(bytes);
            end(connection);
        }
    })
}

fn close(_: &mut Connection) {}

fn reset(connection: &mut Connection) {
    connection.reset();
}

fn stall(connection: &mut Connection) {
    connection.stall();
}

fn answer_of(upstream: &Upstream) -> (Gateway, u16) {
    let gateway = before(upstream).text("upstream.response_header_timeout", "500ms").start();
    let response = gateway.get("/");
    assert!(response.fields.has("flashweir-error"), "our answer says that it is ours: {response:?}");
    let status = response.status();
    gateway.wait_in_flight(0);
    (gateway, status)
}

#[test]
fn nobody_listening_is_502() {
    let gateway = GatewayBuilder::new(&binary()).upstream(&format!("http://{}", reserve_address())).start();
    let response = gateway.get("/");
    assert_eq!((response.status(), response.field("flashweir-error")), (502, Some("connect")));
    gateway.wait_metric("flashweir_upstream_failures_total{kind=\"connect\"}", 1.0);
    gateway.wait_in_flight(0);
}

#[test]
fn silence_is_504() {
    let upstream = scripted(b"", stall);
    let (gateway, status) = answer_of(&upstream);
    assert_eq!(status, 504);
    assert_eq!(gateway.metrics().value("flashweir_upstream_failures_total{kind=\"header_timeout\"}"), 1.0);
    eventually("the silent connection given up", || (upstream.open_connections() == 0).then_some(()));
}

#[test]
fn half_a_head_and_silence_is_504() {
    assert_eq!(answer_of(&scripted(b"HTTP/1.1 200 OK\r\nContent-Le", stall)).1, 504);
}

#[test]
fn a_connection_that_ends_before_the_head_is_502() {
    assert_eq!(answer_of(&scripted(b"", reset)).1, 502);
    assert_eq!(answer_of(&scripted(b"", close)).1, 502);
    assert_eq!(answer_of(&scripted(b"HTTP/1.1 200 OK\r\nContent-Le", reset)).1, 502);
    assert_eq!(answer_of(&scripted(b"HTTP/1.1 200 OK\r\nContent-Le", close)).1, 502);
}

#[test]
fn rubbish_is_502() {
    for rubbish in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n",
        b"<html>no head</html>\r\n\r\n",
    ] {
        let (gateway, status) = answer_of(&scripted(rubbish, close));
        assert_eq!(status, 502, "{}", String::from_utf8_lossy(rubbish));
        assert_eq!(gateway.metrics().value("flashweir_requests_failed_total"), 1.0);
    }
}

/// The response must break visibly after what came: not end as if it were whole.
fn breaks_off(bytes: &'static [u8], end: fn(&mut Connection), seen: &[u8]) {
    let upstream = scripted(bytes, end);
    let gateway = before(&upstream).text("upstream.body_idle_timeout", "1s").start();
    let mut client = gateway.connect();
    client.send(get("/"));
    let shown = String::from_utf8_lossy(bytes);
    match client.try_response() {
        Err(ReadError::CutShort(part)) => assert!(seen.starts_with(&part.body), "{shown}: {part:?}"),
        Err(ReadError::Failed(error)) => {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{shown}: it hangs");
        }
        other => panic!("{shown}: looks like a whole response: {other:?}"),
    }
    gateway.wait_in_flight(0);
    assert_eq!(gateway.metrics().value("flashweir_requests_failed_total"), 1.0, "{shown}");
}

#[test]
fn a_body_that_breaks_off_is_never_passed_off_as_whole() {
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    const CHUNKS: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n";
    const BROKEN_CHUNK: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\nzz\r\n";
    std::thread::scope(|scope| {
        for (bytes, end) in
            [LENGTH, CHUNKS].into_iter().flat_map(|bytes| [reset, close, stall].map(|end| (bytes, end)))
        {
            scope.spawn(move || breaks_off(bytes, end, b"only this"));
        }
        scope.spawn(|| breaks_off(BROKEN_CHUNK, stall, b"only this"));
    });
}

#[test]
fn a_break_is_seen_even_where_the_end_of_the_connection_is_the_end_of_the_body() {
    // HTTP/1.0 knows no chunks, so a body of unknown length ends with the connection: only a reset shows.
    let upstream =
        scripted(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", reset);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    match client.try_response() {
        Err(ReadError::Failed(error)) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        other => panic!("looks like a whole response: {other:?}"),
    }
}

#[test]
fn more_than_was_announced_is_never_taken_for_the_next_response() {
    // The second "response" is smuggled behind the first one.
    const BYTES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let upstream = Upstream::start(
        |connection: &mut Connection| {
            while connection.read_request().is_some() && connection.send(BYTES) {}
        },
    );
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    for _ in 0..20 {
        let response = client.ask(&get("/"));
        assert_ne!(response.text(), "forged", "a response to no request was delivered");
        assert!(
            matches!((response.status(), response.text().as_str()), (200, "hello") | (502, _)),
            "{response:?}"
        );
    }
}

#[test]
fn a_body_until_close_is_whole_when_the_connection_closes() {
    let upstream = scripted(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end", close);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    for _ in 0..3 {
        assert_eq!(client.ask(&get("/")).text(), "until the end");
    }
    assert_eq!(upstream.received().connections, 3);
}

/// Answers once on each connection, says nothing about closing, and ends it like this.
fn closing_after_one(end: fn(&mut Connection)) -> Upstream {
    scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", end)
}

/// Over when the other side has seen it: on a busy machine the end of a connection may be on its way for a
/// while.
fn close_and_be_seen(connection: &mut Connection) {
    connection.finish_writing();
    connection.stall();
}

fn order(number: usize) -> String {
    format!("POST /order/{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy")
}

#[test]
fn a_kept_connection_closed_in_between_costs_nobody_anything() {
    let upstream = closing_after_one(close_and_be_seen);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    for number in 0..30 {
        let response = client.ask(&order(number));
        assert_eq!((response.status(), response.text().as_str()), (200, "ok"), "order {number}");
        eventually("the connection closed", || (upstream.open_connections() == 0).then_some(()));
    }
    assert_eq!(upstream.request_count(), 30, "no order was lost or doubled");
}

#[test]
fn a_connection_closing_under_a_request_never_doubles_it() {
    // It is unknown whether a server that closes just now has read the request: it may fail, not be repeated.
    let upstream = closing_after_one(close);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    let served = (0..200).filter(|number| client.ask(&order(*number)).status() == 200).count();
    let mut seen: Vec<String> =
        upstream.received().requests.into_iter().map(|request| request.start).collect();
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(all, seen.len(), "an order came twice");
    assert!(served <= all && served > 0, "{served} of {all}");
}

#[test]
fn a_request_that_may_have_been_done_is_not_sent_twice() {
    // The first request of a connection is served; the second is taken in and then the connection is reset.
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let upstream = Upstream::start(move |connection: &mut Connection| {
        if connection.read_request().is_none() || !connection.answer(200, "", "first") {
            return;
        }
        if connection.read_request().is_some() {
            counter.fetch_add(1, Ordering::SeqCst);
            connection.reset();
        }
    });
    let gateway = before(&upstream).set("gateway.workers", "1").start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).status(), 200);
    let response = client.ask("POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy");
    assert_eq!(response.status(), 502);
    assert_eq!((taken.load(Ordering::SeqCst), upstream.request_count()), (1, 2), "the order was sent once");
}

#[test]
fn an_answer_before_the_whole_request_is_delivered() {
    // As a server does that finds an upload too large.
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_head().is_some() {
            connection.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
            connection.finish_writing();
            connection.stall();
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n");
    let _ = client.try_send(vec![b'x'; 100_000]);
    let response = client.response();
    assert_eq!((response.status(), response.text().as_str()), (413, "big"));
    drop(client);
    gateway.wait_in_flight(0);
}

#[test]
fn a_real_server_that_stands_still_is_504_until_it_goes_on() {
    let test = "a_real_server_that_stands_still_is_504_until_it_goes_on";
    let Some(nginx) = Nginx::require(test, "", "") else { return };
    nginx.serve("page", b"from nginx");
    let gateway = GatewayBuilder::new(&binary())
        .upstream(&format!("http://{}", nginx.address()))
        .text("upstream.response_header_timeout", "300ms")
        .start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/page")).text(), "from nginx");
    // The kernel still takes connections for it, as with a machine whose disk hangs.
    nginx.process().signal(Signal::Pause);
    assert_eq!(client.ask(&get("/page")).status(), 504);
    nginx.process().signal(Signal::Resume);
    eventually("nginx answering again", || (client.ask(&get("/page")).text() == "from nginx").then_some(()));
    gateway.wait_in_flight(0);
}

#[test]
fn a_status_of_the_upstreams_own_passes_as_it_is() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        while connection.read_request().is_some() && connection.answer(503, "Retry-After: 7\r\n", "own words")
        {
        }
    });
    let gateway = before(&upstream).start();
    let response = gateway.get("/");
    assert_eq!((response.status(), response.text().as_str()), (503, "own words"));
    assert_eq!(response.field("retry-after"), Some("7"));
    assert!(!response.fields.has("flashweir-decision") && !response.fields.has("flashweir-error"));
}

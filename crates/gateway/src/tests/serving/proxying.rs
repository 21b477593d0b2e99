//! Duties of an intermediary towards both sides: requests and responses passed on correctly, failures
//! answered clearly.

use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{PATIENCE, Running};

#[test]
fn a_request_and_its_response_pass_with_only_this_hops_fields_changed() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send(
        "GET /hello?x=1 HTTP/1.1\r\nhost: example.org\r\nx-kept: yes\r\nconnection: x-private\r\nx-private: 1\r\n\
         x-forwarded-for: 203.0.113.9\r\nflashweir-decision: forged\r\n\r\n",
    );
    let response = client.response();
    assert_eq!((response.status, response.text().as_str()), (200, "hello"));
    assert_eq!(response.expect_field("via"), "1.1 flashweir");
    assert_eq!(response.field("keep-alive"), None, "hop-by-hop");
    let head = origin.next_head();
    assert!(head.starts_with("get /hello?x=1 http/1.1\r\n"), "{head}");
    for expected in
        ["host: example.org", "x-kept: yes", "x-forwarded-for: 127.0.0.1\r\n", "via: 1.1 flashweir"]
    {
        assert!(head.contains(expected), "{expected} in {head}");
    }
    assert!(!head.contains("x-private") && !head.contains("forged"), "{head}");
    // The same connection serves the next request.
    assert_eq!(client.get("/again").status, 200);
    gateway.await_metric("flashweir_requests_completed_total", 2.0);
    assert_eq!(gateway.metric("flashweir_requests_offered_total"), 2.0);
    assert_eq!(gateway.metric("flashweir_connections_opened_total"), 1.0);
}

#[test]
fn bodies_pass_both_ways_and_continue_is_answered_only_when_admitted() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "abcde");
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().status, 100);
    client.send("xyz");
    assert_eq!(client.response().text(), "xyz");
    assert_eq!(client.get("/large").body.len(), 1 << 20);
}

#[test]
fn a_response_is_streamed_before_it_is_complete() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("GET /streamed HTTP/1.1\r\nhost: a\r\nte: trailers\r\n\r\n");
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "first") {
        lines.push(client.line().expect("the first chunk while the origin still holds the last"));
    }
    origin.release.send(()).expect("release");
    assert_eq!(client.line().as_deref(), Some("4"));
    assert_eq!(client.line().as_deref(), Some("last"));
    assert_eq!(client.line().as_deref(), Some("0"));
    assert_eq!(client.line().as_deref(), Some("x-sum: 42"), "the trailer");
}

#[test]
fn an_upgrade_becomes_a_tunnel_that_counts_as_in_flight_until_it_ends() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("GET /socket HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status, response.expect_field("upgrade").as_str()), (101, "echo"));
    client.send("ping\r\n");
    assert_eq!(client.line().as_deref(), Some("ping"));
    gateway.await_metric("flashweir_requests_in_flight", 1.0);
    drop(client);
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
    gateway.await_metric("flashweir_tunnels_open", 0.0);
    assert_eq!(gateway.metric("flashweir_tunnels_opened_total"), 1.0);
}

#[test]
fn an_upstream_that_fails_before_its_response_is_answered_for() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "upstream.response_header_timeout = '200ms'");
    let mut client = gateway.connect();
    for (path, status, kind) in [("/rubbish", 502, "malformed"), ("/silent", 504, "header_timeout")] {
        let response = client.get(path);
        assert_eq!(
            (response.status, response.expect_field("flashweir-error").as_str()),
            (status, kind),
            "{path}"
        );
        assert_eq!(response.expect_field("cache-control"), "no-store");
    }
    // The client's connection is none the worse.
    assert_eq!(client.get("/hello").status, 200);
    gateway.await_metric("flashweir_requests_failed_total", 2.0);
    assert_eq!(gateway.metric("flashweir_upstream_failures_total{kind=\"malformed\"}"), 1.0);
}

#[test]
fn an_upstream_that_is_not_there_is_answered_for() {
    let closed = flashweir_testbed::reserve_address().unwrap();
    let gateway = Running::start(closed, "");
    let response = gateway.connect().get("/hello");
    assert_eq!((response.status, response.expect_field("flashweir-error").as_str()), (502, "connect"));
}

#[test]
fn an_upstream_that_breaks_off_cuts_the_client_instead_of_ending_cleanly() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    for path in ["/lying", "/breaking"] {
        let mut client = gateway.connect();
        let response = client.get(path);
        assert!(!response.complete, "{path}: {response:?}");
    }
    // A client of HTTP/1.0 takes the connection's end for the body's: it must see a reset.
    let mut old = gateway.connect();
    old.send("GET /breaking HTTP/1.0\r\nhost: a\r\n\r\n");
    let mut read = Vec::new();
    let end = std::io::Read::read_to_end(&mut old.stream, &mut read);
    assert_eq!(end.expect_err("no clean end").kind(), std::io::ErrorKind::ConnectionReset);
    gateway.await_metric("flashweir_requests_failed_total", 3.0);
}

#[test]
fn a_client_that_goes_away_cancels_its_request_at_the_origin() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n");
    origin.next_head();
    drop(client);
    origin.deserted.recv_timeout(PATIENCE).expect("the origin's connection is closed");
    gateway.await_metric("flashweir_requests_abandoned_total", 1.0);
    assert_eq!(gateway.metric("flashweir_requests_in_flight"), 0.0);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused_and_the_connection_closed() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.header_read_timeout = '200ms'");
    for attack in [
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\n\n",
    ] {
        let mut client = gateway.connect();
        client.send(attack);
        assert_eq!(client.response().status, 400, "{attack:?}");
        assert!(client.is_closed(), "{attack:?}");
    }
    gateway.await_metric("flashweir_requests_bad_total{kind=\"framing\"}", 3.0);
    let mut slow = gateway.connect();
    slow.send("GET / HTTP/1.1\r\nhost:");
    assert_eq!(slow.response().status, 408);
    gateway.await_metric("flashweir_requests_bad_total{kind=\"head_timeout\"}", 1.0);
    assert!(origin.heads.try_recv().is_err(), "nothing of it reached the origin");
}

#[test]
fn what_is_no_business_of_a_reverse_proxy_is_refused() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("OPTIONS / HTTP/1.1\r\nhost: a\r\nmax-forwards: 0\r\n\r\n");
    assert_eq!(client.response().status, 200);
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\nexpect: miracles\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(client.response().status, 417);
    let mut client = gateway.connect();
    client.send("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status, 405);
    assert!(response.expect_field("allow").contains("GET"));
    assert!(origin.heads.try_recv().is_err());
}

#[test]
fn a_body_that_cannot_be_read_is_refused_with_the_reason() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n");
    let response = client.response();
    assert_eq!((response.status, response.expect_field("flashweir-error").as_str()), (400, "request_body"));
    assert_eq!(response.text(), "A chunk of the body has no valid size line.\n");
}

//! A full bound answers; it never hangs, and it never lets one client take what belongs to all.

use std::net::Ipv4Addr;
use std::time::Duration;

use flashweir_testkit::{Client, Latch, Upstream, eventually};

use crate::end_to_end::support::{before, get, holding};

#[test]
fn a_head_that_is_too_large_is_refused_by_name() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("bounds.max_head_bytes", "8KiB").start();
    let mut client = gateway.connect();
    let _ = client.try_send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "c".repeat(9_000)));
    assert_eq!(client.response().status(), 431);
    client.expect_closed();
    let mut endless = gateway.connect();
    let _ = endless.try_send(format!("GET /{}", "a".repeat(100_000)));
    assert!(matches!(endless.response().status(), 414 | 431), "a target without end");
    assert_eq!(upstream.request_count(), 0);
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"head_too_large\"}", 2.0);
    let within = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "c".repeat(7_000));
    assert_eq!(gateway.connect().ask(&within).status(), 200);
}

#[test]
fn too_many_fields_are_refused_by_name() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("bounds.max_fields", "16").start();
    let fields = |count: usize| (1..count).map(|index| format!("X-{index}: 1\r\n")).collect::<String>();
    let request = |count| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", fields(count));
    assert_eq!(gateway.connect().ask(&request(16)).status(), 200);
    let mut client = gateway.connect();
    assert_eq!(client.ask(&request(17)).status(), 431);
    client.expect_closed();
    assert_eq!(upstream.request_count(), 1);
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"too_many_fields\"}", 1.0);
}

#[test]
fn a_head_that_comes_too_slowly_is_answered_408() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("bounds.header_read_timeout", "300ms").start();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    assert_eq!(client.response().status(), 408);
    client.expect_closed();
    // The same behind a request that went well: the clock starts again with each head.
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).status(), 200);
    client.send("GET / HT");
    assert_eq!(client.response().status(), 408);
    client.expect_closed();
    assert_eq!(upstream.request_count(), 1);
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"head_timeout\"}", 2.0);
}

#[test]
fn a_slow_head_dripping_bytes_gains_no_time() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("bounds.header_read_timeout", "500ms").start();
    let mut client = gateway.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n");
    // A byte every few looks until the gateway has had enough; more than a hundred would be a loris at home.
    eventually("the end of a dripping head", || {
        let gone = client.try_send("X-A: b\r\n").is_err();
        (gone || !client.is_quiet_for(Duration::from_millis(20))).then_some(())
    });
    assert_eq!(upstream.request_count(), 0);
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"head_timeout\"}", 1.0);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream)
        .text("bounds.keep_alive_timeout", "1s")
        .text("bounds.header_read_timeout", "300ms")
        .start();
    let mut used = gateway.connect();
    assert_eq!(used.ask(&get("/")).status(), 200);
    used.expect_closed();
    let mut never_used = gateway.connect();
    never_used.expect_closed();
    eventually("all connections closed", || {
        (gateway.metrics().value("flashweir_connections_open") == 0.0).then_some(())
    });
}

#[test]
fn a_body_that_stops_coming_does_not_hold_its_place_for_ever() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream)
        .text("bounds.header_read_timeout", "500ms")
        .text("upstream.body_idle_timeout", "1s")
        .text("upstream.response_header_timeout", "1s")
        .start();
    let mut client = gateway.connect();
    client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    // Enough for it to be admitted.
    client.send(vec![b'x'; 70_000]);
    gateway.wait_in_flight(1);
    let answered = client.try_response().map(|response| response.status());
    assert!(answered.as_ref().map_or(true, |status| (400..600).contains(status)), "{answered:?}");
    gateway.wait_in_flight(0);
}

#[test]
fn one_connection_too_many_is_answered_and_closed() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).set("bounds.max_connections", "4").start();
    let mut held: Vec<Client> = (0..4).map(|_| gateway.connect()).collect();
    for client in &mut held {
        assert_eq!(client.ask(&get("/")).status(), 200);
    }
    let mut further = gateway.connect();
    let response = further.ask(&get("/"));
    assert_eq!(response.status(), 503);
    assert!(
        response.field("flashweir-decision").is_some_and(|id| id.ends_with("; reason=connections")),
        "{response:?}"
    );
    assert_eq!(response.field("connection"), Some("close"));
    further.expect_closed();
    for client in &mut held {
        assert_eq!(client.ask(&get("/")).text(), "served", "those inside are served on");
    }
    drop(held);
    eventually("room for others", || (Client::get(gateway.address(), "/").status() == 200).then_some(()));
}

#[test]
fn no_flood_of_connections_stops_the_gateway_from_answering() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).set("bounds.max_connections", "8").start();
    // Far more than the bound and the places for those who only get refusals.
    let mut flood = Vec::new();
    for index in 0..1_200u32 {
        let source = Ipv4Addr::new(127, 1, (index >> 8) as u8, index as u8);
        flood.push(Client::connect_from(source, gateway.address()));
    }
    gateway.wait_metric("flashweir_connections_refused_total{bound=\"refused_connections\"}", 1.0);
    assert_eq!(gateway.ask_admin("/healthz").status(), 200);
    let answers = flood.iter_mut().take(40).map(|client| {
        client.try_send(get("/")).ok()?;
        client.try_response().ok().map(|response| response.status())
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers.iter().all(|status| matches!(status, Some(200 | 503))), "{answers:?}");
    drop(flood);
    eventually("room for others", || (Client::get(gateway.address(), "/").status() == 200).then_some(()));
}

#[test]
fn one_client_cannot_hold_every_connection() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).set("client.max_connections_per_client", "3").start();
    let greedy = Ipv4Addr::new(127, 66, 0, 1);
    let mut held: Vec<Client> = (0..3).map(|_| Client::connect_from(greedy, gateway.address())).collect();
    for client in &mut held {
        assert_eq!(client.ask(&get("/")).status(), 200);
    }
    let mut further = Client::connect_from(greedy, gateway.address());
    let response = further.ask(&get("/"));
    assert_eq!(response.status(), 429);
    let decision = response.field("flashweir-decision").unwrap_or_default();
    assert!(decision.ends_with("; reason=connections_per_client"), "{decision}");
    further.expect_closed();
    let mut other = Client::connect_from(Ipv4Addr::new(127, 66, 0, 2), gateway.address());
    assert_eq!(other.ask(&get("/")).status(), 200, "others are served");
}

#[test]
fn a_proxy_that_is_trusted_speaks_for_many() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream)
        .set("client.max_connections_per_client", "2")
        .set("client.trusted_proxies", "[\"127.0.0.1\"]")
        .start();
    let mut held: Vec<Client> = (0..6).map(|_| gateway.connect()).collect();
    assert!(held.iter_mut().all(|client| client.ask(&get("/")).status() == 200));
}

#[test]
fn one_request_too_many_is_refused_at_once_and_its_connection_kept() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).set("bounds.max_requests_in_flight", "3").start();
    let mut held: Vec<Client> = (0..3).map(|_| gateway.connect()).collect();
    held.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(3);
    eventually("all three at the origin", || (upstream.request_count() == 3).then_some(()));
    let mut further = gateway.connect();
    for _ in 0..3 {
        let response = further.ask(&get("/"));
        assert_eq!(response.status(), 503);
        let decision = response.field("flashweir-decision").unwrap_or_default();
        assert!(decision.ends_with("; reason=requests_in_flight"), "{decision}");
        assert!(!response.fields.has("connection"), "a refusal keeps the connection");
    }
    assert_eq!(upstream.request_count(), 3, "a refusal costs the origin nothing");
    assert!(
        gateway.status()["binds"]
            .as_array()
            .is_some_and(|binds| binds.contains(&"requests_in_flight".into()))
    );
    latch.open();
    assert!(held.iter_mut().all(|client| client.response().text() == "held"), "those inside are served");
    gateway.wait_in_flight(0);
    assert_eq!(further.ask(&get("/")).status(), 200, "on the connection that was refused before");
    let shed = gateway.metrics().value("flashweir_requests_shed_total{reason=\"requests_in_flight\"}");
    assert_eq!(shed, 3.0);
}

#[test]
fn busy_upstream_connections_refuse_and_never_queue() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).set("upstream.max_connections", "2").set("gateway.workers", "1").start();
    let mut held: Vec<Client> = (0..2).map(|_| gateway.connect()).collect();
    held.iter_mut().for_each(|client| client.send(get("/")));
    eventually("both connections busy", || (upstream.request_count() == 2).then_some(()));
    let response = gateway.get("/");
    assert_eq!(response.status(), 503);
    let decision = response.field("flashweir-decision").unwrap_or_default();
    assert!(decision.ends_with("; reason=upstream_connections"), "{decision}");
    assert!(
        response.field("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok_and(|s| s >= 1))
    );
    assert_eq!(upstream.received().connections, 2, "the bound holds");
    latch.open();
    assert!(held.iter_mut().all(|client| client.response().status() == 200));
}

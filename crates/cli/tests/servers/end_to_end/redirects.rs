//! `listen.redirect`: port 80 sends clients to HTTPS, and answers nothing else.

use std::net::SocketAddr;

use flashweir_testkit::{
    Authority, Client, Curl, Gateway, GatewayBuilder, Message, Upstream, eventually, reserve_address,
};

use crate::end_to_end::support::{before, get};

/// A gateway that speaks TLS, and where it redirects.
fn redirecting(upstream: &Upstream, authority: &Authority) -> (GatewayBuilder, SocketAddr) {
    let (builder, redirect) = (before(upstream), reserve_address());
    let _files = authority.issue(builder.directory(), "shop");
    let builder = builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key");
    (builder.text("listen.redirect", &redirect.to_string()), redirect)
}

fn started() -> (Upstream, Gateway, SocketAddr) {
    let upstream = Upstream::saying("served");
    let (builder, redirect) = redirecting(&upstream, &Authority::new());
    (upstream, builder.start(), redirect)
}

fn ask(redirect: SocketAddr, request: &str) -> Message {
    Client::connect(redirect).ask(request)
}

#[test]
fn every_request_is_sent_to_the_same_url_over_tls() {
    let (upstream, gateway, redirect) = started();
    let port = gateway.address().port();
    for (request, expected) in [
        ("GET /a/b?c=d%20e HTTP/1.1\r\nHost: shop.example\r\n\r\n", "shop.example:PORT/a/b?c=d%20e"),
        ("GET / HTTP/1.1\r\nHost: shop.example:8080\r\n\r\n", "shop.example:PORT/"),
        ("GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n", "shop.example:PORT/"),
        ("GET /x HTTP/1.1\r\nHost: [2001:db8::7]:80\r\n\r\n", "[2001:db8::7]:PORT/x"),
        ("GET http://shop.example/x HTTP/1.1\r\nHost: shop.example\r\n\r\n", "shop.example:PORT/x"),
        ("DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n", "a:PORT/x"),
        ("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "a:PORT/x"),
        ("GET //other.example/x HTTP/1.1\r\nHost: a\r\n\r\n", "a:PORT//other.example/x"),
    ] {
        let mut client = Client::connect(redirect);
        let response = client.ask(request);
        let location = format!("https://{}", expected.replace("PORT", &port.to_string()));
        assert_eq!((response.status(), response.field("location")), (308, Some(&*location)), "{request}");
        assert_eq!((response.text().as_str(), response.field("connection")), ("", Some("close")));
        client.expect_closed();
    }
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_requests_redirected_total"), 8.0);
    assert_eq!(metrics.value("flashweir_requests_offered_total"), 0.0);
    assert_eq!(upstream.request_count(), 0);
    assert_eq!(gateway.listening().addresses("redirect"), [redirect]);
    assert_eq!(gateway.listening().addresses("listen"), [gateway.address()]);
}

#[test]
fn a_request_without_a_good_host_is_a_bad_one() {
    let (_upstream, gateway, redirect) = started();
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: \r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    ] {
        assert_eq!(ask(redirect, request).status(), status, "{request}");
    }
    assert_eq!(gateway.metrics().value("flashweir_requests_redirected_total"), 0.0);
}

#[test]
fn challenges_of_acme_reach_the_service() {
    let (upstream, _gateway, redirect) = started();
    let response = ask(redirect, &get("/.well-known/acme-challenge/LoqXcYV8q5ONbJQ-_x"));
    assert_eq!((response.status(), response.text().as_str()), (200, "served"));
    assert_eq!(upstream.last_request().field("x-forwarded-proto"), Some("http"));
    assert_eq!(ask(redirect, &get("/.well-known/acme-challenge/../../admin")).status(), 308);
    assert_eq!(upstream.request_count(), 1);
}

#[test]
fn the_real_curl_follows_it() {
    let test = "the_real_curl_follows_it";
    let Some(curl) = Curl::require(test) else { return };
    let authority = Authority::new();
    let upstream = Upstream::saying("served");
    let (builder, redirect) = redirecting(&upstream, &authority);
    let ca = authority.write(builder.directory()).display().to_string();
    let _gateway = builder.start();
    let url = format!("http://localhost:{}/page", redirect.port());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        // Only the first hop: with prior knowledge curl would not negotiate over TLS.
        let output = curl.get(&url, &[version, "--ipv4"]);
        assert_eq!(output.status, 308, "{version}: {}", output.stderr);
    }
    let output = curl.get(&url, &["--ipv4", "--location", "--cacert", &ca]);
    assert_eq!((output.status, output.text().as_str()), (200, "served"), "{}", output.stderr);
}

#[test]
fn the_bounds_and_the_proxy_protocol_hold_there_too() {
    let upstream = Upstream::saying("served");
    let (builder, redirect) = redirecting(&upstream, &Authority::new());
    let builder = builder.set("listen.proxy_protocol_from", "[\"127.0.0.1\"]");
    let gateway = builder.text("bounds.header_read_timeout", "300ms").start();
    let request = format!("PROXY TCP4 203.0.113.7 192.0.2.1 4711 80\r\n{}", get("/"));
    assert_eq!(ask(redirect, &request).status(), 308);
    let mut silent = Client::connect(redirect);
    silent.expect_closed();
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"proxy_header\"}", 1.0);
}

#[test]
fn it_changes_only_at_a_restart() {
    let (_upstream, mut gateway, redirect) = started();
    gateway.configure(&[("listen.redirect", None)]);
    gateway.reload();
    eventually("a message", || {
        gateway.stderr().contains("listen.redirect cannot change while running, restart for it").then_some(())
    });
    assert_eq!(ask(redirect, &get("/")).status(), 308);
}

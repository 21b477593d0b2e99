//! Behind a load balancer that passes on TCP: the client is the address that its header names.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flashweir_testkit::{Authority, Client, Curl, Gateway, GatewayBuilder, Haproxy, Upstream, eventually};

use crate::end_to_end::support::{before, get};

const FAILED: &str = "flashweir_connections_failed_total{kind=\"proxy_header\"}";

/// A gateway behind load balancers at 127.0.0.1.
fn behind(upstream: &Upstream) -> GatewayBuilder {
    before(upstream).set("listen.proxy_protocol_from", "[\"127.0.0.1\"]")
}

/// A header of version 1.
fn line(source: &str) -> String {
    format!("PROXY TCP4 {source} 192.0.2.1 4711 80\r\n")
}

/// A header of version 2: command, family, and the rest.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("a short rest").to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[0x20 | command, family][..], &length, rest].concat()
}

fn binary_ipv4(source: [u8; 4]) -> Vec<u8> {
    binary(1, 0x11, &[&source[..], &[192, 0, 2, 1, 0x12, 0x67, 0, 80]].concat())
}

fn binary_ipv6(source: &str) -> Vec<u8> {
    let source = source.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    binary(1, 0x21, &[&source[..], &source, &[0x12, 0x67, 0, 80]].concat())
}

/// Asks over a new connection that begins with these bytes; the address that the server was given.
fn client_behind(gateway: &Gateway, upstream: &Upstream, header: &[u8]) -> String {
    let mut client = gateway.connect();
    client.send([header, get("/").as_bytes()].concat());
    assert_eq!(client.response().status(), 200);
    upstream.last_request().field("x-forwarded-for").unwrap_or_default().to_owned()
}

#[test]
fn the_client_is_the_one_that_the_header_names() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).start();
    for (header, expected) in [
        (line("203.0.113.7").into_bytes(), "203.0.113.7"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n".to_vec(), "2001:db8::7"),
        (binary_ipv4([203, 0, 113, 8]), "203.0.113.8"),
        (binary_ipv6("2001:db8::8"), "2001:db8::8"),
        (binary_ipv6("::ffff:203.0.113.9"), "203.0.113.9"),
        // The load balancer speaks for itself.
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (binary(0, 0, &[]), "127.0.0.1"),
        // Additional fields.
        (binary(1, 0x11, &[203, 0, 113, 10, 192, 0, 2, 1, 0, 1, 0, 80, 4, 0, 1, 0]), "203.0.113.10"),
    ] {
        assert_eq!(client_behind(&gateway, &upstream, &header), expected, "{header:?}");
    }
    let seen = upstream.last_request();
    assert_eq!(seen.field("forwarded"), Some("for=203.0.113.10;host=shop.example;proto=http"));
    assert_eq!(gateway.metrics().value(FAILED), 0.0);
}

#[test]
fn the_access_log_has_the_named_address() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).text("log.access.file", "access.log").start();
    assert_eq!(client_behind(&gateway, &upstream, line("203.0.113.7").as_bytes()), "203.0.113.7");
    eventually("its line", || {
        let lines = std::fs::read_to_string(gateway.directory().join("access.log")).ok()?;
        lines.contains("203.0.113.7").then_some(())
    });
}

#[test]
fn a_header_may_come_in_pieces_and_its_connection_stays() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).start();
    for header in [line("203.0.113.7").into_bytes(), binary_ipv4([203, 0, 113, 7])] {
        let mut client = gateway.connect();
        let (first, second) = header.split_at(13);
        client.send(first);
        assert!(client.is_quiet_for(Duration::from_millis(50)));
        client.send(second);
        assert!(client.is_quiet_for(Duration::from_millis(50)), "the header alone is answered by nothing");
        for _ in 0..2 {
            assert_eq!(client.ask(&get("/")).status(), 200);
            assert_eq!(upstream.last_request().field("x-forwarded-for"), Some("203.0.113.7"));
        }
    }
}

#[test]
fn from_another_address_a_header_is_a_bad_request() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).start();
    let stranger = Ipv4Addr::new(127, 9, 9, 9);
    for header in [line("203.0.113.7").into_bytes(), binary_ipv4([203, 0, 113, 7])] {
        let mut client = Client::connect_from(stranger, gateway.address());
        client.send([&header[..], get("/").as_bytes()].concat());
        assert_eq!(client.response().status(), 400, "{header:?}");
    }
    assert_eq!(upstream.request_count(), 0);
    assert_eq!(Client::connect_from(stranger, gateway.address()).ask(&get("/")).status(), 200);
    assert_eq!(upstream.last_request().field("x-forwarded-for"), Some("127.9.9.9"));
    assert_eq!(gateway.metrics().value(FAILED), 0.0);
}

#[test]
fn a_connection_without_a_usable_header_is_closed_and_counted() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).start();
    let wrong = [
        get("/").into_bytes(),
        b"PROXY TCP4 203.0.113.999 192.0.2.1 4711 80\r\n".to_vec(),
        [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat(),
        binary(1, 0x11, &[0; 3]),
        binary(1, 0x11, &[0; 5_000]),
        binary(2, 0x11, &[0; 12]),
    ];
    for (index, bytes) in wrong.iter().enumerate() {
        let mut client = gateway.connect();
        let _ = client.try_send([&bytes[..], get("/").as_bytes()].concat());
        client.expect_closed();
        gateway.wait_metric(FAILED, (index + 1) as f64);
    }
    assert_eq!(upstream.request_count(), 0);
    // A load balancer's probe: it connects, and that is all.
    drop(gateway.connect());
    assert_eq!(client_behind(&gateway, &upstream, line("203.0.113.7").as_bytes()), "203.0.113.7");
    let metrics = gateway.metrics();
    assert_eq!(metrics.value(FAILED), wrong.len() as f64);
    assert!(gateway.stderr().contains("does not begin with a PROXY protocol header"), "{}", gateway.stderr());
}

#[test]
fn a_silent_connection_is_closed_after_the_time_for_a_head() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream)
        .text("bounds.header_read_timeout", "300ms")
        .set("bounds.max_connections", "4")
        .start();
    let mut silent: Vec<Client> = (0..3).map(|_| gateway.connect()).collect();
    silent[0].send("PROXY TCP4 203.0");
    let header = line("203.0.113.7");
    assert_eq!(client_behind(&gateway, &upstream, header.as_bytes()), "203.0.113.7", "others are not kept");
    silent.iter_mut().for_each(Client::expect_closed);
    gateway.wait_metric(FAILED, 3.0);
}

#[test]
fn a_stop_does_not_wait_for_a_header() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).text("bounds.header_read_timeout", "1m").start();
    let mut silent = gateway.connect();
    silent.send("PROXY ");
    assert_eq!(client_behind(&gateway, &upstream, b"PROXY UNKNOWN\r\n"), "127.0.0.1");
    gateway.terminate();
    silent.expect_closed();
    assert_eq!(gateway.finish().code(), Some(0));
}

#[test]
fn the_bound_for_one_client_holds_for_the_named_address() {
    let upstream = Upstream::saying("served");
    let gateway = behind(&upstream).set("client.max_connections_per_client", "2").start();
    let ask = |client: &mut Client, source: &str| {
        client.send(line(source) + &get("/"));
        client.response()
    };
    let mut held: Vec<Client> = (0..2).map(|_| gateway.connect()).collect();
    held.iter_mut().for_each(|client| assert_eq!(ask(client, "203.0.113.7").status(), 200));
    let mut further = gateway.connect();
    let refused = ask(&mut further, "203.0.113.7");
    assert_eq!(refused.status(), 429);
    let decision = refused.field("flashweir-decision").unwrap_or_default();
    assert!(decision.ends_with("; reason=connections_per_client"), "{decision}");
    further.expect_closed();
    // The load balancer's connections in all are more than one client may have.
    let others = ["203.0.113.8", "203.0.113.9", "203.0.113.10"];
    let mut others: Vec<_> = others.iter().map(|source| (gateway.connect(), source)).collect();
    others.iter_mut().for_each(|(client, source)| assert_eq!(ask(client, source).status(), 200));
    drop(held);
    eventually("room for the client", || {
        (ask(&mut gateway.connect(), "203.0.113.7").status() == 200).then_some(())
    });
}

#[test]
fn the_named_address_may_be_a_trusted_proxy() {
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).set("client.trusted_proxies", "[\"203.0.113.0/24\"]").start();
    let request =
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Proto: https\r\n\r\n";
    for (source, addresses, scheme) in
        [("203.0.113.7", "198.51.100.7, 203.0.113.7", "https"), ("192.0.2.7", "192.0.2.7", "http")]
    {
        let mut client = gateway.connect();
        client.send(line(source) + request);
        assert_eq!(client.response().status(), 200);
        let seen = upstream.last_request();
        assert_eq!(seen.fields.all("x-forwarded-for").join(", "), addresses);
        assert_eq!(seen.fields.all("x-forwarded-proto"), [scheme]);
    }
}

#[test]
fn a_reload_changes_it_for_new_connections() {
    let upstream = Upstream::reflecting();
    let mut gateway = before(&upstream).start();
    let mut kept = gateway.connect();
    assert_eq!(kept.ask(&get("/")).status(), 200);
    gateway.configure(&[("listen.proxy_protocol_from", Some("[\"127.0.0.1\"]"))]);
    gateway.reload();
    eventually("a header that is read", || {
        let mut client = gateway.connect();
        client.send(line("203.0.113.7") + &get("/"));
        (client.response().status() == 200).then_some(())
    });
    assert_eq!(upstream.last_request().field("x-forwarded-for"), Some("203.0.113.7"));
    assert_eq!(kept.ask(&get("/")).status(), 200, "a connection keeps its client");
    assert_eq!(upstream.last_request().field("x-forwarded-for"), Some("127.0.0.1"));
}

/// The real HAProxy before the gateway, in both versions, with HTTP/1, HTTP/2 and TLS passed through.
#[test]
fn the_real_haproxy_names_its_clients_in_the_clear_and_before_tls() {
    let test = "the_real_haproxy_names_its_clients_in_the_clear_and_before_tls";
    let Some(curl) = Curl::require(test) else { return };
    let authority = Authority::new();
    let upstream = Upstream::reflecting();
    for is_tls in [false, true] {
        let mut builder = behind(&upstream);
        let ca = authority.write(builder.directory()).display().to_string();
        if is_tls {
            let _files = authority.issue(builder.directory(), "shop");
            builder =
                builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key");
        }
        let gateway = builder.start();
        for (version, source) in [("send-proxy", "127.0.0.71"), ("send-proxy-v2", "127.0.0.72")] {
            let Some(haproxy) = Haproxy::require(test, gateway.address(), version) else { return };
            let scheme = if is_tls { "https" } else { "http" };
            let url = format!("{scheme}://localhost:{}/", haproxy.address().port());
            let http2 = if is_tls { "--http2" } else { "--http2-prior-knowledge" };
            for http in ["--http1.1", http2] {
                let fixed = ["--ipv4", "--cacert", &ca, "--interface", source, http];
                let output = curl.get(&url, &fixed);
                assert_eq!((output.code, output.status), (0, 200), "{version} {http}: {}", output.stderr);
                let seen = upstream.last_request();
                assert_eq!(seen.field("x-forwarded-for"), Some(source), "{version} {http}");
                assert_eq!(seen.field("x-forwarded-proto"), Some(scheme), "{version} {http}");
            }
        }
        assert_eq!(gateway.metrics().value(FAILED), 0.0);
    }
}

/// HAProxy's own probes, which bring a header that names no client (version 2: LOCAL), are no failures.
#[test]
fn the_real_haproxys_probes_are_no_failures() {
    let test = "the_real_haproxys_probes_are_no_failures";
    let upstream = Upstream::reflecting();
    let gateway = behind(&upstream).start();
    for version in ["send-proxy", "send-proxy-v2"] {
        let options = format!("{version} check inter 50ms");
        let Some(haproxy) = Haproxy::require(test, gateway.address(), &options) else { return };
        let opened = gateway.metrics().value("flashweir_connections_opened_total");
        gateway.wait_metric("flashweir_connections_opened_total", opened + 5.0);
        let address: SocketAddr = haproxy.address();
        assert_eq!(Client::get(address, "/").status(), 200);
    }
    assert_eq!(gateway.metrics().value(FAILED), 0.0);
}

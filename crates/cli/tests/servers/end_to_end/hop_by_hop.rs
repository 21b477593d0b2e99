//! Fields that belong to one connection stay on it, and targets mean the same before and after.

use flashweir_testkit::{Upstream, reflect};

use crate::end_to_end::support::{before, get, get_with, reflecting};

#[test]
fn a_requests_hop_by_hop_fields_end_here() {
    let (upstream, gateway) = reflecting();
    let request = "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive, X-Private, close-ish\r\n\
        Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nX-Private: secret\r\nClose-Ish: 1\r\nTE: gzip\r\n\
        Proxy-Authorization: Basic eA==\r\nUpgrade: foo/2\r\nX-Kept: yes\r\nFlashweir-Decision: forged\r\n\
        Authorization: Basic eQ==\r\n\r\n";
    assert_eq!(gateway.connect().ask(request).status(), 200);
    let seen = upstream.last_request();
    for gone in [
        "keep-alive",
        "proxy-connection",
        "x-private",
        "close-ish",
        "te",
        "proxy-authorization",
        "upgrade",
        "flashweir-decision",
    ] {
        assert!(!seen.fields.has(gone), "{gone} was passed on: {:?}", seen.fields);
    }
    assert_eq!(seen.field("x-kept"), Some("yes"));
    assert_eq!(seen.field("authorization"), Some("Basic eQ=="), "that one is for the origin");
    assert_eq!(seen.fields.all("host"), ["shop.example"]);
}

#[test]
fn connection_cannot_name_what_frames_or_routes_the_request() {
    let (upstream, gateway) = reflecting();
    let request = "POST / HTTP/1.1\r\nHost: shop.example\r\nConnection: Host, Content-Length, X-Forwarded-For\r\n\
        Content-Length: 2\r\n\r\nhi";
    let response = gateway.connect().ask(request);
    if response.status() == 200 {
        assert_eq!(response.field("x-body-bytes"), Some("2"));
        let seen = upstream.last_request();
        assert_eq!(
            (seen.field("host"), seen.field("x-forwarded-for")),
            (Some("shop.example"), Some("127.0.0.1"))
        );
    } else {
        assert_eq!(response.status(), 400);
    }
}

#[test]
fn a_responses_hop_by_hop_fields_end_here() {
    let upstream = Upstream::start(|connection| {
        let fields = "Connection: X-Private\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Private: 1\r\n\
            Upgrade: foo/2\r\nX-Kept: yes\r\nVia: 1.1 inner\r\nWWW-Authenticate: Basic\r\n";
        while connection.read_request().is_some() && connection.answer(200, fields, "x") {}
    });
    let gateway = before(&upstream).start();
    let response = gateway.connect().ask(&get("/"));
    for gone in ["keep-alive", "proxy-authenticate", "x-private", "upgrade"] {
        assert!(!response.fields.has(gone), "{gone} was passed on: {:?}", response.fields);
    }
    assert_eq!(response.field("x-kept"), Some("yes"));
    assert_eq!(response.field("www-authenticate"), Some("Basic"), "that one is for the client");
    assert_eq!(response.fields.all("via").join(", "), "1.1 inner, 1.1 flashweir");
}

#[test]
fn via_names_us_behind_those_before_us() {
    let (upstream, gateway) = reflecting();
    let _ = gateway.connect().ask(&get_with("/", "Via: 1.0 fred"));
    assert_eq!(upstream.last_request().fields.all("via").join(", "), "1.0 fred, 1.1 flashweir");
    let _ = gateway.connect().ask("GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    assert_eq!(upstream.last_request().fields.all("via").join(", "), "1.0 flashweir");
}

#[test]
fn trailers_are_promised_only_to_whom_the_client_wants_them_from() {
    let (upstream, gateway) = reflecting();
    let _ =
        gateway.connect().ask("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers, gzip\r\nConnection: TE\r\n\r\n");
    let seen = upstream.last_request();
    assert_eq!(seen.field("te"), Some("trailers"));
    assert!(
        seen.fields.all("connection").iter().any(|value| value.eq_ignore_ascii_case("te")),
        "{:?}",
        seen.fields
    );
}

#[test]
fn an_absolute_target_is_sent_on_with_its_own_host() {
    let (upstream, gateway) = reflecting();
    let request = "GET http://real.example:81/path?q HTTP/1.1\r\nHost: real.example:81\r\n\r\n";
    assert_eq!(gateway.connect().ask(request).status(), 200);
    let seen = upstream.last_request();
    assert_eq!(
        (seen.start.as_str(), seen.fields.all("host")),
        ("GET /path?q HTTP/1.1", vec!["real.example:81"])
    );
}

#[test]
fn a_host_that_differs_from_an_absolute_target_is_never_believed() {
    // RFC 9112 §3.2.2: the target wins; refusing is as good. What may not happen is that `Host` reaches the
    // upstream.
    let (upstream, gateway) = reflecting();
    let response = gateway.connect().ask("GET http://real.example/ HTTP/1.1\r\nHost: forged.example\r\n\r\n");
    match response.status() {
        200 => assert_eq!(upstream.last_request().fields.all("host"), ["real.example"]),
        status => assert_eq!((status, upstream.request_count()), (400, 0)),
    }
    assert!(!upstream.received().contains("forged"), "the other host reached the upstream");
}

#[test]
fn max_forwards_counts_down_and_ends_here() {
    let (upstream, gateway) = reflecting();
    let options = |left| format!("OPTIONS / HTTP/1.1\r\nHost: shop.example\r\nMax-Forwards: {left}\r\n\r\n");
    let mut client = gateway.connect();
    assert_eq!(client.ask(&options(3)).status(), 200);
    assert_eq!(upstream.last_request().field("max-forwards"), Some("2"));
    let last = client.ask(&options(0));
    assert!(last.status() == 200 && last.fields.has("allow"), "{last:?}");
    let _ = client.ask(&get_with("/", "Max-Forwards: 0"));
    assert_eq!(upstream.last_request().field("max-forwards"), Some("0"), "means nothing for GET");
    assert_eq!(upstream.request_count(), 2);
}

#[test]
fn trace_does_not_reflect_and_connect_opens_nothing() {
    let (upstream, gateway) = reflecting();
    let trace = "TRACE / HTTP/1.1\r\nHost: shop.example\r\nCookie: secret\r\nMax-Forwards: 0\r\n\r\n";
    let response = gateway.connect().ask(trace);
    assert!(matches!(response.status(), 405 | 501), "{response:?}");
    assert!(!response.text().contains("secret"));
    let connect = "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n";
    let response = gateway.connect().ask(connect);
    assert!(matches!(response.status(), 405 | 501), "{response:?}");
    assert_eq!(upstream.request_count(), 0);
}

#[test]
fn options_about_the_server_passes_as_it_is() {
    let (upstream, gateway) = reflecting();
    assert_eq!(gateway.connect().ask("OPTIONS * HTTP/1.1\r\nHost: shop.example\r\n\r\n").status(), 200);
    assert_eq!(upstream.last_request().start, "OPTIONS * HTTP/1.1");
}

#[test]
fn an_interim_response_does_not_end_the_exchange() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.read_request() {
            connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n");
            if !reflect(connection, &request) {
                return;
            }
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    for _ in 0..2 {
        client.send(get("/bytes/10"));
        let mut response = client.response();
        while response.status() == 103 {
            response = client.response();
        }
        assert_eq!((response.status(), response.body.len()), (200, 10));
    }
}

//! A message arrives as it was sent, or not at all: nothing is dropped, relabelled or forged on the way.

use std::net::Ipv4Addr;

use flashweir_testkit::{
    Client, Connection, GatewayBuilder, Http2Client, Message, StreamEnd, Upstream, frame,
};

use crate::end_to_end::support::{before, binary, get, reflecting};

const CHUNKED: &str = "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsearch\r\n0\r\n\r\n";

/// Answers every request with exactly these bytes.
fn scripted(bytes: &'static str) -> Upstream {
    Upstream::start(
        move |connection: &mut Connection| {
            while connection.read_request().is_some() && connection.send(bytes) {}
        },
    )
}

/// Answer to a client's GET where the upstream sends these bytes.
fn passed_on(bytes: &'static str) -> Message {
    let upstream = scripted(bytes);
    let gateway = before(&upstream).start();
    gateway.connect().ask(&get("/"))
}

#[test]
fn a_get_keeps_its_body_whatever_its_length() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    let response = client.ask(&format!("GET /search HTTP/1.1\r\n{CHUNKED}"));
    assert_eq!((response.status(), response.field("x-body-bytes")), (200, Some("6")));
    client.send(format!("HEAD /search HTTP/1.1\r\n{CHUNKED}"));
    assert_eq!(client.response_to_head().expect("a response").status(), 200);
    let response = client.ask("GET /search HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nsearch");
    assert_eq!(response.field("x-body-bytes"), Some("6"));
    let fields: [(&str, &[u8]); 4] =
        [(":method", b"GET"), (":scheme", b"http"), (":path", b"/"), (":authority", b"a")];
    let mut http2 = Http2Client::connect(gateway.address());
    http2.request(1, &fields, 0);
    http2.send_frame(frame::DATA, frame::END_STREAM, 1, b"search");
    assert_eq!(http2.outcome(1), StreamEnd::Status(200));
    let bodies = upstream.received();
    let text = String::from_utf8_lossy(&bodies.bytes);
    assert_eq!(text.matches("search\r\n").count() + text.matches("\r\n\r\nsearch").count(), 4, "{text}");
    assert_eq!(client.ask(&get("/")).status(), 200);
    let plain = upstream.last_request();
    assert!(
        !plain.fields.has("transfer-encoding") && !plain.fields.has("content-length"),
        "no body, no length"
    );
}

#[test]
fn a_response_says_its_length_once_and_its_coding_truly() {
    let twice = passed_on("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok");
    assert_eq!((twice.status(), twice.fields.all("content-length")), (200, vec!["2"]));
    let twice = passed_on("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!((twice.status(), twice.fields.all("content-length")), (200, vec!["2"]));
    for coding in ["gzip, chunked", "cow, chunked", "identity", "chunked, chunked"] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n");
        let refused = passed_on(Box::leak(bytes.into_boxed_str()));
        assert_eq!(
            (refused.status(), refused.field("flashweir-error")),
            (502, Some("malformed")),
            "{coding}"
        );
    }
}

#[test]
fn an_upstream_cannot_speak_for_the_gateway() {
    let forged = passed_on(
        "HTTP/1.1 200 OK\r\nFlashweir-Decision: 0000000000000; reason=capacity\r\nFlashweir-Error: connect\r\n\
         Trailer: Flashweir-Decision, X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\
         Flashweir-Decision: forged\r\nX-Sum: 1\r\n\r\n",
    );
    assert_eq!((forged.status(), forged.text().as_str()), (200, "ok"));
    let ours = |(name, _): &&(String, String)| name.to_ascii_lowercase().starts_with("flashweir");
    let all = forged.fields.0.iter().chain(&forged.trailers.0);
    assert_eq!(all.filter(ours).count(), 0, "{forged:?}");
}

#[test]
fn what_the_upstream_says_to_the_page_reaches_it() {
    let timed = passed_on(
        "HTTP/1.1 200 OK\r\nServer-Timing: cpu;dur=2.5\r\nEndpoint-Load-Metrics: TEXT cpu_utilization=0.5\r\n\
         Content-Length: 2\r\n\r\nok",
    );
    assert_eq!(timed.field("server-timing"), Some("cpu;dur=2.5"));
    assert!(!timed.fields.has("endpoint-load-metrics"), "that one is for load balancers");
}

#[test]
fn a_response_has_up_to_256_fields() {
    let with_fields = |count: usize| {
        let fields: String = (0..count - 1).map(|index| format!("X-{index}: 1\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\nok")
    };
    let (most, too_many) = (with_fields(256), with_fields(257));
    assert_eq!(passed_on(Box::leak(most.into_boxed_str())).status(), 200);
    let refused = passed_on(Box::leak(too_many.into_boxed_str()));
    assert_eq!((refused.status(), refused.field("flashweir-error")), (502, Some("head_too_large")));
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "v".repeat(600_000));
    let refused = passed_on(Box::leak(long.into_boxed_str()));
    assert_eq!((refused.status(), refused.field("flashweir-error")), (502, Some("head_too_large")));
}

#[test]
fn one_clients_requests_do_not_make_the_upstreams_ill() {
    // A server that drops the connection on a request it finds malformed, as some do.
    let picky = || {
        Upstream::start(|connection: &mut Connection| {
            while let Some(request) = connection.read_request() {
                if request.start.starts_with("GET /malformed ") {
                    return connection.reset();
                }
                if !connection.answer(200, "", "ok") {
                    return;
                }
            }
        })
    };
    let (first, second) = (picky(), picky());
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([first.url().as_str(), second.url().as_str()])
        .text("upstream.health.eject_for", "30s")
        .start();
    for _ in 0..20 {
        let mut attacker = Client::connect_from(Ipv4Addr::new(127, 6, 6, 6), gateway.address());
        assert_eq!(attacker.ask(&get("/malformed")).status(), 502);
    }
    let status = gateway.status();
    for index in 0..2 {
        assert_eq!(status["upstreams"][index]["healthy"], true, "{}", status["upstreams"]);
    }
    assert_eq!(gateway.get("/").status(), 200);
}

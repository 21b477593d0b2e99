//! HTTP/2 is no way around the rules of HTTP/1: what one refuses, the other refuses, and the upstream hears
//! of neither.

use std::time::{Duration, Instant};

use flashweir_testkit::{Gateway, Http2Client, StreamEnd, Upstream, frame};

use crate::end_to_end::support::{before, get, reflecting};

/// RFC 9113 §7: what the library answers to heads that break HTTP/2 itself.
const PROTOCOL_ERROR: u32 = 1;

/// A head that follows the usual pseudo-fields, or brings its own.
struct Head {
    name: &'static str,
    pseudo: &'static [(&'static str, &'static [u8])],
    fields: &'static [(&'static str, &'static [u8])],
}

const USUAL: &[(&str, &[u8])] =
    &[(":method", b"POST"), (":scheme", b"http"), (":path", b"/heard"), (":authority", b"a")];
const WITHOUT_AUTHORITY: &[(&str, &[u8])] =
    &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/heard")];

const fn usual(name: &'static str, fields: &'static [(&'static str, &'static [u8])]) -> Head {
    Head { name, pseudo: USUAL, fields }
}

const fn host(name: &'static str, fields: &'static [(&'static str, &'static [u8])]) -> Head {
    Head { name, pseudo: WITHOUT_AUTHORITY, fields }
}

const REFUSED: &[Head] = &[
    usual("transfer_encoding", &[("transfer_encoding", b"chunked")]),
    usual("content_length", &[("content_length", b"44")]),
    usual("two lengths", &[("content-length", b"0"), ("content-length", b"0")]),
    usual("two different lengths", &[("content-length", b"0"), ("content-length", b"44")]),
    usual("an empty length", &[("content-length", b"")]),
    usual("a length with a sign", &[("content-length", b"+0")]),
    usual("a blank before a value", &[("x-a", b" b")]),
    usual("a blank behind a value", &[("x-a", b"b ")]),
    usual("a tab before a length", &[("content-length", b"\t0")]),
    usual("another host than the authority", &[("host", b"b")]),
    usual("two hosts", &[("host", b"a"), ("host", b"a")]),
    host("no host", &[]),
    host("a host with a blank", &[("host", b"a b")]),
    host("a host with a path", &[("host", b"a/b")]),
    host("a host with a user", &[("host", b"u:p@b")]),
    host("a host with a query", &[("host", b"a?b")]),
    host("a host that is no text", &[("host", b"\xff")]),
    host("a host with two ports", &[("host", b"a:80:90")]),
    host("a host with a port that is none", &[("host", b"a:xx")]),
    host("half an address", &[("host", b"[::1")]),
    host("an empty host", &[("host", b"")]),
    Head {
        name: "an authority with a user",
        pseudo: &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/heard"), (":authority", b"u:p@b")],
        fields: &[],
    },
    Head {
        name: "an authority with a port that is none",
        pseudo: &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/heard"), (":authority", b"a:xx")],
        fields: &[],
    },
    Head {
        name: "an empty authority",
        pseudo: &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/heard"), (":authority", b"")],
        fields: &[],
    },
    Head {
        name: "a star that is not for OPTIONS",
        pseudo: &[(":method", b"GET"), (":scheme", b"http"), (":path", b"*"), (":authority", b"a")],
        fields: &[],
    },
    Head {
        name: "a path without a slash",
        pseudo: &[(":method", b"GET"), (":scheme", b"http"), (":path", b"heard"), (":authority", b"a")],
        fields: &[],
    },
    Head {
        name: "TRACE",
        pseudo: &[(":method", b"TRACE"), (":scheme", b"http"), (":path", b"/heard"), (":authority", b"a")],
        fields: &[],
    },
];

/// Outcome of a request with this head, on its own connection.
fn answer(gateway: &Gateway, head: &Head) -> StreamEnd {
    let mut client = Http2Client::connect(gateway.address());
    client.request(1, &[head.pseudo, head.fields].concat(), frame::END_STREAM);
    client.outcome(1)
}

#[test]
fn what_http1_refuses_is_refused_in_http2_and_stays_unheard() {
    let (upstream, gateway) = reflecting();
    let mut wrong = Vec::new();
    for head in REFUSED {
        let heard_before = upstream.request_count();
        match answer(&gateway, head) {
            StreamEnd::Status(400 | 405) | StreamEnd::Reset(PROTOCOL_ERROR) => {}
            other => wrong.push(format!("{}: {other:?}", head.name)),
        }
        if upstream.request_count() > heard_before {
            wrong.push(format!("{}: the upstream heard of it", head.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let ordinary = usual("ordinary", &[("content-length", b"0"), ("host", b"A"), ("x-empty", b"")]);
    assert_eq!(answer(&gateway, &ordinary), StreamEnd::Status(200));
    let refused = gateway.metrics().sum("flashweir_requests_bad_total");
    assert!(refused >= 15.0, "{refused} were counted");
}

#[test]
fn trailers_of_http2_frame_nothing() {
    let (upstream, gateway) = reflecting();
    let trailers: [(&str, &[u8]); 3] = [("content_length", b"44"), ("host", b"b"), ("x-sum", b" 17")];
    for (name, value) in trailers {
        let mut client = Http2Client::connect(gateway.address());
        client.request(1, &[USUAL, &[("trailer", name.as_bytes())]].concat(), 0);
        client.send_frame(frame::DATA, 0, 1, b"hello");
        let block = Http2Client::encode(&[(name, value)]);
        client.send_frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 1, &block);
        let end = client.outcome(1);
        assert!(matches!(end, StreamEnd::Status(400) | StreamEnd::Reset(_)), "{name}: {end:?}");
    }
    assert!(!upstream.received().contains("17") && !upstream.received().contains(": 44"));
}

/// Goal: the same behind a body that is longer than what is gathered, so that its request is on its way when
/// the trailers come.
#[test]
fn trailers_behind_a_long_body_frame_nothing() {
    let (upstream, gateway) = reflecting();
    let send = |name: &str, value: &[u8]| {
        let mut client = Http2Client::connect(gateway.address());
        // With its answer the client knows how much it may send.
        client.request(1, USUAL, frame::END_STREAM);
        assert_eq!(client.outcome(1), StreamEnd::Status(200));
        client.request(3, &[USUAL, &[("trailer", name.as_bytes())]].concat(), 0);
        for _ in 0..5 {
            client.send_frame(frame::DATA, 0, 3, &[b'x'; 16 << 10]);
        }
        gateway.wait_in_flight(1);
        let block = Http2Client::encode(&[(name, value)]);
        client.send_frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 3, &block);
        let end = client.outcome(3);
        gateway.wait_in_flight(0);
        end
    };
    for (name, value) in [("content_length", &b"44"[..]), ("host", b"b"), ("x-sum", b" 17")] {
        let end = send(name, value);
        assert!(matches!(end, StreamEnd::Status(400..) | StreamEnd::Reset(_)), "{name}: {end:?}");
    }
    assert!(!upstream.received().contains("17") && !upstream.received().contains(": 44"));
    assert_eq!(send("x-sum", b"17"), StreamEnd::Status(200));
}

#[test]
fn hosts_and_targets_of_http1_keep_the_same_rules() {
    let (upstream, gateway) = reflecting();
    let requests = [
        "GET / HTTP/1.1\r\nHost: a:80:90\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:xx\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: \r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET http://a:xx/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b#x HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for request in requests {
        let status = gateway.connect().ask(request).status();
        assert!(matches!(status, 400 | 405), "{request:?}: {status}");
    }
    assert_eq!(upstream.request_count(), 0);
    let mut client = gateway.connect();
    assert_eq!(client.ask("GET http://b HTTP/1.1\r\nHost: b\r\n\r\n").status(), 200);
    assert_eq!(upstream.last_request().start, "GET / HTTP/1.1", "never an empty target");
}

#[test]
fn spellings_with_underscores_do_not_forge_an_address() {
    let (upstream, gateway) = reflecting();
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 6.6.6.6\r\nX_FORWARDED-PROTO: https\r\n\
        Flashweir_Decision: forged\r\nX_Own: 1\r\n\r\n";
    assert_eq!(gateway.connect().ask(request).status(), 200);
    let seen = upstream.last_request();
    for name in ["x_forwarded_for", "x_forwarded-proto", "flashweir_decision"] {
        assert!(!seen.fields.has(name), "{name}: {:?}", seen.fields);
    }
    assert_eq!(seen.field("x_own"), Some("1"));
    let mut client = Http2Client::connect(gateway.address());
    client.request(1, &[USUAL, &[("x_forwarded_for", b"6.6.6.6")]].concat(), frame::END_STREAM);
    assert_eq!(client.outcome(1), StreamEnd::Status(200));
    assert!(!upstream.last_request().fields.has("x_forwarded_for"));
}

#[test]
fn a_head_in_a_dripping_continuation_is_cut_in_time() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).text("bounds.header_read_timeout", "500ms").start();
    let mut client = Http2Client::connect(gateway.address());
    // One request that stays open, so that the connection is never idle.
    client.request(1, USUAL, 0);
    let block = Http2Client::encode(&[USUAL, &[("x-pad", &[b'x'; 150])]].concat());
    client.send_frame(frame::HEADERS, 0, 3, &block[..1]);
    let length = u8::try_from(block.len() - 1).expect("a short head");
    // Few frames, or the library would end the connection for their number: one whose bytes come slowly.
    client.send_bytes(&[0, 0, length, frame::CONTINUATION, frame::END_HEADERS, 0, 0, 0, 3]);
    let begun = Instant::now();
    for byte in &block[1..] {
        if client.try_send_bytes(&[*byte]).is_err() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(60));
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "still open after {:?}", begun.elapsed());
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"head_timeout\"}", 1.0);
    assert_eq!(gateway.connect().ask(&get("/")).status(), 200);
}

//! Requests that two readers could take for different requests are refused, and nothing of them is passed on.
//!
//! Each row has a second request hidden where a lenient reader would find it. The gateway must answer 4xx (or
//! 505, 501), close, and let no byte of the hidden request through.

use flashweir_testkit::{Client, Gateway, Upstream};

use crate::end_to_end::support::{get, reflecting};

/// Stands for the hidden request, whose target is different in each row.
const HIDDEN: &str = "{hidden}";

/// Framing that is ambiguous already in the head: the upstream must not even hear of the request.
const HEADS: [(&str, &str); 41] = [
    (
        "two different lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n{hidden}",
    ),
    (
        "two equal lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n{hidden}",
    ),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n{hidden}"),
    ("a list of different lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 44\r\n\r\n{hidden}"),
    ("a length with a plus sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n{hidden}"),
    ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n{hidden}"),
    ("a hexadecimal length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x0\r\n\r\n{hidden}"),
    ("a length in two words", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0 0\r\n\r\n{hidden}"),
    ("an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n{hidden}"),
    (
        "a length beyond 64 bits",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n{hidden}",
    ),
    (
        "a length beside chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunks beside a length",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunked and something else",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunked in a list",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "identity",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n{hidden}",
    ),
    ("xchunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
    (
        "chunked in quotes",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunked with a parameter",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;x=1\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "chunked behind a vertical tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    ("an unknown encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n{hidden}"),
    (
        "chunks in HTTP/1.0",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    (
        "a space before the colon",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    ("a tab before the colon", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 44\r\n\r\n{hidden}"),
    ("an underscore for a hyphen", "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 44\r\n\r\n{hidden}"),
    (
        "a folded field",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{hidden}",
    ),
    ("a folded first field", "GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n{hidden}"),
    ("a bare LF between fields", "POST / HTTP/1.1\r\nHost: a\nContent-Length: 0\r\n\r\n{hidden}"),
    ("bare LFs only", "GET / HTTP/1.1\nHost: a\n\n{hidden}"),
    ("a bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 44\r\n\r\n{hidden}"),
    ("a bare CR for a line end", "GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n{hidden}"),
    ("a NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n{hidden}"),
    ("a NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length\0: 44\r\n\r\n{hidden}"),
    ("an empty name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n{hidden}"),
    ("a line without a colon", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length 44\r\n\r\n{hidden}"),
    ("no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n{hidden}"),
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n{hidden}"),
    ("HTTP/0.9", "GET /\r\n\r\n{hidden}"),
    ("a version to come", "GET / HTTP/3.7\r\nHost: a\r\n\r\n{hidden}"),
    ("words behind the version", "GET / HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n{hidden}"),
    ("a line break in the target", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n{hidden}"),
];

/// Framing that breaks inside a body: the head may be on its way by then, the hidden request may not.
const BODIES: [(&str, &str); 16] = [
    ("a chunk size with 0x", "0x2c\r\n{hidden}"),
    ("a chunk size with a sign", "+0\r\n\r\n{hidden}"),
    ("a negative chunk size", "-1\r\n\r\n{hidden}"),
    ("a chunk size with a space before", " 0\r\n\r\n{hidden}"),
    ("a chunk size beyond 64 bits", "10000000000000000\r\n{hidden}"),
    ("a chunk size of too many zeros", "00000000000000000000000000000000000000000\r\n\r\n{hidden}"),
    ("no chunk size", "\r\n\r\n{hidden}"),
    ("a chunk size that is no number", "xyz\r\n{hidden}"),
    ("a bare LF after the chunk size", "2\nhi\r\n0\r\n\r\n{hidden}"),
    ("a bare CR after the chunk size", "2\rhi\r\n0\r\n\r\n{hidden}"),
    ("a bare LF in an extension", "2;x\ny\r\nhi\r\n0\r\n\r\n{hidden}"),
    ("more data than the chunk holds", "2\r\nhixx\r\n0\r\n\r\n{hidden}"),
    ("a bare LF after the chunk", "2\r\nhi\n0\r\n\r\n{hidden}"),
    ("a bare LF after the last chunk", "0\n\n{hidden}"),
    ("a length among the trailers", "0\r\nContent-Length: 44\r\n\r\n{hidden}"),
    ("a folded trailer", "0\r\nX: a\r\n b\r\n\r\n{hidden}"),
];

#[test]
fn ambiguous_heads_are_refused_and_stay_unheard() {
    let (upstream, gateway) = reflecting();
    let mut wrong = Vec::new();
    for (index, (name, request)) in HEADS.iter().enumerate() {
        let hidden = format!("GET /hidden-{index} HTTP/1.1\r\nHost: a\r\n\r\n");
        let fault = check(&gateway, &request.replace(HIDDEN, &hidden));
        let heard = upstream.request_count() > 0 || !upstream.received().bytes.is_empty();
        wrong.extend(fault.map(|fault| format!("{name}: {fault}")));
        wrong.extend(heard.then(|| format!("{name}: the upstream heard of it or of an earlier one")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    still_serves(&upstream, &gateway);
    let refused = gateway.metrics().sum("flashweir_requests_bad_total");
    assert!(refused >= HEADS.len() as f64, "{refused} of {} were counted", HEADS.len());
}

#[test]
fn broken_chunks_are_refused_and_hide_nothing() {
    let (upstream, gateway) = reflecting();
    let mut wrong = Vec::new();
    for (index, (name, body)) in BODIES.iter().enumerate() {
        let hidden = format!("GET /hidden-{index} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let fault = check(&gateway, &format!("{head}{}", body.replace(HIDDEN, &hidden)));
        wrong.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    wrong.extend(upstream.received().contains("hidden").then(|| "a hidden request came through".to_owned()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    gateway.wait_in_flight(0);
    still_serves(&upstream, &gateway);
}

#[test]
fn what_looks_odd_but_is_right_is_served() {
    let (upstream, gateway) = reflecting();
    let requests = [
        ("an empty line before", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("no space after the colon", "GET / HTTP/1.1\r\nHost:a\r\n\r\n"),
        ("space behind a value", "GET / HTTP/1.1\r\nHost: a   \r\nX: y\t \r\n\r\n"),
        ("chunked in capitals", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
        (
            "a chunk extension",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\n\r\n",
        ),
        ("an empty value", "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"),
        ("HTTP/1.0 with a host", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"),
    ];
    for (name, request) in requests {
        assert_eq!(gateway.connect().ask(request).status(), 200, "{name}");
    }
    assert_eq!(upstream.request_count(), requests.len());
}

/// Describes the fault of the answer to a request that must be refused.
fn check(gateway: &Gateway, request: &str) -> Option<String> {
    let mut client = Client::connect(gateway.address());
    // The gateway may close before it has read everything.
    let _ = client.try_send(request);
    let first = match client.try_response() {
        Ok(response) => response,
        Err(error) => return Some(format!("no answer: {error:?}")),
    };
    if !matches!(first.status(), 400 | 431 | 501 | 505) {
        return Some(format!("answered {}", first.start));
    }
    match client.read_to_end() {
        Ok(rest) if !rest.is_empty() => Some(format!("more after it: {}", String::from_utf8_lossy(&rest))),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Some("not closed after it".to_owned())
        }
        _ => None,
    }
}

fn still_serves(upstream: &Upstream, gateway: &Gateway) {
    let mut client = gateway.connect();
    client.send([get("/one"), get("/two")].concat());
    assert_eq!((client.response().status(), client.response().status()), (200, 200));
    let targets = ["GET /one HTTP/1.1", "GET /two HTTP/1.1"];
    let served = upstream.received().requests;
    assert_eq!(served.iter().filter(|request| targets.contains(&request.start.as_str())).count(), 2);
}

//! The rules of the published desync tests for HTTP/1.1, and what follows from them.
//!
//! Names as the literature has them: `CL.TE` is a front that believes `Content-Length` before a server that
//! believes `Transfer-Encoding`; `TE.TE` hides one of two codings; `0` stands for a server that takes a
//! request for one without a body.

mod framing;

use crate::desync::payload::{Payload, Payloads, sent_len};
use framing::{content_lengths, inserted_bytes, pairs, transfer_encodings};

/// The beginning of the hidden request: the victim's request line becomes the value of its last field.
const HIDDEN: &str = "GET {h} HTTP/1.1\r\nHost: a\r\nX: ";

/// All payloads; their numbers depend on the order of the rules only.
pub(crate) fn payloads() -> Vec<Payload> {
    let mut all = Payloads::default();
    transfer_encodings(&mut all);
    content_lengths(&mut all);
    pairs(&mut all);
    inserted_bytes(&mut all);
    line_ends(&mut all);
    chunk_sizes(&mut all);
    chunk_ends_and_trailers(&mut all);
    request_lines(&mut all);
    hosts(&mut all);
    requests_without_bodies(&mut all);
    expectations(&mut all);
    hop_by_hop(&mut all);
    versions(&mut all);
    all.into_vec()
}

/// A head with these field lines (each with its line end), then a body.
fn request(method: &str, lines: &str, body: &str) -> String {
    format!("{method} {{o}} HTTP/1.1\r\nHost: a\r\n{lines}\r\n{body}")
}

/// The body of CL.TE: all of it by its length, nothing of it by its chunks.
fn cl_te() -> (usize, String) {
    let body = format!("0\r\n\r\n{HIDDEN}");
    (sent_len(&body), body)
}

/// The body of TE.CL: one chunk, of which a length of four reads the size line only.
fn te_cl() -> (usize, String) {
    let chunk = format!("{HIDDEN}x\r\nContent-Length: 9\r\n\r\nx=1");
    (4, format!("{:x}\r\n{chunk}\r\n0\r\n\r\n", sent_len(&chunk)))
}

const BREAKS: [&str; 14] = [
    "\n", "\r", "\n\r", "\r\r\n", "\r\n\r", "\u{b}", "\u{c}", "\0", "\u{85}", "\u{2028}", "\\r\\n", "%0d%0a",
    " \n", "\r\0\n",
];

fn line_ends(all: &mut Payloads) {
    let (length, body) = cl_te();
    for end in BREAKS {
        let name = |place: &str| format!("{end:?} for a line end {place}");
        let te = "Transfer-Encoding: chunked";
        all.add(
            name("before TE"),
            &request("POST", &format!("Content-Length: {length}\r\nX: y{end}{te}\r\n"), &body),
        );
        all.add(
            name("behind TE"),
            &request("POST", &format!("{te}{end}Content-Length: {length}\r\n"), &body),
        );
        all.refuse(
            name("of the request line"),
            &format!("POST {{o}} HTTP/1.1{end}Host: a\r\nContent-Length: 0\r\n\r\n"),
        );
        all.add(name("of the head"), &format!("GET {{o}} HTTP/1.1\r\nHost: a{end}{end}"));
        all.add(
            name("of the last field"),
            &format!("GET {{o}} HTTP/1.1\r\nHost: a\r\nX: y{end}\r\nGET {{h}} HTTP/1.1\r\nHost: a\r\n\r\n"),
        );
        all.add(
            name("before the empty line"),
            &format!("GET {{o}} HTTP/1.1\r\nHost: a\r\n{end}\r\nGET {{h}} HTTP/1.1\r\nHost: a\r\n\r\n"),
        );
    }
}

fn chunk_sizes(all: &mut Payloads) {
    let sizes = [
        "0x5",
        "0X5",
        "x5",
        "+5",
        "-5",
        "-0",
        " 5",
        "\t5",
        "5 ",
        "5\t",
        "05",
        "00000000000005",
        "0000000000000005",
        "00000000000000005",
        "5h",
        "5g",
        "5,",
        "5_",
        "5.",
        "5;",
        "5;x",
        "5;x=y",
        "5;x=\"y\"",
        "5;x=\"y\ny\"",
        "5;\ny",
        "5;\r y",
        "5\n",
        "5\r",
        "5\n\r",
        "5;\0",
        "5\0",
        "\u{665}",
        "\u{ff15}",
        "",
        ";",
        "=5",
        "5=5",
        "10000000000000005",
        "fffffffffffffffff",
        "ffffffffffffffff",
        "8000000000000000",
        "100000005",
        "5 5",
        "5\u{b}",
        "5\u{a0}",
        "5;;;;",
        "5; x",
        "5 ;x",
    ];
    for size in sizes {
        for (rule, end) in [("CRLF", "\r\n"), ("LF", "\n"), ("CR", "\r"), ("nothing", "")] {
            all.add(
                format!("chunk size {size:?} and {rule}"),
                &request("POST", "Transfer-Encoding: chunked\r\n", &format!("{size}{end}hello\r\n0\r\n\r\n")),
            );
        }
        all.add(
            format!("last chunk {size:?}"),
            &request(
                "POST",
                "Transfer-Encoding: chunked\r\n",
                &format!("5\r\nhello\r\n{}\r\n\r\n", size.replace('5', "0")),
            ),
        );
    }
}

fn chunk_ends_and_trailers(all: &mut Payloads) {
    let chunked = "Transfer-Encoding: chunked\r\n";
    for end in BREAKS {
        for (place, body) in [
            ("behind a chunk", format!("5\r\nhello{end}0\r\n\r\n")),
            ("behind the last size", format!("5\r\nhello\r\n0{end}\r\n")),
            ("behind the last chunk", format!("5\r\nhello\r\n0\r\n{end}")),
            ("in an extension", format!("5;x{end}y\r\nhello\r\n0\r\n\r\n")),
            ("behind a trailer", format!("0\r\nX: y{end}\r\n")),
            ("within a trailer", format!("0\r\nX: y{end}GET {{h}} HTTP/1.1\r\nHost: a\r\n\r\n")),
        ] {
            all.add(format!("{end:?} {place}"), &request("POST", chunked, &body));
        }
    }
    for trailer in [
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        "Host: b",
        "content_length: 5",
        "transfer_encoding: chunked",
        "X : y",
        " X: y",
        "X",
        ": y",
        "X\0: y",
        "Connection: close",
        "X: y\0",
        "Trailer: Content-Length",
        "X-Forwarded-For: 6.6.6.6",
        "Flashweir-Decision: 1",
    ] {
        all.add(
            format!("trailer {trailer:?}"),
            &request("POST", chunked, &format!("5\r\nhello\r\n0\r\n{trailer}\r\n\r\n")),
        );
        all.add(
            format!("announced trailer {trailer:?}"),
            &request(
                "POST",
                &format!("{chunked}Trailer: x\r\n"),
                &format!("5\r\nhello\r\n0\r\n{trailer}\r\n\r\n"),
            ),
        );
    }
    for body in [
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\r\n\r\n0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        all.add(format!("chunks {body:?}"), &request("POST", chunked, body));
    }
}

fn request_lines(all: &mut Payloads) {
    for line in [
        "GET {o}",
        "GET {o} ",
        "GET  {o} HTTP/1.1",
        "GET\t{o}\tHTTP/1.1",
        "GET {o}  HTTP/1.1",
        " GET {o} HTTP/1.1",
        "GET {o} HTTP/1.1 ",
        "GET {o} HTTP/1.1 HTTP/1.1",
        "GET {o} HTTP/1.1\tx",
        "GET {o} {h} HTTP/1.1",
        "GET {o}\r HTTP/1.1",
        "GET {o}#{h} HTTP/1.1",
        "G\0ET {o} HTTP/1.1",
        "G(T {o} HTTP/1.1",
        "\"GET\" {o} HTTP/1.1",
        "{o} HTTP/1.1",
        "HTTP/1.1 200 OK",
        "PRI * HTTP/2.0",
        "GET {o} HTTP /1.1",
        "GET {o} HTTP/ 1.1",
        "GET {o}\u{a0}HTTP/1.1",
        "GET {o}\u{b}HTTP/1.1",
        "GET http://a:b{o} HTTP/1.1",
        "GET http://u@a{o} HTTP/1.1",
        "GET http:{o} HTTP/1.1",
        "GET http:///{o} HTTP/1.1",
        "GET ftp://a{o} HTTP/1.1",
        "GET http://a\\{o} HTTP/1.1",
        "GET @a{o} HTTP/1.1",
        "GET a{o} HTTP/1.1",
        "GET ?{o} HTTP/1.1",
        "GET * HTTP/1.1",
        "CONNECT a:80 HTTP/1.1",
        "CONNECT {o} HTTP/1.1",
        "TRACE {o} HTTP/1.1",
    ] {
        all.refuse(format!("request line {line:?}"), &format!("{line}\r\nHost: a\r\n\r\n"));
    }
    for line in [
        "GET http://b{o} HTTP/1.1",
        "GET HTTP://a{o} HTTP/1.1",
        "GET https://a{o} HTTP/1.1",
        "GET //a{o} HTTP/1.1",
        "GET {o}?x={h} HTTP/1.1",
        "GET {o}/../x HTTP/1.1",
        "GET {o}%0d%0aX:%20y HTTP/1.1",
        "get {o} HTTP/1.1",
        "GETX {o} HTTP/1.1",
    ] {
        all.add(format!("request line {line:?}"), &format!("{line}\r\nHost: a\r\n\r\n"));
    }
}

fn hosts(all: &mut Payloads) {
    let bad = [
        "", " ", "a b", "a,b", "a/b", "a?b", "a#b", "u@a", "u:p@a", "a:80:90", "a:xx", "a:-1", "a:65536",
        "[::1", "::1]", "[a]", "a\\b", "<a>", "a\"b", "a\0b", "a\tb", "\u{e4}", "a%zz", ":80",
    ];
    for host in bad {
        all.refuse(format!("host {host:?}"), &format!("GET {{o}} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        all.refuse(
            format!("host {host:?} behind a good one"),
            &format!("GET {{o}} HTTP/1.1\r\nHost: a\r\nHost: {host}\r\n\r\n"),
        );
        all.refuse(
            format!("host {host:?} before a good one"),
            &format!("GET {{o}} HTTP/1.1\r\nHost: {host}\r\nHost: a\r\n\r\n"),
        );
    }
    for line in
        ["", "host : a\r\n", " Host: a\r\n", "X: y\r\n Host: a\r\n", "Host\0: a\r\n", "H\u{f6}st: a\r\n"]
    {
        all.refuse(format!("only {line:?}"), &format!("GET {{o}} HTTP/1.1\r\n{line}\r\n"));
    }
}

/// CL.0, 0.CL and TE.0: bodies where many servers expect none, with the hidden request in them.
fn requests_without_bodies(all: &mut Payloads) {
    let chunk = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", sent_len(HIDDEN));
    for method in
        ["GET", "HEAD", "OPTIONS", "DELETE", "PATCH", "PUT", "POST", "PROPFIND", "TRACE", "CONNECT", "X"]
    {
        let length = sent_len(HIDDEN);
        all.add(
            format!("CL.0 with {method}"),
            &request(method, &format!("Content-Length: {length}\r\n"), HIDDEN),
        );
        all.add(
            format!("0.CL with {method}"),
            &request(method, &format!("Content-Length : {length}\r\n"), HIDDEN),
        );
        all.add(format!("TE.0 with {method}"), &request(method, "Transfer-Encoding: chunked\r\n", &chunk));
        all.add(format!("0.TE with {method}"), &request(method, "Transfer-Encoding : chunked\r\n", &chunk));
        all.add(format!("no length with {method}"), &request(method, "", &format!("{HIDDEN}y\r\n\r\n")));
        all.add(
            format!("close and CL.0 with {method}"),
            &request(method, &format!("Connection: close\r\nContent-Length: {length}\r\n"), HIDDEN),
        );
    }
}

/// Servers differ in when they read a body that the client asked about first.
fn expectations(all: &mut Payloads) {
    let length = sent_len(HIDDEN);
    for value in [
        "100-continue",
        "100-Continue",
        "100-continue, x",
        "x, 100-continue",
        "x 100-continue",
        "100-continue ",
        "100",
        "y\r\n 100-continue",
        "100-continue\0",
        "",
        "200-ok",
        "100-continue;q=1",
        "\"100-continue\"",
    ] {
        for method in ["GET", "POST", "HEAD", "OPTIONS"] {
            let lines = format!("Expect: {value}\r\nContent-Length: {length}\r\n");
            all.add(format!("expectation {value:?} with {method}"), &request(method, &lines, HIDDEN));
            let lines = format!("Expect: {value}\r\nTransfer-Encoding: chunked\r\n");
            all.add(
                format!("expectation {value:?} with chunks and {method}"),
                &request(method, &lines, "0\r\n\r\n"),
            );
        }
    }
}

fn hop_by_hop(all: &mut Payloads) {
    let length = sent_len(HIDDEN);
    for name in [
        "content-length",
        "Content-Length",
        "transfer-encoding",
        "host",
        "close, content-length",
        "keep-alive, host",
        "x-forwarded-for",
        "via",
        "\"content-length\"",
        "content_length",
        "upgrade",
        "te",
        "expect",
    ] {
        let lines = format!("Connection: {name}\r\nContent-Length: {length}\r\n");
        all.add(format!("connection {name:?}"), &request("POST", &lines, HIDDEN));
        let lines = format!("Connection: {name}\r\nTransfer-Encoding: chunked\r\n");
        all.add(format!("connection {name:?} with chunks"), &request("POST", &lines, "0\r\n\r\n"));
    }
    for protocol in ["h2c", "HTTP/2.0", "TLS/1.0", "websocket, h2c"] {
        let lines = format!(
            "Connection: upgrade, http2-settings\r\nUpgrade: {protocol}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: {length}\r\n"
        );
        all.add(format!("upgrade to {protocol}"), &request("POST", &lines, HIDDEN));
    }
    for line in [
        "Keep-Alive: 300",
        "Proxy-Connection: keep-alive",
        "TE: chunked",
        "TE: trailers, chunked",
        "Trailer: Content-Length",
        "Content-Length-X: 5",
        "X-HTTP-Method-Override: GET",
        "Max-Forwards: 0",
    ] {
        let lines = format!("{line}\r\nContent-Length: {length}\r\n");
        all.add(format!("field {line:?}"), &request("POST", &lines, HIDDEN));
    }
}

fn versions(all: &mut Payloads) {
    let (length, body) = cl_te();
    for version in [
        "HTTP/0.9",
        "HTTP/1.2",
        "HTTP/1.9",
        "HTTP/2.0",
        "HTTP/1.10",
        "HTTP/01.1",
        "HTTP/1.01",
        "HTTP/1,1",
        "HTTP/1",
        "http/1.1",
        "HTTPS/1.1",
        "ICAP/1.0",
        "HTTP/1.1x",
        "HTTP/\u{ff11}.1",
    ] {
        all.refuse(
            format!("version {version:?}"),
            &format!("POST {{o}} {version}\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
        );
    }
    for connection in ["", "Connection: keep-alive\r\n"] {
        let head = format!("POST {{o}} HTTP/1.0\r\nHost: a\r\n{connection}");
        all.refuse("chunks in HTTP/1.0", &format!("{head}Transfer-Encoding: chunked\r\n\r\n{body}"));
        all.refuse(
            "both in HTTP/1.0",
            &format!("{head}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n{body}"),
        );
        all.add(
            "a length in HTTP/1.0",
            &format!("{head}Content-Length: {}\r\n\r\n{HIDDEN}", sent_len(HIDDEN)),
        );
        all.add("no length in HTTP/1.0", &format!("{head}\r\n{HIDDEN}y\r\n\r\n"));
    }
}

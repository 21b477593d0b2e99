//! Fuzz targets for everything that reads bytes from outside.
//!
//! A target is a function of bytes that panics when a property does not hold. Each states more than "does not
//! panic": what is accepted is read the same by another parser, what is emitted is read back as the same
//! value. Two drivers run them: `tests/targets.rs`, in every test run, over the seeds and some thousand
//! mutations of them (deterministic); and libFuzzer, guided by coverage (`make fuzz`, the binary in
//! `src/bin`).
//!
//! Seeds are files in `seeds/TARGET`; an input that once failed stays there under a name that says what it
//! was.

pub mod mutate;
pub mod reference;
mod targets;
#[cfg(test)]
mod tests;

use targets::{
    access_log, chunked_body, configuration, forwarding_fields, http1_connection, http2_connection,
    http2_head, proxied_request, proxied_response, recording, response_head, structured_fields, wire,
};

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `seeds`.
    pub name: &'static str,
    /// Panics when a property does not hold.
    pub run: fn(&[u8]),
    /// Texts that get mutations past the first checks.
    pub words: &'static [&'static str],
    /// Mutations of the short run. Targets that open sockets take a hundred times longer.
    pub short_runs: u32,
}

/// Of a target that is pure: a second or two in a build for tests.
const PURE_RUNS: u32 = 20_000;
/// Of a target that runs a server.
const SERVER_RUNS: u32 = 600;

/// Every target.
pub const TARGETS: [Target; 13] = [
    pure("access_log", access_log::run, words::LOG),
    pure("chunked_body", chunked_body::run, words::HTTP),
    pure("configuration", configuration::run, words::TOML),
    pure("forwarding_fields", forwarding_fields::run, words::FIELDS),
    pure("http1_connection", http1_connection::run, words::HTTP),
    server("http2_connection", http2_connection::run, words::HTTP),
    pure("http2_head", http2_head::run, words::HTTP),
    server("proxied_request", proxied_request::run, words::HTTP),
    server("proxied_response", proxied_response::run, words::HTTP),
    pure("recording", recording::run, words::NONE),
    pure("response_head", response_head::run, words::HTTP),
    pure("structured_fields", structured_fields::run, words::FIELDS),
    pure("wire", wire::run, words::NONE),
];

const fn pure(name: &'static str, run: fn(&[u8]), words: &'static [&'static str]) -> Target {
    Target { name, run, words, short_runs: PURE_RUNS }
}

const fn server(name: &'static str, run: fn(&[u8]), words: &'static [&'static str]) -> Target {
    Target { name, run, words, short_runs: SERVER_RUNS }
}

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Words that parsers look for.
mod words {
    pub(super) const NONE: &[&str] = &[];
    pub(super) const HTTP: &[&str] = &[
        "\r\n",
        "\n",
        "\r",
        "\0",
        " ",
        "\t",
        ":",
        ";",
        ",",
        "0\r\n\r\n",
        "5\r\n",
        "GET ",
        "POST ",
        "HEAD ",
        "OPTIONS ",
        "CONNECT ",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "HTTP/1.1 200 OK\r\n",
        "Host: a\r\n",
        "Content-Length: ",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: ",
        "content_length: 5\r\n",
        "chunked",
        "identity",
        "gzip, ",
        "Connection: close\r\n",
        "Connection: keep-alive\r\n",
        "Connection: upgrade\r\n",
        "Upgrade: websocket\r\n",
        "Upgrade: h2c\r\n",
        "Expect: 100-continue\r\n",
        "TE: trailers\r\n",
        "Trailer: x\r\n",
        "x: y\r\n",
        "http://a/",
        "*",
        "#",
        "?",
        "%2f",
        "../",
        "[::1]",
        ":80",
        "@",
    ];
    pub(super) const FIELDS: &[&str] = &[
        "for=",
        "proto=",
        "host=",
        "by=",
        "\"",
        "\\",
        "[",
        "]",
        ":",
        ";",
        ",",
        ", ",
        "=",
        "unknown",
        "_hidden",
        "10.0.0.1",
        "192.0.2.1",
        "[2001:db8::1]",
        ":4711",
        "x-forwarded-for: ",
        "forwarded: ",
        "\n",
        "cpu;dur=",
        "app;dur=",
        "TEXT ",
        "JSON {",
        "BIN ",
        "cpu_utilization=",
        "1e309",
        "NaN",
        "-0",
        "inf",
    ];
    pub(super) const TOML: &[&str] = &[
        "[",
        "]",
        "[[",
        "]]",
        "=",
        "\"",
        "'",
        "\"\"\"",
        "#",
        "\n",
        ".",
        ",",
        "{",
        "}",
        "true",
        "false",
        "0",
        "-1",
        "1e999",
        "nan",
        "9223372036854775807",
        "[upstream]\n",
        "urls = ",
        "[listen]\n",
        "[bounds]\n",
        "[[service]]\n",
        "[[class]]\n",
        "name = ",
        "hosts = ",
        "'http://a'",
        "10s",
        "1MiB",
        "100 %",
    ];
    pub(super) const LOG: &[&str] = &[
        "[17/May/2015:10:05:03 +0000]",
        " \"GET / HTTP/1.1\" ",
        "200",
        "-",
        "\"",
        "\\\"",
        "\\x22",
        "\t",
        " ",
        "\n",
        "\r\n",
        "POST",
        "HEAD",
        "http://a/",
        "?",
        "%",
        "host\tlogname\ttime\tmethod\n",
        "[17/May/2015:10:05:03.250] ",
        "2015-05-17T10:05:03.250Z",
        "#Fields: date time cs-method cs-uri-stem\n",
        " 0/0/1/2/3 ",
        "{\"",
        "\":\"",
        "\",\"",
        "\"}",
        "\\u0022",
        "{\"log\":{\"entries\":[{\"request\":{\"method\":\"GET\",\"url\":\"",
        "$time_local",
        "$request",
        "\x1f\u{8b}",
        "807256800",
        "9223372036854775807",
        "-1",
    ];
}

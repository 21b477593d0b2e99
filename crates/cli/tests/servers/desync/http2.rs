//! HTTP/2 in front of a server that speaks HTTP/1.1: what a head of HTTP/2 can hold and a head of HTTP/1.1
//! cannot.

use std::net::SocketAddr;
use std::time::Duration;

use flashweir_testkit::{Http2Client, StreamEnd, frame};

use crate::desync::check::in_parallel;
use crate::desync::payload::{numbered, sent_len};

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Payload2 {
    pub(crate) name: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
    pub(crate) must_refuse: bool,
}

/// Outcome of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome2(StreamEnd);

impl Outcome2 {
    pub(crate) fn is_served(self) -> bool {
        self.0 == StreamEnd::Status(200)
    }

    pub(crate) fn is_silent(self) -> bool {
        self.0 == StreamEnd::Silence
    }
}

/// A stream that nothing is said about is given up after this time.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1);
const HIDDEN: &str = "GET {h} HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";

type Fields<'a> = Vec<(&'a str, String)>;

#[derive(Debug, Default)]
struct Payloads(Vec<Payload2>);

impl Payloads {
    fn add(&mut self, name: impl Into<String>, fields: &Fields<'_>, body: &str, must_refuse: bool) {
        self.add_with(name, fields, body, &[], must_refuse);
    }

    fn add_with(
        &mut self,
        name: impl Into<String>,
        fields: &Fields<'_>,
        body: &str,
        trailers: &[(&str, String)],
        must_refuse: bool,
    ) {
        let number = self.0.len();
        let put = |fields: &[(&str, String)]| {
            fields.iter().map(|(name, value)| ((*name).to_owned(), numbered(value, number))).collect()
        };
        let (fields, trailers, body) = (put(fields), put(trailers), numbered(body, number));
        self.0.push(Payload2 { name: name.into(), fields, body, trailers, must_refuse });
    }
}

/// The usual pseudo-fields, then others.
fn with(method: &str, more: &[(&'static str, &str)]) -> Fields<'static> {
    let usual = [(":method", method), (":scheme", "http"), (":path", "{o}"), (":authority", "a")];
    usual.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// The same with another value of one pseudo-field.
fn instead(name: &str, value: &str) -> Fields<'static> {
    let mut fields = with("POST", &[]);
    fields.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, old)| value.clone_into(old));
    fields
}

/// All payloads.
pub(crate) fn payloads() -> Vec<Payload2> {
    let mut all = Payloads::default();
    inserted_bytes(&mut all);
    injected_lines(&mut all);
    framing_fields(&mut all);
    pseudo_fields(&mut all);
    bodies_and_trailers(&mut all);
    all.0
}

fn inserted_bytes(all: &mut Payloads) {
    for value in 0..=255u8 {
        let at = crate::desync::payload::byte(value);
        let breaks_lines = matches!(value, 0 | b'\r' | b'\n');
        for (place, text) in
            [("before", format!("{at}y")), ("within", format!("y{at}z")), ("behind", format!("y{at}"))]
        {
            all.add(
                format!("byte {value:#04x} {place} a value"),
                &with("GET", &[("x", &text)]),
                "",
                breaks_lines,
            );
        }
        for (place, text) in [("before", format!("{at}0")), ("behind", format!("0{at}"))] {
            let must_refuse = !value.is_ascii_digit();
            all.add(
                format!("byte {value:#04x} {place} a length"),
                &with("POST", &[("content-length", &text)]),
                "",
                must_refuse,
            );
        }
        // A name is sent as UTF-8, which no name is made of beyond ASCII.
        let name = format!("content{}length", char::from(value));
        let mut fields = with("POST", &[]);
        fields.push((&name, "0".to_owned()));
        let is_name =
            value.is_ascii_lowercase() || value.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&value);
        all.add(format!("byte {value:#04x} in the name of a length"), &fields, "", !is_name || value == b'_');
        for (pseudo, text) in [
            (":path", format!("{{o}}{at}x")),
            (":authority", format!("a{at}b")),
            (":method", format!("GE{at}T")),
            (":scheme", format!("ht{at}tp")),
        ] {
            all.add(
                format!("byte {value:#04x} in {pseudo}"),
                &instead(pseudo, &text),
                "",
                breaks_lines || value == b' ',
            );
        }
    }
}

/// A line of HTTP/1.1 where HTTP/2 has none.
fn injected_lines(all: &mut Payloads) {
    for end in ["\r\n", "\n", "\r", "\0", "\r\n\r\n"] {
        for line in ["transfer-encoding: chunked", "content-length: 0", "host: b", "GET {h} HTTP/1.1"] {
            let text = format!("y{end}{line}");
            let name = |place: &str| format!("{line:?} behind {end:?} in {place}");
            all.add(name("a value"), &with("POST", &[("x", &text)]), HIDDEN, true);
            let mut fields = with("POST", &[]);
            let field = format!("x: y{end}{line}");
            fields.push((&field, "z".to_owned()));
            all.add(name("a name"), &fields, HIDDEN, true);
            for pseudo in [":path", ":authority", ":method", ":scheme"] {
                let old =
                    fields.iter().find(|(known, _)| *known == pseudo).map_or("", |(_, value)| value.as_str());
                let text = format!("{old}{end}{line}");
                all.add(name(pseudo), &instead(pseudo, &text), HIDDEN, true);
            }
        }
    }
    for (pseudo, text) in [
        (":method", "GET {h} HTTP/1.1\r\nHost: a\r\n\r\nGET"),
        (":method", "GET {h} HTTP/1.1"),
        (":path", "{o} HTTP/1.1"),
        (":path", "{o} HTTP/1.1\r\nHost: a\r\n\r\nGET {h}"),
        (":path", "{o}\tHTTP/1.1"),
        (":authority", "a{o}"),
        (":authority", "a:80@b"),
        (":authority", "a b"),
        (":scheme", "http://b/x?"),
        (":scheme", "http\r\n"),
    ] {
        all.add(format!("{text:?} for {pseudo}"), &instead(pseudo, text), HIDDEN, true);
    }
}

fn framing_fields(all: &mut Payloads) {
    let length = sent_len(HIDDEN).to_string();
    for (name, value) in [
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("transfer_encoding", "chunked"),
        ("transfer-encoding ", "chunked"),
        (" transfer-encoding", "chunked"),
        ("Transfer-Encoding", "chunked"),
        ("transfer-encoding:", "chunked"),
        ("connection", "close"),
        ("connection", "transfer-encoding"),
        ("keep-alive", "300"),
        ("proxy-connection", "keep-alive"),
        ("upgrade", "websocket"),
        ("te", "chunked"),
        ("te", "gzip, trailers"),
        ("content_length", "0"),
        ("content-length ", "0"),
        ("Content-Length", "0"),
        ("content-length", ""),
        ("content-length", "+0"),
        ("content-length", "-1"),
        ("content-length", "0x0"),
        ("content-length", "0, 0"),
        ("content-length", "18446744073709551616"),
        ("content-length", "1"),
        ("content-length", "9999"),
        ("host", "b"),
        ("host", "a, a"),
        ("", "x"),
        (":", "x"),
    ] {
        let mut fields = with("POST", &[]);
        fields.push((name, value.to_owned()));
        all.add(format!("{name:?}: {value:?} with a body"), &fields, HIDDEN, true);
        let mut doubled = with("POST", &[("content-length", &length)]);
        doubled.push((name, value.to_owned()));
        all.add(format!("{name:?}: {value:?} beside a length"), &doubled, HIDDEN, true);
    }
    all.add("the right length", &with("POST", &[("content-length", &length)]), HIDDEN, false);
    all.add("no length", &with("POST", &[]), HIDDEN, false);
    for method in ["GET", "HEAD", "OPTIONS", "DELETE", "PUT"] {
        all.add(format!("H2.0 with {method}"), &with(method, &[]), HIDDEN, false);
        all.add(format!("H2.CL with {method}"), &with(method, &[("content-length", "0")]), HIDDEN, true);
        all.add(
            format!("H2.TE with {method}"),
            &with(method, &[("transfer-encoding", "chunked")]),
            HIDDEN,
            true,
        );
    }
}

fn pseudo_fields(all: &mut Payloads) {
    let usual = with("POST", &[]);
    for index in 0..usual.len() {
        let mut twice = usual.clone();
        twice.push(usual[index].clone());
        all.add(format!("{} twice", usual[index].0), &twice, "", true);
        let mut empty = usual.clone();
        empty[index].1.clear();
        all.add(format!("{} empty", usual[index].0), &empty, "", true);
        let mut late = usual.clone();
        let moved = late.remove(index);
        late.push(("x", "y".to_owned()));
        late.push(moved);
        all.add(format!("{} behind a field", usual[index].0), &late, "", true);
        let mut missing = usual.clone();
        missing.remove(index);
        all.add(format!("no {}", usual[index].0), &missing, "", true);
    }
    for (name, value) in
        [(":status", "200"), (":protocol", "websocket"), (":x", "y"), (":Path", "/"), (":path ", "/")]
    {
        let mut fields = usual.clone();
        fields.push((name, value.to_owned()));
        all.add(format!("{name:?}: {value:?}"), &fields, "", true);
    }
    // The library cuts a fragment off before any check sees it; what goes on has none (SECURITY.md).
    for path in ["*", "o", "http://b{o}", "?{o}", "{o}#x", "//b{o}"] {
        let must_refuse = !path.starts_with(['/', '{']);
        all.add(format!("path {path:?}"), &instead(":path", path), "", must_refuse);
    }
    for method in ["CONNECT", "TRACE", "PRI", "get", "GET "] {
        let must_refuse = !matches!(method, "PRI" | "get");
        all.add(format!("method {method:?}"), &with(method, &[]), "", must_refuse);
    }
    for authority in
        ["a:80:90", "a:xx", "[::1", "u@a", "a,b", "a/b", "a?b", "a#b", "a\\b", ":80", "a:65536", "%zz"]
    {
        all.add(format!("authority {authority:?}"), &instead(":authority", authority), "", true);
    }
}

fn bodies_and_trailers(all: &mut Payloads) {
    for (name, value) in [
        ("content-length", "0"),
        ("transfer-encoding", "chunked"),
        ("host", "b"),
        ("content_length", "5"),
        ("transfer_encoding", "chunked"),
        ("connection", "close"),
        ("x", "y\r\ncontent-length: 0"),
        ("x", " y"),
        ("x y", "z"),
        ("X", "y"),
    ] {
        let trailers = [(name, value.to_owned())];
        all.add_with(format!("trailer {name:?}: {value:?}"), &with("POST", &[]), HIDDEN, &trailers, true);
    }
    for (name, value) in [
        ("x-sum", "17"),
        ("x-forwarded-for", "6.6.6.6"),
        ("flashweir-decision", "1"),
        ("trailer", "content-length"),
        // The library forgets pseudo-fields among trailers.
        (":path", "{h}"),
    ] {
        let trailers = [(name, value.to_owned())];
        all.add_with(format!("trailer {name:?}: {value:?}"), &with("POST", &[]), HIDDEN, &trailers, false);
    }
    let chunks = format!("0\r\n\r\n{HIDDEN}");
    all.add("chunks for a body", &with("POST", &[]), &chunks, false);
    all.add("chunks for a body of GET", &with("GET", &[]), &chunks, false);
}

/// Sends all payloads, each on its own connection.
pub(crate) fn run_all(gateway: SocketAddr, payloads: &[Payload2]) -> Vec<Outcome2> {
    in_parallel(payloads, |payload| send(gateway, payload))
}

fn send(gateway: SocketAddr, payload: &Payload2) -> Outcome2 {
    const STREAM: u32 = 1;
    let mut client = Http2Client::connect(gateway);
    let block = |fields: &[(String, Vec<u8>)]| {
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), &value[..])).collect();
        Http2Client::encode(&fields)
    };
    let ends = |is_last: bool| if is_last { frame::END_STREAM } else { 0 };
    let (has_body, has_trailers) = (!payload.body.is_empty(), !payload.trailers.is_empty());
    let flags = frame::END_HEADERS | ends(!has_body && !has_trailers);
    // The gateway may end the stream, or the connection, at any of them.
    let _ = client.try_send_frame(frame::HEADERS, flags, STREAM, &block(&payload.fields));
    if has_body {
        let _ = client.try_send_frame(frame::DATA, ends(!has_trailers), STREAM, &payload.body);
    }
    if has_trailers {
        let flags = frame::END_HEADERS | frame::END_STREAM;
        let _ = client.try_send_frame(frame::HEADERS, flags, STREAM, &block(&payload.trailers));
    }
    Outcome2(client.outcome_within(STREAM, GIVEN_UP_AFTER))
}

//! HTTP/2 towards clients: requests that are malformed, and frames that carry no work.

use crate::case::{Case, Script, Verdict, Word, plain};
use crate::observation::{Event, Observation};

/// The plain request.
pub(super) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/a"), (":authority", "shop.example")];

/// A request that announces three bytes.
const POST: [(&str, &str); 5] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/a"),
    (":authority", "shop.example"),
    ("content-length", "3"),
];

const WINDOW_UPDATE: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const PRIORITY: &[u8] = &[0, 0, 5, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 16];
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fn malformed(observed: &Observation) -> Verdict {
    let is_ended =
        matches!(observed.events.last(), Some(Event::StreamReset(_) | Event::Closed | Event::Status(400)));
    Verdict::new(is_ended && observed.origin.requests.is_empty(), observed.with_count())
}

/// Reset or answered 400; the head may have gone to the origin before the body was known to be wrong.
fn refused(observed: &Observation) -> Verdict {
    let is_ended =
        matches!(observed.events.last(), Some(Event::StreamReset(_) | Event::Closed | Event::Status(400)));
    Verdict::new(is_ended, observed.with_count())
}

const MALFORMED: &str = "the request is malformed: the stream is reset, or 400";

fn malformed_head(
    name: &'static str,
    sent: &'static str,
    rfc: &'static str,
    word: Word,
    extra: (&'static str, &'static str),
) -> Case {
    let client = Script::Http2 { fields: [&GET[..], &[extra]].concat(), body: None };
    Case { name, sent, rfc, asks: MALFORMED, word, origin: plain(), client, judge: malformed }
}

fn flood(name: &'static str, sent: &'static str, frame: &'static [u8]) -> Case {
    Case {
        name,
        sent,
        rfc: "9113 §10.5",
        asks: "an endpoint may end a connection whose frames carry no work (ENHANCE_YOUR_CALM, 11)",
        word: Word::Says,
        origin: plain(),
        client: Script::Flood(frame),
        judge: |observed| {
            let is_ended = observed.events.iter().any(|event| match event {
                Event::Flood(flood) => flood.ended.is_some(),
                _ => false,
            });
            Verdict::new(is_ended, observed.summary())
        },
    }
}

pub(crate) fn cases() -> Vec<Case> {
    use Word::{Must, Should};
    vec![
        Case {
            name: "plain request by HTTP/2",
            sent: "GET",
            rfc: "9113 §8.1",
            asks: "answered",
            word: Must,
            origin: plain(),
            client: Script::Http2 { fields: GET.to_vec(), body: None },
            judge: |observed| Verdict::new(observed.statuses() == [200], observed.with_count()),
        },
        malformed_head(
            "field of a connection by HTTP/2",
            "GET with `connection: close`",
            "9113 §8.2.2",
            Must,
            ("connection", "close"),
        ),
        malformed_head("upper case by HTTP/2", "GET with `X-Odd: 1`", "9113 §8.2.1", Must, ("X-Odd", "1")),
        malformed_head(
            "`Host` that differs from `:authority`",
            "GET with `:authority: shop.example` and `host: other.example`",
            "9113 §8.3.1",
            Should,
            ("host", "other.example"),
        ),
        Case {
            name: "length that is not the body's, by HTTP/2",
            sent: "POST with `content-length: 3` and a body of 5 bytes",
            rfc: "9113 §8.1.1",
            asks: MALFORMED,
            word: Must,
            origin: plain(),
            client: Script::Http2 { fields: POST.to_vec(), body: Some(b"hello") },
            judge: refused,
        },
        flood("flood of WINDOW_UPDATE", "WINDOW_UPDATE of 1 on one connection, for 1.5 s", WINDOW_UPDATE),
        flood("flood of PRIORITY", "PRIORITY on one connection, for 1.5 s", PRIORITY),
        flood("flood of PING", "PING on one connection, answers read, for 1.5 s", PING),
        flood("flood of SETTINGS", "empty SETTINGS on one connection, for 1.5 s", SETTINGS),
    ]
}

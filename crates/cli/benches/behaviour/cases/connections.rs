//! Connections of clients: half-closed, of HTTP/1.0, closed on request.

use crate::case::{Act, Case, GET, OK, Script, Step, Verdict, Word, ms, plain, say, send};
use crate::observation::{Event, Observation};

/// The request of `ab -k`.
const AB: &str = "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: shop.example\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n";

fn closes(observed: &Observation) -> Verdict {
    let is_closed = matches!(observed.events.last(), Some(Event::Closed));
    Verdict::new(observed.status() == 200 && is_closed, observed.summary())
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "client that ends its sending direction",
            sent: "GET, then FIN; the origin answers after 0.2 s",
            rfc: "9112 §9.6",
            asks: "a half-closed connection does not mean that no answer is wanted",
            word: Word::Says,
            origin: vec![Act::Request, Act::Pause(ms(200)), say(OK)],
            client: Script::Http1(vec![send(GET), Step::HalfClose, Step::Final]),
            judge: |observed| {
                let is_whole = observed.last().is_some_and(|response| response.body == b"ok");
                let what = if observed.status() == 200 && !is_whole { " without the body" } else { "" };
                Verdict::new(is_whole, format!("{}{what}", observed.summary()))
            },
        },
        Case {
            name: "`Connection: close`",
            sent: "GET with `Connection: close`",
            rfc: "9112 §9.6",
            asks: "closed after the answer",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send("GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"),
                Step::Final,
                Step::End(ms(1000)),
            ]),
            judge: closes,
        },
        Case {
            name: "HTTP/1.0 (`ab`)",
            sent: "GET by HTTP/1.0",
            rfc: "9112 §9.3",
            asks: "closed after the answer",
            word: Word::Says,
            origin: plain(),
            client: Script::Http1(vec![
                send(
                    "GET /a HTTP/1.0\r\nHost: shop.example\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n",
                ),
                Step::Final,
                Step::End(ms(1000)),
            ]),
            judge: closes,
        },
        Case {
            name: "HTTP/1.0 with keep-alive (`ab -k`)",
            sent: "two GETs by HTTP/1.0 with `Connection: Keep-Alive`",
            rfc: "9112 §9.3",
            asks: "kept open with `Connection: keep-alive` in the answer, or closed",
            word: Word::Says,
            origin: plain(),
            client: Script::Http1(vec![send(AB), Step::Final, Step::End(ms(300)), send(AB), Step::Final]),
            judge: |observed| {
                let connection =
                    observed.responses().next().and_then(|response| response.field("connection"));
                let says_so = connection.is_some_and(|value| value.eq_ignore_ascii_case("keep-alive"));
                let stays_open = observed.events.iter().any(|event| matches!(event, Event::StaysOpen));
                let is_right = says_so == stays_open && observed.statuses() == [200, 200];
                let what = if says_so { "says keep-alive" } else { "does not say keep-alive" };
                Verdict::new(is_right, format!("{}; {what}", observed.summary()))
            },
        },
        Case {
            name: "HTTP/1.0 with keep-alive and chunks",
            sent: "the same; the origin sends chunks",
            rfc: "9112 §6.1, §9.3",
            asks: "no chunks; the end shows by a length or by closing",
            word: Word::Must,
            origin: vec![
                Act::Request,
                say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            ],
            client: Script::Http1(vec![send(AB), Step::Final]),
            judge: |observed| {
                let is_plain = |response: &flashweir_testkit::Message| {
                    response.body == b"ok" && !response.fields.has("transfer-encoding")
                };
                Verdict::new(observed.last().is_some_and(is_plain), observed.summary())
            },
        },
    ]
}

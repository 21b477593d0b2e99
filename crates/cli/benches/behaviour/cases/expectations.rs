//! `Expect` (RFC 9110 §10.1.1): the origin decides whether a body is sent.

use crate::case::{Act, Case, OK, Script, Step, Verdict, Word, ms, say, send};
use crate::observation::{Event, Observation};

const HEAD: &str =
    "POST /a HTTP/1.1\r\nHost: shop.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Sends a head, waits for a response for these times, then sends the body unless the request has been
/// answered.
fn upload(head: &'static str, waits_ms: &[u64]) -> Script {
    let waits = waits_ms.iter().map(|wait| Step::Within(ms(*wait)));
    let rest = [Step::SendUnlessAnswered("hello".as_bytes().into()), Step::Final];
    Script::Http1([send(head)].into_iter().chain(waits).chain(rest).collect())
}

/// The only response is this one, before the body.
fn only(observed: &Observation, status: u16) -> Verdict {
    Verdict::new(observed.statuses() == [status] && observed.events.len() == 1, observed.with_count())
}

pub(crate) fn cases() -> Vec<Case> {
    let passed_on =
        "a proxy passes the head with the expectation on; the origin's answer comes before the body";
    vec![
        Case {
            name: "417 instead of 100",
            sent: "POST with `Expect: 100-continue`, body held back for 0.8 s; the origin sends 417 at the head",
            rfc: "9110 §10.1.1",
            asks: passed_on,
            word: Word::Must,
            origin: vec![
                Act::Head,
                say("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
                Act::Linger,
            ],
            client: upload(HEAD, &[800]),
            judge: |observed| only(observed, 417),
        },
        Case {
            name: "401 instead of 100",
            sent: "the same; the origin sends 401 at the head",
            rfc: "9110 §10.1.1",
            asks: passed_on,
            word: Word::Must,
            origin: vec![
                Act::Head,
                say(
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                ),
                Act::Linger,
            ],
            client: upload(HEAD, &[800]),
            judge: |observed| only(observed, 401),
        },
        Case {
            name: "100 when the origin agrees",
            sent: "the same; the origin sends 100 after 0.3 s, and 200 after the body",
            rfc: "9110 §10.1.1",
            asks: "100 comes from the origin, not before it has agreed",
            word: Word::Must,
            origin: vec![Act::Head, Act::Pause(ms(300)), say(CONTINUE), Act::Body, say(OK)],
            client: upload(HEAD, &[150, 800]),
            judge: |observed| {
                let waited = matches!(observed.events.first(), Some(Event::Silence));
                let cell = if waited {
                    observed.summary()
                } else {
                    format!("{}: 100 before the origin's", observed.summary())
                };
                Verdict::new(waited && observed.statuses() == [100, 200], cell)
            },
        },
        Case {
            name: "origin that does not know `Expect`",
            sent: "the same, body held back for 2.5 s; the origin waits for the body",
            rfc: "9110 §10.1.1",
            asks: "the client waits for no indefinite time: a proxy may help it with 100",
            word: Word::Open,
            origin: vec![Act::Request, say(OK)],
            client: upload(HEAD, &[2500]),
            judge: |observed| Verdict::new(observed.statuses() == [100, 200], observed.summary()),
        },
        Case {
            name: "`Expect` of HTTP/1.0",
            sent: "POST by HTTP/1.0 with `Expect: 100-continue`, body held back for 0.4 s",
            rfc: "9110 §10.1.1",
            asks: "the expectation is ignored: no 100",
            word: Word::Must,
            origin: vec![Act::Request, say(OK)],
            client: upload(
                "POST /a HTTP/1.0\r\nHost: shop.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
                &[400],
            ),
            judge: |observed| Verdict::new(observed.statuses() == [200], observed.summary()),
        },
        Case {
            name: "unknown expectation",
            sent: "GET with `Expect: tea`",
            rfc: "9110 §10.1.1",
            asks: "417, or the field goes to the origin, which can send it",
            word: Word::Says,
            origin: vec![Act::Request, say(OK)],
            client: Script::Http1(vec![
                send("GET /a HTTP/1.1\r\nHost: shop.example\r\nExpect: tea\r\n\r\n"),
                Step::Final,
            ]),
            judge: |observed| {
                let field = observed.arrived_field("expect");
                let cell = match (observed.arrived().is_some(), field) {
                    (true, None) => format!("{}; the field is removed", observed.summary()),
                    _ => observed.with_count(),
                };
                Verdict::new(observed.status() == 417 || field == Some("tea"), cell)
            },
        },
    ]
}

//! Interim responses of the origin (RFC 9110 §15.2).

use crate::case::{Act, Case, GET, OK, Script, Verdict, Word, ask, say};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
const PROCESSING: &str = "HTTP/1.1 102 Processing\r\n\r\n";

pub(crate) fn cases() -> Vec<Case> {
    let passed_on = "a proxy passes interim responses on";
    vec![
        Case {
            name: "103 before the answer",
            sent: "GET; the origin sends 103 with `Link`, then 200 without",
            rfc: "9110 §15.2",
            asks: passed_on,
            word: Word::Must,
            origin: vec![Act::Request, say(HINTS), say(OK)],
            client: ask(GET),
            judge: |observed| {
                let link = |status| {
                    let has_link = |response: &flashweir_testkit::Message| response.fields.has("link");
                    observed.responses().any(|response| response.status() == status && has_link(response))
                };
                let is_right = observed.statuses() == [103, 200] && link(103) && !link(200);
                Verdict::new(is_right, observed.summary())
            },
        },
        Case {
            name: "102 before the answer",
            sent: "GET; the origin sends 102, then 200",
            rfc: "9110 §15.2",
            asks: passed_on,
            word: Word::Must,
            origin: vec![Act::Request, say(PROCESSING), say(OK)],
            client: ask(GET),
            judge: |observed| Verdict::new(observed.statuses() == [102, 200], observed.summary()),
        },
        Case {
            name: "several interim responses",
            sent: "GET; the origin sends 102, 103, 103, 200",
            rfc: "9110 §15.2",
            asks: passed_on,
            word: Word::Must,
            origin: vec![Act::Request, say(PROCESSING), say(HINTS), say(HINTS), say(OK)],
            client: ask(GET),
            judge: |observed| Verdict::new(observed.statuses() == [102, 103, 103, 200], observed.summary()),
        },
        Case {
            name: "103 and a client of HTTP/1.0",
            sent: "GET by HTTP/1.0; the origin sends 103, then 200",
            rfc: "9110 §15.2",
            asks: "a server sends no interim response to HTTP/1.0",
            word: Word::Must,
            origin: vec![Act::Request, say(HINTS), say(OK)],
            client: ask("GET /a HTTP/1.0\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| Verdict::new(observed.statuses() == [200], observed.summary()),
        },
        Case {
            name: "103 to a client of HTTP/2",
            sent: "GET by HTTP/2; the origin sends 103, then 200",
            rfc: "9110 §15.2, 9113 §8.1",
            asks: passed_on,
            word: Word::Must,
            origin: vec![Act::Request, say(HINTS), say(OK)],
            client: Script::Http2 { fields: super::http2::GET.to_vec(), body: None },
            judge: |observed| Verdict::new(observed.statuses() == [103, 200], observed.summary()),
        },
    ]
}

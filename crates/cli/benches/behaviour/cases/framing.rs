//! Requests whose end two readers may find in different places.

use crate::case::{Case, Script, Step, Verdict, Word, ask, ms, plain, send};
use crate::observation::Observation;

/// Refused, or passed on in this form.
fn refused_or(observed: &Observation, is_clean: bool) -> Verdict {
    Verdict::new(observed.is_refused() || is_clean, observed.with_count())
}

fn refused(observed: &Observation) -> Verdict {
    Verdict::new(observed.is_refused(), observed.with_count())
}

/// The client's request does not come to an end that the proxy accepts: no answer of class 2.
fn not_accepted(observed: &Observation) -> Verdict {
    let is_answered = (200..400).contains(&observed.status());
    Verdict::new(!is_answered, observed.with_count())
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(codings());
    cases.extend(lines());
    cases
}

fn lengths() -> Vec<Case> {
    vec![
        Case {
            name: "two equal lengths",
            sent: "POST with `Content-Length: 5` twice",
            rfc: "9110 §8.6, 9112 §6.3",
            asks: "refused, or passed on with one",
            word: Word::Must,
            origin: plain(),
            client: ask(
                "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            ),
            judge: |observed| {
                let lengths = observed.arrived().map(|request| request.fields.all("content-length"));
                refused_or(observed, lengths == Some(vec!["5"]))
            },
        },
        Case {
            name: "two different lengths",
            sent: "POST with `Content-Length: 5` and `Content-Length: 6`",
            rfc: "9112 §6.3",
            asks: "400, and the connection is closed",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send(
                    "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                ),
                Step::Final,
                Step::End(ms(500)),
            ]),
            judge: |observed| {
                let is_closed = observed.ends_connection();
                Verdict::new(
                    observed.is_refused() && observed.status() == 400 && is_closed,
                    observed.with_count(),
                )
            },
        },
        Case {
            name: "length that is no number",
            sent: "POST with `Content-Length: +5`",
            rfc: "9112 §6.3",
            asks: "400",
            word: Word::Must,
            origin: plain(),
            client: ask("POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: +5\r\n\r\nhello"),
            judge: refused,
        },
    ]
}

fn codings() -> Vec<Case> {
    vec![
        Case {
            name: "chunks and a length",
            sent: "POST with `Transfer-Encoding: chunked` and `Content-Length: 6`",
            rfc: "9112 §6.1, §6.3",
            asks: "refused, or passed on without the length; in both cases the connection is closed",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send(
                    "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                ),
                Step::Final,
                Step::End(ms(500)),
            ]),
            judge: |observed| {
                let is_closed = observed.ends_connection();
                let has_length = observed.arrived_field("content-length").is_some_and(|length| length == "6");
                let is_clean = observed.is_refused() || (observed.arrived().is_some() && !has_length);
                // nginx says `Connection: close` and reads on for 5 s.
                let cell = observed.with_count();
                let cell = if is_closed { cell.replace("stays open", "says close") } else { cell };
                Verdict::new(is_clean && is_closed, cell)
            },
        },
        Case {
            name: "last coding is not chunked",
            sent: "POST with `Transfer-Encoding: gzip`",
            rfc: "9112 §6.3",
            asks: "400, or 501 for the coding",
            word: Word::Must,
            origin: plain(),
            client: ask("POST /a HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
            judge: refused,
        },
        Case {
            name: "chunk size beyond 64 bits",
            sent: "POST in chunks, the first of size `10000000000000005`",
            rfc: "9112 §7.1",
            asks: "the number does not overflow",
            word: Word::Must,
            origin: plain(),
            client: ask(
                "POST /a HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
            ),
            judge: not_accepted,
        },
        Case {
            name: "chunk longer than its size",
            sent: "POST in chunks, `hello` with size 3",
            rfc: "9112 §7.1",
            asks: "no chunk ends there: not accepted",
            word: Word::Says,
            origin: plain(),
            client: ask(
                "POST /a HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
            ),
            judge: not_accepted,
        },
        Case {
            name: "chunks by HTTP/1.0",
            sent: "POST by HTTP/1.0 with `Transfer-Encoding: chunked` and `Connection: keep-alive`",
            rfc: "9112 §6.1",
            asks: "taken as wrongly framed: the connection is closed",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send(
                    "POST /a HTTP/1.0\r\nHost: shop.example\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                ),
                Step::Final,
                Step::End(ms(500)),
            ]),
            judge: |observed| {
                let is_closed = observed.ends_connection();
                Verdict::new(is_closed, observed.with_count())
            },
        },
    ]
}

fn lines() -> Vec<Case> {
    vec![
        Case {
            name: "folded field",
            sent: "GET with a field on two lines (obs-fold)",
            rfc: "9112 §5.2",
            asks: "400, or the fold becomes spaces",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Fold: one\r\n two\r\n\r\n"),
            judge: |observed| {
                refused_or(
                    observed,
                    observed.arrived().is_some() && !observed.arrived_head().contains("\r\n two"),
                )
            },
        },
        Case {
            name: "lines that end with LF alone",
            sent: "GET whose lines end with LF",
            rfc: "9112 §2.2",
            asks: "a recipient may take LF for the end of a line",
            word: Word::Says,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\nHost: shop.example\n\n"),
            judge: |observed| {
                let head = observed.arrived_head();
                refused_or(observed, !head.is_empty() && !head.replace("\r\n", "").contains('\n'))
            },
        },
        Case {
            name: "CR inside a field",
            sent: "GET with `X-Odd: a`CR`b`",
            rfc: "9112 §2.2",
            asks: "refused, or CR becomes a space",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Odd: a\rb\r\n\r\n"),
            judge: |observed| {
                let head = observed.arrived_head();
                refused_or(observed, !head.is_empty() && !head.replace("\r\n", "").contains('\r'))
            },
        },
        Case {
            name: "NUL inside a field",
            sent: "GET with `X-Odd: a`NUL`b`",
            rfc: "9110 §5.5",
            asks: "refused, or NUL becomes a space",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Odd: a\0b\r\n\r\n"),
            judge: |observed| {
                let head = observed.arrived_head();
                refused_or(observed, !head.is_empty() && !head.contains('\0'))
            },
        },
        Case {
            name: "space before the colon",
            sent: "GET with `X-Space : 1`",
            rfc: "9112 §5.1",
            asks: "400",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Space : 1\r\n\r\n"),
            judge: |observed| {
                Verdict::new(observed.is_refused() && observed.status() == 400, observed.with_count())
            },
        },
    ]
}

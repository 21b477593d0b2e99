//! Responses of the origin: bodies, lengths, trailers, and those that are wrong.

use crate::case::{Act, Case, GET, OK, Script, Step, Verdict, Word, ask, ms, plain, say, send};
use crate::observation::Observation;

const SECOND: &str = "GET /second HTTP/1.1\r\nHost: shop.example\r\n\r\n";

/// A request, then another on the same connection: rest of the first response would show in the second.
fn twice() -> Script {
    Script::Http1(vec![send(GET), Step::Final, send(SECOND), Step::Final])
}

/// The origin gives one response, and answers the next request of the connection with 200.
fn once(response: &'static str) -> Vec<Act> {
    vec![Act::Request, say(response), Act::Request, say(OK)]
}

/// The second response is the plain one.
fn second_is_whole(observed: &Observation) -> bool {
    observed.last().is_some_and(|response| response.status() == 200 && response.body == b"ok")
}

/// The rest of the first response shows in no other: the second request gets the plain response, or, on a new
/// connection, the first one again.
fn has_no_body(observed: &Observation, status: u16) -> Verdict {
    let first = observed.responses().next();
    let length = first.and_then(|response| response.field("content-length"));
    let is_clean = match observed.statuses()[..] {
        [first, 200] => [status, 502].contains(&first) && second_is_whole(observed),
        [first, second] => {
            [status, 502].contains(&first) && second == first && observed.origin.connections == 2
        }
        _ => false,
    };
    let cell = match length {
        Some(length) if status == 204 => format!("{}; length {length}", observed.summary()),
        _ => observed.summary(),
    };
    Verdict::new(is_clean && (status != 204 || length.is_none() || observed.statuses()[0] == 502), cell)
}

fn broken(observed: &Observation) -> Verdict {
    Verdict::new(observed.is_broken(), observed.summary())
}

fn bad_gateway(observed: &Observation) -> Verdict {
    Verdict::new(observed.status() == 502, observed.summary())
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = bodies();
    cases.extend(wrong());
    cases.extend(early());
    cases
}

fn bodies() -> Vec<Case> {
    vec![
        Case {
            name: "trailers of a response",
            sent: "GET with `TE: trailers`; the origin sends chunks and the trailer `X-Sum`",
            rfc: "9110 §6.5.1, 9112 §7.1.2",
            asks: "trailers may be passed on; a client that says TE keeps them",
            word: Word::Says,
            origin: vec![
                Act::Request,
                say(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
                ),
            ],
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nTE: trailers\r\nConnection: TE\r\n\r\n"),
            judge: |observed| {
                let trailer = observed.last().and_then(|response| response.trailers.first("x-sum"));
                let what = if trailer == Some("7") { "trailer passed on" } else { "trailer removed" };
                Verdict::new(trailer == Some("7"), format!("{}; {what}", observed.summary()))
            },
        },
        Case {
            name: "HEAD with Content-Length",
            sent: "HEAD, then GET; the origin says `Content-Length: 1000` to the HEAD and sends no body",
            rfc: "9110 §9.3.2, §8.6",
            asks: "no body follows; the length is the one of GET",
            word: Word::Must,
            origin: once("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
            client: Script::Http1(vec![
                send("HEAD /a HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
                Step::FinalToHead,
                send(SECOND),
                Step::Final,
            ]),
            judge: |observed| {
                let length =
                    observed.responses().next().and_then(|response| response.field("content-length"));
                let cell = format!("{}; length {}", observed.summary(), length.unwrap_or("removed"));
                let is_right = observed.statuses() == [200, 200] && second_is_whole(observed);
                Verdict::new(is_right && length.is_none_or(|length| length == "1000"), cell)
            },
        },
        Case {
            name: "204 with a body",
            sent: "two GETs; the origin sends `hello` with `Content-Length: 5` in a 204",
            rfc: "9110 §8.6, 9112 §6.3",
            asks: "204 has no body and no Content-Length; the rest is no response",
            word: Word::Must,
            origin: once("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
            client: twice(),
            judge: |observed| has_no_body(observed, 204),
        },
        Case {
            name: "304 with a body",
            sent: "two GETs; the origin sends `hello` after a 304",
            rfc: "9112 §6.3",
            asks: "304 has no body; the rest is no response",
            word: Word::Must,
            origin: once("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\nhello"),
            client: twice(),
            judge: |observed| has_no_body(observed, 304),
        },
        Case {
            name: "chunks to a client of HTTP/1.0",
            sent: "GET by HTTP/1.0; the origin sends chunks",
            rfc: "9112 §6.1",
            asks: "no Transfer-Encoding to HTTP/1.0",
            word: Word::Must,
            origin: vec![
                Act::Request,
                say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            ],
            client: ask("GET /a HTTP/1.0\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| {
                let is_plain = |response: &flashweir_testkit::Message| {
                    !response.fields.has("transfer-encoding") && response.body == b"ok"
                };
                let is_right = observed.status() == 200 && observed.last().is_some_and(is_plain);
                let cell =
                    if is_right { observed.summary() } else { format!("{}, chunked", observed.summary()) };
                Verdict::new(is_right, cell)
            },
        },
        Case {
            name: "origin of HTTP/1.0",
            sent: "GET; the origin answers by HTTP/1.0 and ends the body by closing",
            rfc: "9112 §2.3, 9110 §2.5",
            asks: "a proxy sends its own version",
            word: Word::Must,
            origin: vec![Act::Request, say("HTTP/1.0 200 OK\r\n\r\nok"), Act::Close],
            client: ask(GET),
            judge: |observed| {
                let version =
                    observed.last().and_then(|response| response.start.get(..8)).unwrap_or_default();
                let is_whole = observed.last().is_some_and(|response| response.body == b"ok");
                Verdict::new(
                    version == "HTTP/1.1" && is_whole,
                    format!("{} by {version}", observed.summary()),
                )
            },
        },
        Case {
            name: "150 Set-Cookie fields",
            sent: "GET; the origin sends 150 fields `Set-Cookie` in one response",
            rfc: "9110 §5.4",
            asks: "no number of fields is named",
            word: Word::Open,
            origin: vec![Act::Request, Act::Send(with_cookies(150).into())],
            client: ask(GET),
            judge: |observed| {
                let cookies = observed.last().map_or(0, |response| response.fields.all("set-cookie").len());
                Verdict::new(cookies == 150, format!("{}; {cookies} fields", observed.summary()))
            },
        },
        Case {
            name: "response without `Date`",
            sent: "GET; the origin sends no `Date`",
            rfc: "9110 §6.6.1",
            asks: "a recipient with a clock adds it when it passes the response on",
            word: Word::Must,
            origin: plain(),
            client: ask(GET),
            judge: |observed| {
                let has_date = observed.last().is_some_and(|response| response.fields.has("date"));
                let what = if has_date { "added" } else { "missing" };
                Verdict::new(has_date, format!("{}; `Date` {what}", observed.summary()))
            },
        },
    ]
}

fn with_cookies(count: usize) -> Vec<u8> {
    let cookies: String = (0..count).map(|number| format!("Set-Cookie: c{number}=1\r\n")).collect();
    format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 2\r\n\r\nok").into_bytes()
}

fn wrong() -> Vec<Case> {
    vec![
        Case {
            name: "two different lengths in a response",
            sent: "GET; the origin sends `Content-Length: 2` and `Content-Length: 3`",
            rfc: "9112 §6.3",
            asks: "502, and the connection to the origin is closed",
            word: Word::Must,
            origin: once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
            client: ask(GET),
            judge: bad_gateway,
        },
        Case {
            name: "two equal lengths in a response",
            sent: "GET; the origin sends `Content-Length: 2` twice",
            rfc: "9110 §8.6, 9112 §6.3",
            asks: "refused, or passed on with one",
            word: Word::Must,
            origin: once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"),
            client: ask(GET),
            judge: |observed| {
                let lengths =
                    observed.last().map(|response| response.fields.all("content-length").join(" and "));
                let cell = match (observed.status(), &lengths) {
                    (200, Some(lengths)) => format!("200; length {lengths}"),
                    _ => observed.summary(),
                };
                Verdict::new(observed.status() == 502 || lengths.as_deref() == Some("2"), cell)
            },
        },
        Case {
            name: "chunks and a length in a response",
            sent: "GET; the origin sends chunks and `Content-Length: 3`",
            rfc: "9112 §6.3",
            asks: "chunks count; the length is removed, or 502",
            word: Word::Must,
            origin: once(
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            ),
            client: ask(GET),
            judge: |observed| {
                let is_clean = |response: &flashweir_testkit::Message| {
                    response.body == b"ok"
                        && !(response.fields.has("content-length")
                            && response.fields.has("transfer-encoding"))
                };
                let is_right = observed.status() == 502 || observed.last().is_some_and(is_clean);
                Verdict::new(is_right, observed.summary())
            },
        },
        Case {
            name: "folded field in a response",
            sent: "GET; the origin sends a field on two lines (obs-fold)",
            rfc: "9112 §5.2",
            asks: "502, or the fold becomes spaces",
            word: Word::Must,
            origin: once("HTTP/1.1 200 OK\r\nX-Fold: one\r\n two\r\nContent-Length: 2\r\n\r\nok"),
            client: ask(GET),
            judge: |observed| {
                let head =
                    observed.last().map(|response| String::from_utf8_lossy(&response.head).into_owned());
                let is_folded = head.as_deref().unwrap_or_default().contains("\r\n two");
                let cell = match (observed.status(), is_folded) {
                    (200, true) => "200; folded".to_owned(),
                    (200, false) => "200; unfolded".to_owned(),
                    _ => observed.summary(),
                };
                Verdict::new(observed.status() == 502 || (observed.status() == 200 && !is_folded), cell)
            },
        },
        Case {
            name: "space before the colon in a response",
            sent: "GET; the origin sends `X-Space : 1`",
            rfc: "9112 §5.1",
            asks: "the space is removed before the response is passed on",
            word: Word::Must,
            origin: once("HTTP/1.1 200 OK\r\nX-Space : 1\r\nContent-Length: 2\r\n\r\nok"),
            client: ask(GET),
            judge: |observed| {
                let has_space = |response: &flashweir_testkit::Message| {
                    response.fields.0.iter().any(|(name, _)| name.ends_with(' '))
                };
                let is_left = observed.last().is_some_and(has_space);
                let cell = match (observed.status(), is_left) {
                    (200, true) => "200; the space is left".to_owned(),
                    (200, false) => "200; no such field".to_owned(),
                    _ => observed.summary(),
                };
                Verdict::new(observed.status() != 0 && !is_left, cell)
            },
        },
        Case {
            name: "response shorter than its length",
            sent: "GET; the origin says `Content-Length: 100`, sends 50 bytes and closes",
            rfc: "9112 §8, §6.3",
            asks: "the client can see that it is not whole",
            word: Word::Must,
            origin: vec![
                Act::Request,
                say(
                    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n01234567890123456789012345678901234567890123456789",
                ),
                Act::Close,
            ],
            client: ask(GET),
            judge: broken,
        },
        Case {
            name: "chunks without an end",
            sent: "GET; the origin sends a chunk and closes",
            rfc: "9112 §8, §7.1",
            asks: "the client can see that it is not whole",
            word: Word::Must,
            origin: vec![
                Act::Request,
                say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                Act::Close,
            ],
            client: ask(GET),
            judge: broken,
        },
        Case {
            name: "no response of HTTP",
            sent: "GET; the origin sends `SSH-2.0-x`",
            rfc: "9110 §15.6.3",
            asks: "502",
            word: Word::Says,
            origin: vec![Act::Request, say("SSH-2.0-x\r\n\r\n"), Act::Close],
            client: ask(GET),
            judge: bad_gateway,
        },
    ]
}

/// A client that announces more than it sends before it waits for an answer.
fn half_an_upload() -> Script {
    let head = "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 500000\r\n\r\n";
    Script::Http1(vec![Step::Send([head.as_bytes(), &[b'x'; 100_000]].concat().into()), Step::Final])
}

fn early() -> Vec<Case> {
    const TOO_LARGE: &str =
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let answered = |observed: &Observation| Verdict::new(observed.status() == 413, observed.summary());
    vec![
        Case {
            name: "413 during the upload",
            sent: "POST of 500,000 bytes, 100,000 sent; the origin sends 413 at the head and reads on",
            rfc: "9112 §9.5",
            asks: "a client watches for an answer while it sends",
            word: Word::Should,
            origin: vec![Act::Head, say(TOO_LARGE), Act::Linger],
            client: half_an_upload(),
            judge: answered,
        },
        Case {
            name: "413 and a closed connection",
            sent: "the same; the origin closes at once, with bytes unread",
            rfc: "9112 §9.5, §9.6",
            asks: "the answer was there before the reset",
            word: Word::Open,
            origin: vec![Act::Head, say(TOO_LARGE), Act::Pause(ms(50)), Act::Close],
            client: half_an_upload(),
            judge: answered,
        },
    ]
}

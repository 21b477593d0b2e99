//! Targets and `Host`.

use crate::case::{Case, GET, Script, Step, Verdict, Word, ask, plain, send, send_made};
use crate::observation::Observation;

/// Characters that a URI may not have and browsers send as they are.
const RAW: [char; 9] = ['`', '^', '|', '{', '}', '[', ']', '"', '\\'];

fn bad_request(observed: &Observation) -> Verdict {
    Verdict::new(observed.status() == 400 && observed.origin.requests.is_empty(), observed.with_count())
}

/// Characters by what became of them.
fn raw(observed: &Observation) -> Verdict {
    let mut groups: Vec<(String, String)> = Vec::new();
    for (event, character) in observed.events.iter().zip(RAW) {
        let sent = format!("/{character}a");
        let targets = observed.origin.requests.iter().filter_map(|request| request.start.split(' ').nth(1));
        let as_sent = targets.clone().any(|target| target == sent);
        let encoded = format!("/%{:02X}a", u32::from(character));
        let is_encoded = targets.clone().any(|target| target.eq_ignore_ascii_case(&encoded));
        let label = match (event.status(), as_sent, is_encoded) {
            (Some(200), true, _) => "as sent".to_owned(),
            (Some(200), _, true) => "encoded".to_owned(),
            _ => event.label(),
        };
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, characters)) => characters.push(character),
            None => groups.push((label, character.to_string())),
        }
    }
    let is_one_rule = groups.len() == 1;
    let cells: Vec<String> = match &groups[..] {
        [(label, _)] => vec![format!("all {label}")],
        _ => groups.into_iter().map(|(label, characters)| format!("{label}: `` {characters} ``")).collect(),
    };
    Verdict::new(is_one_rule, cells.join("; "))
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = targets();
    cases.extend(hosts());
    cases
}

fn targets() -> Vec<Case> {
    let request = |character: char| format!("GET /{character}a HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let raw_steps =
        RAW.into_iter().flat_map(|character| [send_made(request(character)), Step::Final, Step::Leave]);
    vec![
        Case {
            name: "characters that browsers send raw",
            sent: "a GET for each of `` ` ^ | { } [ ] \" \\ `` in the path",
            rfc: "9112 §3.2, 3986 §2",
            asks: "they may be refused or passed on: one rule for all",
            word: Word::Open,
            origin: plain(),
            client: Script::Http1(raw_steps.collect()),
            judge: raw,
        },
        Case {
            name: "path with `//`, `..` and `%2F`",
            sent: "GET of `/a//b/../c%2Fd?x=1+2`",
            rfc: "9110 §4.2.3",
            asks: "a proxy need not normalise",
            word: Word::Open,
            origin: plain(),
            client: ask("GET /a//b/../c%2Fd?x=1+2 HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| {
                let target = observed.arrived().and_then(|request| request.start.split(' ').nth(1));
                let is_same = target == Some("/a//b/../c%2Fd?x=1+2");
                let what = if is_same { "as sent" } else { target.unwrap_or("nothing") };
                Verdict::new(is_same, format!("{}; {what}", observed.summary()))
            },
        },
        Case {
            name: "long target",
            sent: "GET with a request line of 8,000 bytes",
            rfc: "9112 §3",
            asks: "request lines of 8,000 bytes are supported",
            word: Word::Should,
            origin: plain(),
            client: Script::Http1(vec![
                send_made(format!("GET /{} HTTP/1.1\r\nHost: shop.example\r\n\r\n", "a".repeat(8000 - 14))),
                Step::Final,
            ]),
            judge: |observed| Verdict::new(observed.status() == 200, observed.with_count()),
        },
        Case {
            name: "absolute target",
            sent: "GET of `http://other.example/a` with `Host: shop.example`",
            rfc: "9112 §3.2.2",
            asks: "accepted; the host is the target's",
            word: Word::Must,
            origin: plain(),
            client: ask("GET http://other.example/a HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| {
                let host = observed.arrived_field("host").unwrap_or("nothing");
                let cell = match observed.arrived() {
                    Some(_) => format!("{}; host {host} at the origin", observed.summary()),
                    None => observed.with_count(),
                };
                Verdict::new(host == "other.example", cell)
            },
        },
        Case {
            name: "empty line before the request",
            sent: "an empty line, then GET",
            rfc: "9112 §2.2",
            asks: "ignored",
            word: Word::Should,
            origin: plain(),
            client: ask("\r\nGET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| Verdict::new(observed.status() == 200, observed.with_count()),
        },
    ]
}

fn hosts() -> Vec<Case> {
    vec![
        Case {
            name: "no `Host`",
            sent: "GET by HTTP/1.1 without `Host`",
            rfc: "9112 §3.2",
            asks: "400",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\n\r\n"),
            judge: bad_request,
        },
        Case {
            name: "two `Host` fields",
            sent: "GET with `Host: shop.example` and `Host: other.example`",
            rfc: "9112 §3.2",
            asks: "400",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nHost: other.example\r\n\r\n"),
            judge: bad_request,
        },
        Case {
            name: "invalid `Host`",
            sent: "GET with `Host: shop example`",
            rfc: "9112 §3.2",
            asks: "400",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop example\r\n\r\n"),
            judge: bad_request,
        },
        Case {
            name: "HTTP/1.0 without `Host`",
            sent: "GET by HTTP/1.0 without `Host`",
            rfc: "9112 §3.2",
            asks: "only HTTP/1.1 needs it",
            word: Word::Open,
            origin: plain(),
            client: ask("GET /a HTTP/1.0\r\n\r\n"),
            judge: |observed| {
                let host = match observed.arrived_field("host") {
                    None => "no host",
                    Some(host) if host.starts_with("127.0.0.1:") => "the origin's address as host",
                    Some(_) => "another host",
                };
                Verdict::new(observed.status() == 200, format!("{}; {host}", observed.summary()))
            },
        },
        Case {
            name: "two requests at once",
            sent: "two GETs before the first answer (pipelining)",
            rfc: "9112 §9.3.2",
            asks: "answered in order",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send(GET),
                send("GET /second HTTP/1.1\r\nHost: shop.example\r\n\r\n"),
                Step::Final,
                Step::Final,
            ]),
            judge: |observed| Verdict::new(observed.statuses() == [200, 200], observed.summary()),
        },
    ]
}

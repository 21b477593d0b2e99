//! Fields that a proxy adds, changes or removes.

use crate::case::{Act, Case, Script, Step, Verdict, Word, ask, plain, say, send};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = connection();
    cases.extend(path());
    cases
}

fn connection() -> Vec<Case> {
    vec![
        Case {
            name: "field named by `Connection`",
            sent: "GET with `Connection: X-Private` and `X-Private: 1`",
            rfc: "9110 §7.6.1",
            asks: "the field ends here",
            word: Word::Must,
            origin: plain(),
            client: ask(
                "GET /a HTTP/1.1\r\nHost: shop.example\r\nConnection: X-Private\r\nX-Private: 1\r\n\r\n",
            ),
            judge: |observed| {
                let is_left = observed.arrived_field("x-private").is_some();
                let what = if is_left { "passed on" } else { "removed" };
                Verdict::new(
                    observed.arrived().is_some() && !is_left,
                    format!("{}; {what}", observed.summary()),
                )
            },
        },
        Case {
            name: "the same in a response",
            sent: "GET; the origin sends `Connection: X-Private` and `X-Private: 1`",
            rfc: "9110 §7.6.1",
            asks: "the field ends here",
            word: Word::Must,
            origin: vec![
                Act::Request,
                say(
                    "HTTP/1.1 200 OK\r\nConnection: X-Private\r\nX-Private: 1\r\nContent-Length: 2\r\n\r\nok",
                ),
            ],
            client: ask(crate::case::GET),
            judge: |observed| {
                let is_left = observed.last().is_some_and(|response| response.fields.has("x-private"));
                let what = if is_left { "passed on" } else { "removed" };
                Verdict::new(observed.status() == 200 && !is_left, format!("{}; {what}", observed.summary()))
            },
        },
        Case {
            name: "fields of one hop",
            sent: "GET with `Keep-Alive`, `Proxy-Connection`, `TE: gzip` and `Upgrade: x`, not named by `Connection`",
            rfc: "9110 §7.6.1",
            asks: "they are removed or replaced, named or not",
            word: Word::Should,
            origin: plain(),
            client: ask(
                "GET /a HTTP/1.1\r\nHost: shop.example\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nUpgrade: x\r\n\r\n",
            ),
            judge: |observed| {
                let names = ["Keep-Alive", "Proxy-Connection", "TE", "Upgrade"];
                let left: Vec<&str> =
                    names.into_iter().filter(|name| observed.arrived_field(name).is_some()).collect();
                let what =
                    if left.is_empty() { "removed".to_owned() } else { format!("{} left", left.join(", ")) };
                Verdict::new(
                    observed.arrived().is_some() && left.is_empty(),
                    format!("{}; {what}", observed.summary()),
                )
            },
        },
        Case {
            name: "version of the request",
            sent: "GET by HTTP/1.0",
            rfc: "9112 §2.3, 9110 §2.5",
            asks: "a proxy sends its own version",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.0\r\nHost: shop.example\r\n\r\n"),
            judge: |observed| {
                let version = observed
                    .arrived()
                    .and_then(|request| request.start.rsplit(' ').next())
                    .unwrap_or("nothing");
                Verdict::new(
                    version == "HTTP/1.1",
                    format!("{}; {version} at the origin", observed.summary()),
                )
            },
        },
        Case {
            name: "name with an underscore",
            sent: "GET with `X_Odd: 1`",
            rfc: "9110 §5.1, §5.6.2",
            asks: "a proxy passes unknown fields on, unless it is set to block them",
            word: Word::Must,
            origin: plain(),
            client: ask("GET /a HTTP/1.1\r\nHost: shop.example\r\nX_Odd: 1\r\n\r\n"),
            judge: |observed| {
                let is_left = observed.arrived_field("x_odd").is_some();
                let what = if is_left { "passed on" } else { "removed" };
                Verdict::new(is_left, format!("{}; {what}", observed.summary()))
            },
        },
    ]
}

fn path() -> Vec<Case> {
    vec![
        Case {
            name: "`Via`",
            sent: "GET",
            rfc: "9110 §7.6.3",
            asks: "a gateway adds `Via` to the request",
            word: Word::Must,
            origin: plain(),
            client: ask(crate::case::GET),
            judge: |observed| {
                let via = observed.arrived_field("via");
                let what = via.map_or_else(|| "no `Via`".to_owned(), |via| format!("`Via: {via}`"));
                Verdict::new(via.is_some(), what)
            },
        },
        Case {
            name: "`Max-Forwards: 0` on OPTIONS",
            sent: "OPTIONS with `Max-Forwards: 0`",
            rfc: "9110 §7.6.2",
            asks: "answered here, not passed on",
            word: Word::Must,
            origin: plain(),
            client: ask("OPTIONS /a HTTP/1.1\r\nHost: shop.example\r\nMax-Forwards: 0\r\n\r\n"),
            judge: |observed| {
                Verdict::new(observed.arrived().is_none() && observed.status() > 0, observed.with_count())
            },
        },
        Case {
            name: "`Max-Forwards: 5` on OPTIONS",
            sent: "OPTIONS with `Max-Forwards: 5`",
            rfc: "9110 §7.6.2",
            asks: "passed on with 4",
            word: Word::Must,
            origin: plain(),
            client: ask("OPTIONS /a HTTP/1.1\r\nHost: shop.example\r\nMax-Forwards: 5\r\n\r\n"),
            judge: |observed| {
                let value = observed.arrived_field("max-forwards");
                let cell = format!("{}; {} at the origin", observed.summary(), value.unwrap_or("none"));
                Verdict::new(value == Some("4"), cell)
            },
        },
        Case {
            name: "`Max-Forwards: 0` on TRACE",
            sent: "TRACE with `Max-Forwards: 0`",
            rfc: "9110 §7.6.2",
            asks: "answered here, not passed on",
            word: Word::Must,
            origin: plain(),
            client: ask("TRACE /a HTTP/1.1\r\nHost: shop.example\r\nMax-Forwards: 0\r\n\r\n"),
            judge: |observed| {
                Verdict::new(observed.arrived().is_none() && observed.status() > 0, observed.with_count())
            },
        },
        Case {
            name: "trailers of a request",
            sent: "POST in chunks with the trailer `X-Sum`",
            rfc: "9110 §6.5.1",
            asks: "trailers may be passed on or removed, never joined to the head",
            word: Word::Must,
            origin: plain(),
            client: Script::Http1(vec![
                send(
                    "POST /a HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
                ),
                Step::Final,
            ]),
            judge: |observed| {
                let is_in_head = observed.arrived_field("x-sum").is_some();
                let is_passed_on =
                    observed.origin.contains("0\r\nX-Sum: 7") || observed.origin.contains("0\r\nx-sum: 7");
                let what = match (is_in_head, is_passed_on) {
                    (true, _) => "joined to the head",
                    (_, true) => "passed on",
                    _ => "removed",
                };
                Verdict::new(
                    observed.status() == 200 && !is_in_head,
                    format!("{}; {what}", observed.summary()),
                )
            },
        },
    ]
}

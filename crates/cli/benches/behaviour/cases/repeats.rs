//! Requests that meet a connection which the origin closes: what may be sent once more, and what must not.

use crate::case::{Act, Case, OK, Script, Step, Verdict, Word, ms, plain, say, send_made};
use crate::observation::Observation;

/// Requests of a row, one after another on one connection of the client.
const REQUESTS: usize = 20;

/// The path says which request it is, so that a repeated one shows at the origin.
fn one_after_another(method: &str, body: &str, count: usize, wait: Option<Step>) -> Script {
    let step = |number: usize| {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{method} /{number} HTTP/1.1\r\nHost: shop.example\r\n{length}\r\n{body}");
        [send_made(request), Step::Final].into_iter().chain(wait.clone())
    };
    Script::Http1((0..count).flat_map(step).collect())
}

fn all_answered(observed: &Observation) -> Verdict {
    let count = observed.events.len();
    Verdict::new(observed.count(200) == count, observed.summary())
}

fn none_repeated(observed: &Observation) -> Verdict {
    let repeated = observed.repeated();
    Verdict::new(repeated == 0, format!("{}; {repeated} repeated", observed.summary()))
}

fn times(most: usize) -> String {
    if most == 1 { "each came once".to_owned() } else { format!("one came {most} times") }
}

const MAY_REPEAT: &str =
    "a safe request on a connection that had been used, unanswered, may be sent again on a new one";

pub(crate) fn cases() -> Vec<Case> {
    let closes_at_the_second = || vec![Act::Request, say(OK), Act::Head, Act::Close];
    vec![
        Case {
            name: "origin closes after its answer",
            sent: "20 GETs in a row; the origin answers and closes 10 ms later without a word",
            rfc: "9110 §9.2.2, 9112 §9.3.1",
            asks: MAY_REPEAT,
            word: Word::Says,
            origin: vec![Act::Request, say(OK), Act::Pause(ms(10)), Act::Close],
            client: one_after_another("GET", "", REQUESTS, None),
            judge: all_answered,
        },
        Case {
            name: "origin has closed before the request",
            sent: "20 GETs, each when the origin has answered the one before and has closed",
            rfc: "9112 §9.5",
            asks: "a closed connection is noticed: nothing is sent on it",
            word: Word::Should,
            origin: vec![Act::Request, say(OK), Act::Close],
            client: one_after_another("GET", "", REQUESTS, Some(Step::OriginCloses)),
            judge: all_answered,
        },
        Case {
            name: "origin closes at the second request",
            sent: "20 GETs in a row; the origin closes when the second request of a connection has come",
            rfc: "9110 §9.2.2, 9112 §9.3.1",
            asks: MAY_REPEAT,
            word: Word::Says,
            origin: closes_at_the_second(),
            client: one_after_another("GET", "", REQUESTS, None),
            judge: all_answered,
        },
        Case {
            name: "origin closes after every second answer",
            sent: "200 GETs in a row",
            rfc: "9110 §9.2.2, 9112 §9.3.1",
            asks: MAY_REPEAT,
            word: Word::Says,
            origin: vec![Act::Request, say(OK), Act::Request, say(OK), Act::Close],
            client: one_after_another("GET", "", 200, None),
            judge: all_answered,
        },
        Case {
            name: "POST is not repeated",
            sent: "20 POSTs in a row; the origin closes when the second request of a connection has come",
            rfc: "9110 §9.2.2",
            asks: "a proxy does not repeat a request whose method is not idempotent",
            word: Word::Must,
            origin: closes_at_the_second(),
            client: one_after_another("POST", "x", REQUESTS, None),
            judge: none_repeated,
        },
        Case {
            name: "GET is not repeated twice",
            sent: "5 GETs; the origin closes each connection at its request",
            rfc: "9110 §9.2.2",
            asks: "a repeated request that fails is not repeated again",
            word: Word::Should,
            origin: vec![Act::Head, Act::Close],
            client: one_after_another("GET", "", 5, None),
            judge: |observed| {
                let most = observed.most_often();
                Verdict::new(most <= 2, format!("{}; {}", observed.summary(), times(most)))
            },
        },
        Case {
            name: "GET after a byte of its answer",
            sent: "10 GETs; the origin sends `H` to the second of a connection and closes",
            rfc: "none",
            asks: "an answer that has begun shows that the origin has worked",
            word: Word::Open,
            origin: vec![Act::Request, say(OK), Act::Request, say("H"), Act::Close],
            client: one_after_another("GET", "", 10, None),
            judge: none_repeated,
        },
        Case {
            name: "connections to the origin are kept",
            sent: "20 GETs in a row; the origin answers and keeps the connection",
            rfc: "9112 §9.3",
            asks: "connections persist",
            word: Word::Should,
            origin: plain(),
            client: one_after_another("GET", "", REQUESTS, None),
            judge: |observed| {
                let connections = observed.origin.connections;
                let noun = if connections == 1 { "connection" } else { "connections" };
                let cell = format!("{}; {connections} {noun} to the origin", observed.summary());
                Verdict::new(observed.count(200) == REQUESTS && connections < REQUESTS, cell)
            },
        },
    ]
}

//! Client and server in one test, over pipes that cut at random places: each gets what the other sent, and
//! both agree on whether the connection goes on.

use super::framing::LIMITS;
use super::pipes::{Body, Exchange, Message, Pair, method_of, trailers};
use crate::connection::{Disposition, RequestBodyUse, ResponseEnd, ServerLimits};
use crate::head::Method;
use flashweir_core::Rng;

fn body(rng: &mut Rng) -> Body {
    let length = [0, 1, 15, 16, 40, 300][rng.below(6) as usize];
    let has_length = rng.below(2) == 0;
    let has_trailer = !has_length && rng.below(2) == 0;
    Body { content: (0..length).map(|_| rng.next_u64() as u8).collect(), has_length, has_trailer }
}

/// An exchange after which the connection goes on, unless its answer needs the end to be framed.
fn exchange(rng: &mut Rng) -> Exchange {
    let method = ["GET", "POST", "HEAD", "PUT"][rng.below(4) as usize];
    let is_http10 = rng.below(6) == 0;
    let mut request = matches!(method, "POST" | "PUT").then(|| body(rng));
    if is_http10 {
        request.iter_mut().for_each(|body| (body.has_length, body.has_trailer) = (true, false));
    }
    let expects = !is_http10 && request.is_some() && rng.below(3) == 0;
    let lines = match (is_http10, expects) {
        (true, _) => "Connection: keep-alive\r\n",
        (false, true) => "Expect: 100-continue\r\n",
        (false, false) => "",
    };
    Exchange {
        method,
        is_http10,
        lines,
        request,
        interims: rng.below(3) as usize,
        status: [200, 204, 304, 404][rng.below(4) as usize],
        response: body(rng),
        // An early answer that reads on keeps the connection only while it lasts as long as the request.
        is_early: false,
        body_use: RequestBodyUse::Read,
        is_last: false,
    }
}

fn has_content(exchange: &Exchange) -> bool {
    method_of(exchange) != Method::Head && !matches!(exchange.status, 204 | 304)
}

/// The request and the response that the ends must have got.
fn expected(index: usize, exchange: &Exchange) -> (Message, Message) {
    let request = Message {
        start: format!("/{index}"),
        content: exchange.request.as_ref().map_or(Vec::new(), |body| body.content.clone()),
        trailers: trailers(exchange.request.as_ref().is_some_and(|body| body.has_trailer)),
        is_whole: true,
        ..Message::default()
    };
    let has_content = has_content(exchange);
    let has_trailer = has_content && exchange.response.has_trailer && !exchange.is_http10;
    let is_asked = exchange.lines.contains("100-continue") && !request.content.is_empty();
    let is_chunked = exchange.request.as_ref().is_some_and(|body| !body.has_length);
    let mut interims = vec![103; if exchange.is_http10 { 0 } else { exchange.interims }];
    if is_asked || (exchange.lines.contains("100-continue") && is_chunked) {
        interims.insert(0, 100);
    }
    let response = Message {
        start: exchange.status.to_string(),
        interims,
        content: if has_content { exchange.response.content.clone() } else { Vec::new() },
        trailers: trailers(has_trailer),
        is_whole: true,
    };
    (request, response)
}

#[test]
fn ends_agree_over_many_exchanges_however_bytes_are_cut() {
    let (mut rng, mut closed) = (Rng::new(1), 0);
    for seed in 0..1_500 {
        let mut exchanges: Vec<_> = (0..=rng.below(5)).map(|_| exchange(&mut rng)).collect();
        if rng.below(3) == 0 {
            let last = exchanges.last_mut().expect("one at least");
            (last.is_last, closed) = (true, closed + 1);
        }
        let needs_end = |exchange: &Exchange| {
            exchange.is_http10 && has_content(exchange) && !exchange.response.has_length
        };
        let is_over = exchanges.iter().position(|exchange| exchange.is_last || needs_end(exchange));
        let pair = Pair::new(exchanges.clone(), seed, LIMITS).run();
        let whole = is_over.map_or(exchanges.len(), |index| index + 1);
        let shown = format!("seed {seed}: {exchanges:?}");
        assert_eq!((pair.requests.len(), pair.responses.len()), (whole, whole), "{shown}");
        for (index, exchange) in exchanges[..whole].iter().enumerate() {
            let (request, response) = expected(index, exchange);
            assert_eq!(pair.requests[index], request, "{shown}");
            assert_eq!(pair.responses[index], response, "{shown}");
        }
        let end = if is_over.is_some() { Disposition::Close } else { Disposition::Ready };
        assert_eq!(pair.dispositions(), (end, end), "{shown}");
        assert!(pair.client_end.is_none_or(|end| end != ResponseEnd::Truncated), "{shown}");
    }
    assert!(closed > 300, "{closed}");
}

fn upload(length: usize, has_length: bool) -> Exchange {
    Exchange {
        method: "POST",
        is_http10: false,
        lines: "",
        request: Some(Body { content: vec![b'x'; length], has_length, has_trailer: false }),
        interims: 0,
        status: 403,
        response: Body { content: b"no".to_vec(), has_length: true, has_trailer: false },
        is_early: true,
        body_use: RequestBodyUse::Discard,
        is_last: false,
    }
}

/// An answer that does not wait for the body: a small rest is taken in, a large one ends the connection.
#[test]
fn an_early_answer_drains_what_is_small_and_closes_on_what_is_not() {
    let limits = ServerLimits { drain_bytes_max: 64, ..LIMITS };
    let mut closed = 0;
    for (length, has_length) in [(64, true), (65, true), (300, true), (10, false)] {
        for seed in 0..200 {
            let next = Exchange { request: None, method: "GET", ..upload(0, true) };
            let pair = Pair::new(vec![upload(length, has_length), next], seed, limits).run();
            let (request, response) = (&pair.requests[0], &pair.responses[0]);
            assert_eq!((&*response.start, &response.content[..]), ("403", &b"no"[..]), "seed {seed}");
            // Content that came before the answer was read as content.
            let rest = length - request.content.len();
            let goes_on = request.is_whole || (has_length && rest <= 64);
            closed += u32::from(!goes_on);
            if !has_length && rest == 0 {
                // Its last chunk may have come, without its trailers.
                continue;
            }
            assert_eq!(
                pair.requests.len(),
                if goes_on { 2 } else { 1 },
                "{length} bytes, {rest} left, seed {seed}"
            );
        }
    }
    assert!(closed > 100, "{closed}");
}

/// An answer may end while its request is still wanted: the rest is drained up to the bound.
#[test]
fn an_answer_that_ends_first_leaves_the_rest_to_be_drained() {
    let limits = ServerLimits { drain_bytes_max: 1_000, ..LIMITS };
    for seed in 0..200 {
        for has_length in [true, false] {
            let first = Exchange { body_use: RequestBodyUse::Read, ..upload(300, has_length) };
            let next = Exchange { request: None, method: "GET", ..upload(0, true) };
            let pair = Pair::new(vec![first, next], seed, limits).run();
            assert_eq!(pair.responses.len(), 2, "seed {seed}");
            assert!(pair.responses.iter().all(|response| response.is_whole && response.content == b"no"));
        }
    }
}

#[test]
fn both_ends_become_a_tunnel_together() {
    for seed in 0..200 {
        for request in [None, Some(Body { content: vec![b'x'; 20], has_length: true, has_trailer: false })] {
            let upgrade = Exchange {
                method: "GET",
                lines: "Connection: upgrade\r\nUpgrade: websocket\r\n",
                status: 101,
                request,
                response: Body { content: Vec::new(), has_length: true, has_trailer: false },
                body_use: RequestBodyUse::Read,
                is_early: seed % 2 == 0,
                ..upload(0, true)
            };
            let pair = Pair::new(vec![upgrade], seed, LIMITS).run();
            assert_eq!(pair.dispositions(), (Disposition::Tunnel, Disposition::Tunnel));
            assert_eq!(pair.responses[0].start, "101");
        }
        let connect = Exchange {
            method: "CONNECT",
            status: 200,
            request: None,
            response: Body { content: Vec::new(), has_length: false, has_trailer: false },
            ..upload(0, true)
        };
        // Its target is origin-form here, which the connection does not mind.
        let pair = Pair::new(vec![connect], seed, LIMITS).run();
        assert_eq!(pair.dispositions(), (Disposition::Tunnel, Disposition::Tunnel));
    }
}

//! A server whose answers are numbered, so that a copy is known from a new answer, and a gateway that caches
//! before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use flashweir_testkit::number_of as number;
use flashweir_testkit::{Client, Flashweir, Gateway, GatewayBuilder, Message, Upstream, own_answer};

/// The program under test.
pub(crate) fn binary() -> Flashweir {
    Flashweir::new(env!("CARGO_BIN_EXE_flashweir"))
}

/// Answer of the server: status and field lines.
pub(crate) type Answer = (u16, String);

/// A server whose answers its requests choose, with [`own_answer`]s.
pub(crate) fn numbered(answer: impl Fn(&Message) -> Answer + Send + Sync + 'static) -> Upstream {
    let count = Arc::new(AtomicUsize::new(0));
    Upstream::start(move |connection| {
        while let Some(request) = connection.read_request() {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let (status, fields) = answer(&request);
            let body = own_answer(number, &request);
            let is_sent = match (status, request.start.starts_with("HEAD ")) {
                (304, _) => connection.send(format!("HTTP/1.1 304 Scripted\r\n{fields}\r\n")),
                (_, true) => connection
                    .send(format!("HTTP/1.1 {status} Scripted\r\nContent-Length: 9\r\n{fields}\r\n")),
                _ => connection.answer(status, &fields, body),
            };
            if !is_sent {
                return;
            }
        }
    })
}

/// The same with one `Cache-Control` for all.
pub(crate) fn saying(cache_control: &'static str) -> Upstream {
    numbered(move |_| (200, format!("Cache-Control: {cache_control}\r\n")))
}

/// A gateway that always caches; one worker, so that a test knows whose store it asks.
pub(crate) fn caching(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&binary())
        .upstream(&upstream.url())
        .text("cache.mode", "always")
        .set("gateway.workers", "1")
}

/// A GET with further field lines (each with its line end).
pub(crate) fn get(client: &mut Client, target: &str, fields: &str) -> Message {
    client.ask(&format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"))
}

/// An answer's head, to show it.
pub(crate) fn head(answer: &Message) -> String {
    String::from_utf8_lossy(&answer.head).into_owned()
}

/// The cache's part of an answer, without the time to live; empty where there is none.
pub(crate) fn cache_status(answer: &Message) -> String {
    let status = answer.field("cache-status").unwrap_or_default();
    let parts = status.split(';').map(str::trim).filter(|part| !part.starts_with("ttl="));
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns whether the second of two equal requests is answered by a copy of the first's answer.
pub(crate) fn is_cached(gateway: &Gateway, target: &str, fields: &str) -> bool {
    let mut client = gateway.connect();
    let (first, second) = (get(&mut client, target, fields), get(&mut client, target, fields));
    let is_copy = number(&first) == number(&second);
    assert_eq!(cache_status(&second) == "flashweir; hit", is_copy, "{}", head(&second));
    is_copy
}

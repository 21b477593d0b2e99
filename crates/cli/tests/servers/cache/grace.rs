//! A grace: a copy that is a moment old, instead of a refusal, and only where it contains nothing about one
//! user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashweir_testkit::{Client, Gateway, GatewayBuilder, Latch, Message, Upstream, eventually};

use crate::cache::scene::{cache_status, caching, get, head, number, numbered};

/// A class that may get a copy of up to a minute, and an origin that takes one request at a time.
fn graced(upstream: &Upstream) -> GatewayBuilder {
    caching(upstream)
        .set("class", "[{ name = \"pages\", grace = \"1m\" }]")
        .text("sentry.policing", "off")
        .text("flash_crowd.mode", "off")
        .set("upstream.max_connections", "1")
}

/// A server whose answers wait for a latch where the target is `/hold`.
fn holding(fields: &'static str) -> (Upstream, Latch) {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |request| {
        if request.start.contains("/hold") {
            opened.wait();
        }
        (200, fields.to_owned())
    });
    (upstream, latch)
}

/// Takes the only connection to the server.
fn fill(gateway: &Gateway, upstream: &Upstream) -> Client {
    let before = upstream.request_count();
    let mut client = gateway.connect();
    // With credentials, so that it is for no other user.
    client.send("GET /hold HTTP/1.1\r\nHost: shop.example\r\nAuthorization: Basic YTph\r\n\r\n");
    eventually("the request that fills it", || (upstream.request_count() > before).then_some(()));
    client
}

fn ask(gateway: &Gateway, fields: &str) -> Message {
    get(&mut gateway.connect(), "/page", fields)
}

#[test]
fn who_would_be_refused_gets_a_copy_that_says_so() {
    for fields in ["", "Cache-Control: no-cache\r\n", "Cache-Control: max-age=0\r\n"] {
        let (upstream, latch) = holding(fields);
        let gateway = graced(&upstream).start();
        let first = ask(&gateway, "");
        assert_eq!((number(&first), first.status()), (1, 200));
        assert_eq!(
            number(&ask(&gateway, "")),
            2,
            "no request is refused, so each gets an answer of the origin"
        );
        let holder = fill(&gateway, &upstream);
        for _ in 0..3 {
            let copy = ask(&gateway, "");
            assert_eq!((copy.status(), number(&copy)), (200, 1), "{fields}: {}", head(&copy));
            assert_eq!(cache_status(&copy), "flashweir; hit; detail=grace");
            assert!(copy.fields.has("age"), "{}", head(&copy));
        }
        let metrics = gateway.metrics();
        assert_eq!(metrics.value("flashweir_cache_answers_total{how=\"grace\"}"), 3.0);
        assert_eq!(metrics.sum("flashweir_requests_shed_total"), 0.0);
        let refused = get(&mut gateway.connect(), "/other", "");
        assert_eq!(refused.status(), 503, "there is no copy of this");
        latch.open();
        drop(holder);
        gateway.wait_in_flight(0);
        let counted = |name: &str| gateway.metrics().value(&format!("flashweir_requests_{name}_total"));
        let ended = counted("completed") + counted("abandoned");
        assert_eq!((counted("offered"), ended), (counted("admitted") + 1.0, counted("admitted")));
    }
}

#[test]
fn without_a_grace_and_after_it_there_is_a_refusal() {
    let (upstream, _latch) = holding("");
    let gateway = graced(&upstream).set("class", "[{ name = \"pages\" }]").start();
    assert_eq!(ask(&gateway, "").status(), 200);
    let _holder = fill(&gateway, &upstream);
    assert_eq!(ask(&gateway, "").status(), 503);

    let (upstream, _latch) = holding("");
    let gateway = graced(&upstream).set("class", "[{ name = \"pages\", grace = \"500ms\" }]").start();
    assert_eq!(ask(&gateway, "").status(), 200);
    let _holder = fill(&gateway, &upstream);
    let refused = eventually("the end of the grace", || {
        let answer = ask(&gateway, "");
        (answer.status() == 503).then_some(answer)
    });
    assert!(refused.fields.has("retry-after") && !refused.fields.has("cache-status"));
}

/// Field lines of the first user's request, of the answer, and of the second user's request: in each case one
/// of them says that the answer may be the first user's own.
const OWN: [(&str, &str, &str); 9] = [
    ("Cookie: id=a\r\n", "", "Cookie: id=b\r\n"),
    ("Cookie: id=a\r\n", "", ""),
    ("", "", "Cookie: id=b\r\n"),
    ("Authorization: Basic YTph\r\n", "", ""),
    ("", "Set-Cookie: id=1\r\n", ""),
    ("", "Cache-Control: private\r\n", ""),
    ("", "Cache-Control: no-store\r\n", ""),
    ("", "Vary: *\r\n", ""),
    ("X-Host: evil.example\r\n", "", ""),
];

#[test]
fn what_may_be_a_users_own_is_given_to_no_other() {
    for (first, answer, second) in OWN {
        let (upstream, _latch) = holding(answer);
        let gateway = graced(&upstream).start();
        assert_eq!(ask(&gateway, first).status(), 200);
        let _holder = fill(&gateway, &upstream);
        let refused = ask(&gateway, second);
        assert_eq!(refused.status(), 503, "{first} {answer} {second}: {}", refused.text());
    }
}

#[test]
fn an_answer_that_must_be_validated_and_an_error_have_none() {
    for answer in
        ["Cache-Control: no-cache, must-revalidate\r\n", "Cache-Control: max-age=0, proxy-revalidate\r\n"]
    {
        let (upstream, _latch) = holding(answer);
        let gateway = graced(&upstream).start();
        assert_eq!(ask(&gateway, "").status(), 200);
        let _holder = fill(&gateway, &upstream);
        assert_eq!(ask(&gateway, "").status(), 503, "{answer}");
    }
    let is_broken = Arc::new(AtomicBool::new(true));
    let seen = is_broken.clone();
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |request| {
        if request.start.contains("/hold") {
            opened.wait();
        }
        (if seen.load(Ordering::SeqCst) { 404 } else { 200 }, String::new())
    });
    let gateway = graced(&upstream).start();
    assert_eq!(ask(&gateway, "").status(), 404);
    let _holder = fill(&gateway, &upstream);
    assert_eq!(ask(&gateway, "").status(), 503);
}

#[test]
fn a_copy_that_was_purged_is_gone() {
    let (upstream, _latch) = holding("");
    let gateway = graced(&upstream).start();
    assert_eq!(ask(&gateway, "").status(), 200);
    let _holder = fill(&gateway, &upstream);
    assert_eq!(ask(&gateway, "").status(), 200);
    let purge =
        "DELETE /cache?url=http://shop.example/page HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n";
    assert_eq!(Client::connect(gateway.admin()).ask(purge).json()["purged"], 1);
    assert_eq!(ask(&gateway, "").status(), 503);
}

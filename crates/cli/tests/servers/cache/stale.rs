//! Stale answers, where the origin allows them (RFC 5861).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashweir_testkit::{Upstream, eventually};

use crate::cache::scene::{cache_status, caching, get, number, numbered};

#[test]
fn while_it_is_fetched_again_a_stale_answer_serves() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=1, stale-while-revalidate=600\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let mut sent = 0.0;
    let mut ask = || {
        sent += 1.0;
        get(&mut client, "/", "")
    };
    assert_eq!(number(&ask()), 1);
    let stale = eventually("its second to pass", || {
        let answer = ask();
        cache_status(&answer).contains("stale-while-revalidate").then_some(answer)
    });
    assert!(number(&stale) >= 1);
    eventually("the new answer", || (number(&ask()) > number(&stale)).then_some(()));
    gateway.wait_in_flight(0);
    let metrics = gateway.metrics();
    assert!(metrics.value("flashweir_cache_answers_total{how=\"stale_while_revalidate\"}") >= 1.0);
    let counts = ["offered", "admitted", "completed"]
        .map(|name| metrics.value(&format!("flashweir_requests_{name}_total")));
    assert_eq!(counts, [sent; 3], "a refresh is no client's request");
    assert!(gateway.status()["cache"]["refreshes"].as_u64() >= Some(1));
    assert_eq!(metrics.sum("flashweir_class_offered_total"), sent);
}

/// A server that fails once it is asked to.
fn failing(fields: &'static str) -> (Upstream, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let seen = fails.clone();
    let upstream = numbered(move |_| match seen.load(Ordering::SeqCst) {
        true => (503, String::new()),
        false => (200, fields.to_owned()),
    });
    (upstream, fails)
}

#[test]
fn where_the_origin_fails_a_stale_answer_serves_if_it_may() {
    let cases = [
        ("Cache-Control: max-age=1, stale-if-error=600\r\n", 200),
        ("Cache-Control: max-age=1\r\n", 503),
        ("Cache-Control: max-age=1, stale-if-error=600, must-revalidate\r\n", 503),
    ];
    std::thread::scope(|scope| {
        for (fields, status) in cases {
            scope.spawn(move || check_failure(fields, status));
        }
    });
}

/// Checks the answer to a request whose copy is too old while the origin fails.
fn check_failure(fields: &'static str, status: u16) {
    let (upstream, fails) = failing(fields);
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/", "")), 1);
    fails.store(true, Ordering::SeqCst);
    let answer = eventually("its second to pass", || {
        let answer = get(&mut client, "/", "");
        (cache_status(&answer) != "flashweir; hit").then_some(answer)
    });
    assert_eq!(answer.status(), status, "{fields}");
    if status == 200 {
        assert_eq!(cache_status(&answer), "flashweir; hit; detail=stale-if-error");
        assert_eq!(number(&answer), 1);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_a_failure_too() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=1, stale-if-error=600\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/", "")), 1);
    drop(upstream);
    let answer = eventually("its second to pass", || {
        let answer = get(&mut client, "/", "");
        (cache_status(&answer) != "flashweir; hit").then_some(answer)
    });
    assert_eq!((answer.status(), number(&answer)), (200, 1));
    assert_eq!(cache_status(&answer), "flashweir; hit; detail=stale-if-error");
}

//! Requests that are sent once more when a server closes a kept connection under them: what clients get, and
//! what is counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flashweir_testkit::{Connection, Gateway, Upstream, eventually, pattern, reserve_address};

use crate::end_to_end::support::{EndOnDrop, before, get};

/// Answers this many requests on each connection, then ends it without a word.
fn closing_after(answers: usize) -> Upstream {
    Upstream::start(move |connection: &mut Connection| {
        for _ in 0..answers {
            if connection.read_request().is_none() || !connection.answer(200, "", "ok") {
                return;
            }
        }
    })
}

/// The same, but only when the next request has come.
fn closing_under_the_next(answers: usize) -> Upstream {
    Upstream::start(move |connection: &mut Connection| {
        for _ in 0..answers {
            if connection.read_request().is_none() || !connection.answer(200, "", "ok") {
                return;
            }
        }
        connection.read_request();
    })
}

fn value(gateway: &Gateway, series: &str) -> f64 {
    gateway.metrics().value(&format!("flashweir_{series}"))
}

/// RFC 9110 §9.2.2. The numbers are the bars of the report that this was built for.
#[test]
fn two_hundred_gets_pass_at_a_server_that_closes_kept_connections() {
    for upstream in [closing_after(2), closing_under_the_next(1), closing_under_the_next(2)] {
        let gateway = before(&upstream).start();
        let mut client = gateway.connect();
        for number in 0..200 {
            let response = client.ask(&get(&format!("/{number}")));
            assert_eq!((response.status(), response.text().as_str()), (200, "ok"), "request {number}");
        }
        // A request that is sent twice is one request: admitted once, completed once, and no failure of the
        // server's.
        gateway.wait_metric("flashweir_requests_completed_total", 200.0);
        assert_eq!(value(&gateway, "requests_admitted_total"), 200.0);
        assert_eq!(value(&gateway, "requests_failed_total"), 0.0);
        assert_eq!(value(&gateway, "upstream_failures_total{kind=\"reset\"}"), 0.0);
        let repeats = value(&gateway, "upstream_repeats_total");
        assert!(repeats <= 20.0 + 200.0 / 5.0, "{repeats} repeats");
        println!("{repeats} repeats for 200 requests");
    }
}

#[test]
fn a_post_under_which_the_connection_closes_is_502_and_never_sent_twice() {
    let upstream = closing_under_the_next(1);
    let gateway = before(&upstream).set("gateway.workers", "1").start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).status(), 200);
    let response = client.ask("POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy");
    assert_eq!((response.status(), response.field("flashweir-error")), (502, Some("reset")));
    assert_eq!((upstream.request_count(), upstream.received().connections), (2, 1));
    assert_eq!(value(&gateway, "upstream_repeats_total"), 0.0);
    assert_eq!(value(&gateway, "requests_failed_total"), 1.0);
}

#[test]
fn an_idempotent_request_with_a_body_is_sent_once_more_if_that_is_held_whole() {
    for (length, status) in [(1_000, 200), (5_000_000, 502)] {
        let upstream = closing_under_the_next(1);
        let gateway = before(&upstream).set("gateway.workers", "1").start();
        let mut client = gateway.connect();
        assert_eq!(client.ask(&get("/")).status(), 200);
        client.send(format!("PUT /page HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"));
        client.send(pattern(length));
        assert_eq!(client.response().status(), status, "{length} bytes");
        let repeats = value(&gateway, "upstream_repeats_total");
        assert_eq!(repeats, if status == 200 { 1.0 } else { 0.0 });
    }
}

/// Goal: a server that is restarted is not met by a storm of repeats. Method: four clients ask without a
/// pause, and it is restarted each time it has answered 200 more.
#[test]
fn repeats_stay_within_the_budget_when_a_server_restarts() {
    let address = reserve_address();
    let start = || {
        Upstream::start_at(address, |connection: &mut Connection| {
            while connection.read_request().is_some() && connection.answer(200, "", "ok") {}
        })
    };
    let mut upstream = start();
    let gateway = before(&upstream).start();
    let (is_over, asked, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let ends = EndOnDrop(&is_over);
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = gateway.connect();
                while !is_over.load(Ordering::Relaxed) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    match client.ask(&get("/")).status() {
                        200 => {}
                        502 => drop(failed.fetch_add(1, Ordering::Relaxed)),
                        other => panic!("status {other}"),
                    }
                }
            });
        }
        for _ in 0..5 {
            eventually("200 requests", || (upstream.request_count() >= 200).then_some(()));
            drop(upstream);
            upstream = start();
        }
        drop(ends);
    });
    let (asked, failed) = (asked.into_inner() as f64, failed.into_inner());
    let repeats = value(&gateway, "upstream_repeats_total");
    println!("{asked} requests, {failed} failed, {repeats} repeats at 5 restarts");
    assert!(repeats <= 20.0 + asked / 5.0, "{repeats} repeats of {asked} requests");
}

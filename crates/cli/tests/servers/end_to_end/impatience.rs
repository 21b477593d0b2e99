//! A client that ignores `Retry-After` again and again is refused connections for a while and then judged
//! like any other; no other client is.
//!
//! Twin in virtual time of the tests under load: `admission`,
//! `one_client_that_hammers_is_listed_within_half_a_minute_or_so`.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flashweir_testkit::{Client, Connection, Gateway, Latch, Upstream, Visitor, eventually, until};
use serde_json::Value;

use crate::end_to_end::support::{before, get};

const HASTY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);
/// Connections of the client that does not wait.
const CONNECTIONS: u64 = 3;
/// Ten times what it takes on a quiet machine.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// A server that answers nothing until the latch opens, however long that takes.
fn stuck(latch: &Latch) -> Upstream {
    let latch = latch.clone();
    Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            (0..10).for_each(|_| latch.wait());
            if !connection.answer(200, "", "at last") {
                return;
            }
        }
    })
}

fn impatient(gateway: &Gateway) -> Value {
    gateway.status()["fairness"]["impatient"].clone()
}

/// The sources that are listed: the one that may be, and how long it still is.
fn listed(gateway: &Gateway) -> Option<f64> {
    let listing = gateway.ask_admin("/fairness/impatient").json();
    let sources = listing["sources"].as_array().expect("a list");
    assert!(sources.iter().all(|source| source["address"] == HASTY.to_string()), "{listing}");
    sources.first().map(|source| source["left_s"].as_f64().expect("seconds"))
}

/// The client's target with the longest Retry-After: each target has its own place between one and two
/// seconds.
fn slowest(visitor: &mut Visitor) -> String {
    let targets = (0..16).map(|number| format!("/{number}"));
    let retry_after_s = |target: &String| -> u64 {
        visitor.ask(target).and_then(|answer| answer.field("retry-after")?.parse().ok()).unwrap_or(0)
    };
    targets.max_by_key(retry_after_s).expect("some")
}

/// Returns whether a new connection from there is answered.
fn is_answered(gateway: &Gateway) -> bool {
    Visitor::new(HASTY, gateway.address(), "").ask("/").is_some()
}

/// Ends the clients' loops when it goes.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Goal: as the module says. Method: a server with room for one request, which is taken; so all are refused,
/// and asked to come back in a second or two. One client waits, one reloads three times a second, one hammers
/// but has behaved like a person, and one hammers.
#[test]
#[ignore = "real load: make test-load"]
fn who_ignores_retry_after_is_refused_connections_for_a_while_and_nobody_else_is_under_load() {
    let latch = Latch::new();
    let upstream = stuck(&latch);
    let gateway = before(&upstream).set("bounds.max_requests_in_flight", "1");
    let mut gateway = gateway.text("upstream.response_header_timeout", "5m").start();
    let mut holder = gateway.connect();
    holder.send(get("/held"));
    gateway.wait_in_flight(1);
    let (ends, hammers, lost) = (AtomicBool::new(false), AtomicBool::new(true), AtomicU64::new(0));
    let address = gateway.address();
    std::thread::scope(|scope| {
        // A failed assertion must not leave the clients at work.
        let _end = EndsOnDrop(&ends);
        let person =
            "Cookie: sid=session-0001\r\nReferer: http://shop.example/\r\nSec-Fetch-Dest: script\r\n";
        let clients =
            [(71, "", None), (72, "", Some(Duration::from_millis(333))), (73, person, Some(Duration::ZERO))];
        for (host, fields, pause) in clients {
            let (ends, lost) = (&ends, &lost);
            scope.spawn(move || {
                let mut visitor = Visitor::new(Ipv4Addr::new(127, 0, 0, host), address, fields);
                let target = slowest(&mut visitor);
                while !ends.load(Relaxed) {
                    let answer = visitor.ask(&target);
                    if answer.as_ref().is_none_or(|answer| answer.status() != 503) {
                        lost.fetch_add(1, Relaxed);
                    }
                    let retry_after_s = answer.and_then(|answer| answer.field("retry-after")?.parse().ok());
                    let wait = pause.unwrap_or(Duration::from_secs(retry_after_s.unwrap_or(1)));
                    let since = Instant::now();
                    while !ends.load(Relaxed) && since.elapsed() < wait {
                        std::thread::park_timeout(Duration::from_millis(20));
                    }
                }
            });
        }
        for _ in 0..CONNECTIONS {
            let (ends, hammers) = (&ends, &hammers);
            scope.spawn(move || {
                let mut visitor = Visitor::new(HASTY, address, "");
                let target = slowest(&mut visitor);
                while !ends.load(Relaxed) {
                    if !hammers.load(Relaxed) || visitor.ask(&target).is_none() {
                        std::thread::park_timeout(Duration::from_millis(20));
                    }
                }
            });
        }
        let left_s = until("a listed source", LISTED_WITHIN, || listed(&gateway));
        let since = Instant::now();
        hammers.store(false, Relaxed);
        assert!((7.0..=10.0).contains(&left_s), "{left_s}");
        assert!(!is_answered(&gateway), "a connection of a listed source");
        until("its return", Duration::from_secs(30), || is_answered(&gateway).then_some(()));
        let away_s = since.elapsed().as_secs_f64();
        assert!(away_s >= left_s - 1.0, "back after {away_s} s of {left_s}");
        assert_eq!(listed(&gateway), None);
        // The first time after is a refusal like any other's: it is listed again only for hammering again,
        // and for longer.
        hammers.store(true, Relaxed);
        let left_s = until("a source that is listed again", LISTED_WITHIN, || listed(&gateway));
        assert!((15.0..=20.0).contains(&left_s), "{left_s}");
        let said = impatient(&gateway);
        assert_eq!((&said["sources"], &said["listed"]), (&1.into(), &2.into()), "{said}");
        until("connections that are closed", LISTED_WITHIN, || {
            (impatient(&gateway)["dropped"].as_u64()? >= 5).then_some(())
        });
        hammers.store(false, Relaxed);

        // Ways out: the operator's word, and a configuration that has none listed.
        let pardon = |query: &str| {
            let request = format!(
                "DELETE /fairness/impatient{query} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n"
            );
            Client::connect(gateway.admin()).ask(&request)
        };
        assert_eq!(pardon("?address=nowhere").status(), 400);
        assert_eq!(pardon("?address=127.0.0.9").json()["pardoned"], 0);
        assert!(!is_answered(&gateway));
        assert_eq!(pardon(&format!("?address={HASTY}")).json()["pardoned"], 1);
        assert!(is_answered(&gateway));
        hammers.store(true, Relaxed);
        until("a source that is listed a third time", LISTED_WITHIN, || listed(&gateway));
        hammers.store(false, Relaxed);
        assert!(!is_answered(&gateway));
        gateway.configure(&[("fairness.drop_impatient", Some("false"))]);
        gateway.reload();
        eventually("the reload", || is_answered(&gateway).then_some(()));
    });
    assert_eq!(lost.load(Relaxed), 0, "a client that waits, reloads or is a person was not answered");
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_impatient_sources_listed_total"), 3.0);
    assert_eq!(metrics.value("flashweir_impatient_sources"), 0.0);
    assert!(metrics.value("flashweir_impatient_connections_dropped_total") >= 5.0);
    latch.open();
    assert_eq!(holder.response().status(), 200);
}

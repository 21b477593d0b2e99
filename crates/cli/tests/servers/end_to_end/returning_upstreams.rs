//! Servers that start, die, flap, hang and fail: who is used, and how soon. Each found time is printed
//! (`--nocapture`).
//!
//! Twin in virtual time of the tests under load: `replication`,
//! `a_silent_server_is_one_while_the_others_answer`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flashweir_testkit::{
    Client, Connection, Gateway, GatewayBuilder, Latch, Upstream, reserve_address, until,
};

use crate::end_to_end::support::{EndOnDrop, binary, get, holding};

/// Ten times what is aimed at (1 s): tests run on slow machines.
const USED_WITHIN: Duration = Duration::from_secs(10);
/// Servers are compared each second.
const COMPARED_TWICE: Duration = Duration::from_millis(2_200);
/// An up-time and a down-time of the server that flaps.
const FLAP: Duration = Duration::from_millis(300);

/// A server that says `text`, somewhere.
fn start_at(address: SocketAddr, text: &'static str) -> Upstream {
    Upstream::start_at(address, move |connection: &mut Connection| {
        while connection.read_request().is_some() && connection.answer(200, "", text) {}
    })
}

fn over(addresses: &[SocketAddr]) -> GatewayBuilder {
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}")).collect();
    GatewayBuilder::new(&binary()).upstreams(urls.iter().map(String::as_str))
}

fn cause(gateway: &Gateway, upstream: usize) -> String {
    gateway.status()["upstreams"][upstream]["out_because"].as_str().unwrap_or("in use").to_owned()
}

fn retries(gateway: &Gateway) -> f64 {
    gateway.metrics().value("flashweir_upstream_retries_total")
}

/// Waits until a request is answered with `text`, and says how long that took.
fn used_after(client: &mut Client, text: &str) -> Duration {
    let since = Instant::now();
    until(text, USED_WITHIN, || (client.ask(&get("/")).text() == text).then_some(()));
    since.elapsed()
}

/// Goal: servers that come one after the other are used at once, though they have been away. It failed with
/// ejections that last their time also for servers that are away. Method: that time is longer than the test
/// waits.
#[test]
fn servers_that_come_are_used_at_once() {
    let addresses = [reserve_address(), reserve_address(), reserve_address(), reserve_address()];
    let first = start_at(addresses[0], "0");
    let gateway = over(&addresses).text("upstream.health.eject_for", "60s").start();
    let mut client = gateway.connect();
    until("the absent ones are left out", USED_WITHIN, || {
        assert_eq!(client.ask(&get("/")).text(), "0");
        (1..4).all(|server| cause(&gateway, server) == "unreachable").then_some(())
    });
    let mut others = Vec::new();
    for (address, text) in addresses[1..].iter().zip(["1", "2", "3"]) {
        others.push(start_at(*address, text));
        println!("server {text} used after {:?}", used_after(&mut client, text));
    }
    drop((first, others));
}

/// Any method waits, for nothing of the request has come to a server; a server that is away for longer than a
/// restart takes is 502 at once.
#[test]
fn requests_wait_for_a_server_that_restarts() {
    let address = reserve_address();
    let server = start_at(address, "before");
    let gateway = over(&[address]).start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).text(), "before");
    drop(server);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
    gateway.wait_in_flight(1);
    let server = start_at(address, "after");
    assert_eq!(client.response().text(), "after");
    assert!(retries(&gateway) >= 1.0, "it was refused before");
    drop(server);
    // The first ones wait, too. One may be reset by what is left of the listener in a process that is being
    // started.
    until("502 at once", USED_WITHIN, || {
        let before = retries(&gateway);
        let status = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").status();
        assert_eq!(status, 502);
        (retries(&gateway) - before == 1.0).then_some(())
    });
}

#[test]
fn the_first_server_that_returns_after_all_were_gone_is_used_at_once() {
    let addresses = [reserve_address(), reserve_address(), reserve_address()];
    let gateway = over(&addresses).start();
    until("all are out", USED_WITHIN, || {
        assert!(matches!(gateway.get("/").status(), 502 | 503));
        (0..3).all(|server| cause(&gateway, server) == "unreachable").then_some(())
    });
    let _back = start_at(addresses[1], "back");
    let since = Instant::now();
    until("an answer", USED_WITHIN, || (gateway.get("/").status() == 200).then_some(()));
    println!("used after {:?}", since.elapsed());
    until("the gateway knows", USED_WITHIN, || (cause(&gateway, 1) == "in use").then_some(()));
    for _ in 0..20 {
        assert_eq!(gateway.get("/").text(), "back");
    }
}

/// Goal: a server that is up for 300 ms and down for 300 ms costs no more requests than its first deaths.
/// Method: a client that asks all the time for 20 flaps; what is lost is what was at the server when it died.
#[test]
#[ignore = "real load: make test-load"]
fn a_flapping_server_takes_no_traffic_down_with_it_under_load() {
    let flapping = reserve_address();
    let (one, two) = (Upstream::saying("one"), Upstream::saying("two"));
    let gateway = over(&[one.address(), two.address(), flapping]).start();
    let (is_over, asked, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let ends = EndOnDrop(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = gateway.connect();
                while !is_over.load(Ordering::Relaxed) {
                    asked.fetch_add(1, Ordering::Relaxed);
                    if client.ask(&get("/")).status() != 200 {
                        failed.fetch_add(1, Ordering::Relaxed);
                        client = gateway.connect();
                    }
                }
            });
        }
        for _ in 0..20 {
            let up = start_at(flapping, "flapping");
            std::thread::park_timeout(FLAP);
            drop(up);
            std::thread::park_timeout(FLAP);
        }
        drop(ends);
    });
    let (asked, failed) = (asked.into_inner(), failed.into_inner());
    println!("{failed} of {asked} requests failed");
    // Two clients, and a death before and after each of the few returns there can be.
    assert!(asked > 100 && failed <= 8, "{failed} of {asked}");
    assert!(gateway.metrics().value("flashweir_upstream_returns_total{service=\"default\"}") <= 4.0);
    assert_eq!(cause(&gateway, 2), "unreachable");
    let _up = start_at(flapping, "flapping");
    // It is held for longer with each return, and used in the end.
    until("the one that stays", USED_WITHIN * 2, || (gateway.get("/").text() == "flapping").then_some(()));
}

/// Goal: a server that accepts requests and answers none is found by the others' answers, long before a
/// timeout.
#[test]
fn a_server_that_hangs_is_left_out_while_the_others_answer() {
    let latch = Latch::new();
    let hanging = holding(&latch);
    let slow = |text: &'static str| {
        Upstream::start(move |connection: &mut Connection| {
            while connection.read_request().is_some() {
                std::thread::park_timeout(Duration::from_millis(20));
                if !connection.answer(200, "", text) {
                    return;
                }
            }
        })
    };
    let (one, two) = (slow("one"), slow("two"));
    let gateway = over(&[hanging.address(), one.address(), two.address()])
        .text("sentry.policing", "off")
        .text("upstream.health.eject_for", "30s")
        .start();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = EndOnDrop(&is_over);
        for _ in 0..24 {
            scope.spawn(|| {
                let mut client = gateway.connect();
                while !is_over.load(Ordering::Relaxed) {
                    assert!(matches!(client.ask(&get("/")).status(), 200));
                }
            });
        }
        let since = Instant::now();
        until("the hanging server left out", USED_WITHIN, || (cause(&gateway, 0) == "outlier").then_some(()));
        println!("found after {:?} with {} requests", since.elapsed(), hanging.request_count());
        let lost = hanging.request_count();
        let before = one.request_count() + two.request_count();
        until("a hundred further answers", USED_WITHIN, || {
            (one.request_count() + two.request_count() >= before + 100).then_some(())
        });
        assert!(hanging.request_count() <= lost + 2, "{} after {lost}", hanging.request_count());
        drop(ends);
        latch.open();
    });
}

/// Goal: a server that answers everything with 500, fast, gets no traffic for it; where all do, all stay.
#[test]
fn a_server_that_fails_alone_is_left_out() {
    let failing =
        || {
            Upstream::start(|connection: &mut Connection| {
                while connection.read_request().is_some() && connection.answer(500, "", "broken") {}
            })
        };
    let (broken, one, two) = (failing(), Upstream::saying("one"), Upstream::saying("two"));
    let gateway = over(&[broken.address(), one.address(), two.address()])
        .text("upstream.health.eject_for", "30s")
        .start();
    let others = (failing(), failing());
    let failing_gateway = over(&[others.0.address(), others.1.address()]).start();
    let since = Instant::now();
    let (mut client, mut failing_client) = (gateway.connect(), failing_gateway.connect());
    until("the broken one left out", USED_WITHIN, || {
        client.ask(&get("/"));
        assert_eq!(failing_client.ask(&get("/")).status(), 500);
        (cause(&gateway, 0) == "outlier").then_some(())
    });
    for _ in 0..50 {
        assert_eq!(client.ask(&get("/")).status(), 200);
    }
    until("two comparisons", USED_WITHIN, || {
        assert_eq!(failing_client.ask(&get("/")).status(), 500);
        (since.elapsed() >= COMPARED_TWICE).then_some(())
    });
    let causes = [0, 1].map(|server| cause(&failing_gateway, server));
    assert_eq!(causes, ["in use", "in use"]);
}

/// Goal: of two servers that report how busy they are, the busier one's share shrinks.
#[test]
fn shares_follow_what_servers_report() {
    let reporting = |utilisation: &'static str| {
        Upstream::start(move |connection: &mut Connection| {
            let field = format!("endpoint-load-metrics: TEXT application_utilization={utilisation}\r\n");
            while connection.read_request().is_some() && connection.answer(200, &field, "ok") {}
        })
    };
    let (busy, idle) = (reporting("0.9"), reporting("0.3"));
    let gateway = over(&[busy.address(), idle.address()]).start();
    let mut client = gateway.connect();
    until("unequal shares", USED_WITHIN, || {
        client.ask(&get("/"));
        let share = |server: usize| gateway.status()["upstreams"][server]["share"].as_f64().unwrap_or(1.0);
        (share(0) < 0.9 && share(1) > 1.1).then_some(())
    });
}

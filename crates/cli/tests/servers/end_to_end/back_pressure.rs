//! A slow reader slows its sender down; the gateway keeps little in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashweir_testkit::{Connection, Upstream, eventually, pattern};

use crate::end_to_end::support::{before, get};

/// Room for socket buffers on both sides and the gateway's own; far below what is on offer.
const MOST_IN_BETWEEN: u64 = 48 << 20;
/// Bytes that there are to send.
const ON_OFFER: u64 = 1 << 30;

/// Waits until a number stands still: looks at it until many looks in a row saw the same.
fn at_rest(number: impl Fn() -> u64) -> u64 {
    let (mut last, mut same) = (0, 0);
    eventually("a number at rest", || {
        let now = number();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same >= 40 && now > 0).then_some(now)
    })
}

#[test]
fn a_client_that_reads_slowly_slows_the_upstream_down() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let upstream = Upstream::start(move |connection: &mut Connection| {
        if connection.read_request().is_none() {
            return;
        }
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {ON_OFFER}\r\n\r\n"));
        let part = pattern(64 << 10);
        while counter.load(Ordering::Relaxed) < ON_OFFER && connection.send(&part) {
            counter.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
    });
    let gateway = before(&upstream).start();
    let resident_before = gateway.process().resident_bytes();
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.response_head().expect("a head").status(), 200);
    let rested = at_rest(|| sent.load(Ordering::Relaxed));
    let grown = gateway.process().resident_bytes().saturating_sub(resident_before);
    assert!(rested < MOST_IN_BETWEEN, "{rested} bytes left the upstream though no client read them");
    assert!(grown < 16 << 20, "the gateway grew by {grown} bytes");
    let _ = client.read_exactly(64 << 20);
    assert!(at_rest(|| sent.load(Ordering::Relaxed)) > rested, "reading makes it go on");
}

#[test]
fn an_upstream_that_reads_slowly_slows_the_client_down() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        // The head alone; the body is never read while the connection stays open.
        let Some(_head) = connection.read_head() else { return };
        std::thread::park_timeout(flashweir_testkit::PATIENCE);
    });
    let gateway = before(&upstream).start();
    let resident_before = gateway.process().resident_bytes();
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let mut client = gateway.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {ON_OFFER}\r\n\r\n"));
    let sender = std::thread::spawn(move || {
        let part = pattern(64 << 10);
        while counter.load(Ordering::Relaxed) < ON_OFFER && client.try_send(&part).is_ok() {
            counter.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
    });
    let rested = at_rest(|| sent.load(Ordering::Relaxed));
    let grown = gateway.process().resident_bytes().saturating_sub(resident_before);
    assert!(rested < MOST_IN_BETWEEN, "{rested} bytes left the client though no server read them");
    assert!(grown < 16 << 20, "the gateway grew by {grown} bytes");
    drop(gateway);
    sender.join().expect("the sender ends with the gateway");
}

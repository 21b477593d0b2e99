//! A stop in order: nothing that was let in is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flashweir_testkit::{Client, Connection, Latch, ReadError, Signal, Upstream, eventually};

use crate::end_to_end::support::{before, get, holding};

#[test]
fn every_request_that_was_let_in_is_answered() {
    const MANY: usize = 200;
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).start();
    let mut clients: Vec<Client> = (0..MANY).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(MANY as u64);
    gateway.terminate();
    eventually("not ready any more", || (gateway.ask_admin("/readyz").status() == 503).then_some(()));
    assert_eq!(gateway.ask_admin("/healthz").status(), 200, "alive while it drains");
    latch.open();
    let mut answered = 0;
    for client in &mut clients {
        let response = client.response();
        assert_eq!((response.status(), response.text().as_str()), (200, "held"));
        answered += 1;
    }
    assert_eq!(answered, MANY);
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}

#[test]
fn a_stop_in_the_middle_of_traffic_loses_nothing() {
    let upstream = Upstream::saying("done");
    let gateway = before(&upstream).start();
    let address = gateway.address();
    let (stopping, answered, refused, lost) =
        (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Ok(mut client) = Client::try_connect(address) {
                    // Kept connections, used until the gateway closes them between two requests.
                    while client.try_send(get("/")).is_ok() {
                        match client.try_response() {
                            Ok(response) if response.status() == 200 => {
                                answered.fetch_add(1, Ordering::SeqCst)
                            }
                            Ok(response) if response.status() == 503 => {
                                refused.fetch_add(1, Ordering::SeqCst)
                            }
                            // Closed while idle: the request was never read, a client sends it again
                            // elsewhere.
                            Err(ReadError::Closed | ReadError::Failed(_))
                                if stopping.load(Ordering::SeqCst) =>
                            {
                                break;
                            }
                            other => {
                                lost.fetch_add(1, Ordering::SeqCst);
                                panic!("lost: {other:?}")
                            }
                        };
                    }
                }
            });
        }
        eventually("traffic", || (answered.load(Ordering::SeqCst) > 500).then_some(()));
        stopping.store(true, Ordering::SeqCst);
        gateway.terminate();
    });
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let (answered, received) = (answered.load(Ordering::SeqCst), upstream.request_count());
    assert_eq!(lost.load(Ordering::SeqCst), 0);
    assert_eq!(answered, received, "what reached the upstream reached its client");
}

#[test]
fn a_long_download_is_finished_and_idle_connections_are_closed() {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = Upstream::start(move |connection: &mut Connection| {
        while let Some(request) = connection.read_request() {
            if request.start.starts_with("GET /idle ") {
                connection.answer(200, "", "idle");
                continue;
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
            opened.wait();
            connection.send("after");
        }
    });
    let gateway = before(&upstream).start();
    let mut idle = gateway.connect();
    assert_eq!(idle.ask(&get("/idle")).status(), 200);
    let mut download = gateway.connect();
    download.send(get("/download"));
    assert_eq!(download.response_head().expect("a head").status(), 200);
    assert_eq!(download.read_exactly(5), b"first");
    gateway.terminate();
    idle.expect_closed();
    assert!(
        eventually("no new connections", || Client::try_connect(gateway.address()).err()).kind()
            != std::io::ErrorKind::Other
    );
    latch.open();
    assert_eq!(download.read_exactly(5), b"after");
    download.expect_closed();
    assert_eq!(gateway.finish().code(), Some(0));
}

#[test]
fn what_does_not_end_in_time_is_cut_and_counted() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).text("bounds.drain_timeout", "1s").start();
    let mut clients: Vec<Client> = (0..2).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(2);
    gateway.process().signal(Signal::Interrupt);
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("2 requests cut"), "{}", finished.stderr);
    latch.open();
}

#[test]
fn a_gateway_with_nothing_to_do_stops_at_once() {
    let upstream = Upstream::saying("x");
    let gateway = before(&upstream).start();
    let _kept_open = gateway.connect();
    gateway.terminate();
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(finished.took.as_secs() < 5, "{:?}", finished.took);
}

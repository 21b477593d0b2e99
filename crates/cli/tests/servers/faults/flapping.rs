//! Servers that come and go every 300 ms: each request gets one answer, and when they stay, all is served.
//!
//! Twin in virtual time of the tests under load: `replication`,
//! `a_server_that_fails_alone_is_one_and_a_broken_service_has_none`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flashweir_testkit::{Connection, GatewayBuilder, Nginx, Signal, Upstream, eventually, reserve_address};

use crate::faults::binary;

const EVERY: Duration = Duration::from_millis(300);
/// The soak flaps for longer; this is twenty times there and gone.
const FOR: Duration = Duration::from_secs(12);

fn answering(address: SocketAddr) -> Upstream {
    Upstream::start_at(address, |connection: &mut Connection| {
        while let Some(request) = connection.read_request() {
            let target = request.start.split(' ').nth(1).unwrap_or_default().to_owned();
            if !connection.answer(200, "", target) {
                return;
            }
        }
    })
}

/// Listens, stops listening and cuts its connections, in turn, until it is asked to stay.
struct Flapping {
    stays: Arc<AtomicBool>,
    thread: Option<JoinHandle<Upstream>>,
}

impl Flapping {
    fn start(address: SocketAddr) -> Self {
        let stays = Arc::new(AtomicBool::new(false));
        let stays_open = Arc::clone(&stays);
        let thread = std::thread::spawn(move || {
            loop {
                let upstream = answering(address);
                if stays_open.load(Ordering::SeqCst) {
                    return upstream;
                }
                std::thread::park_timeout(EVERY);
                drop(upstream);
                std::thread::park_timeout(EVERY);
            }
        });
        Self { stays, thread: Some(thread) }
    }

    fn stay(&mut self) -> Upstream {
        self.stays.store(true, Ordering::SeqCst);
        self.thread.take().expect("stopped once").join().expect("an upstream")
    }
}

/// Asks for as long as it flaps; gives the answers served and not served.
fn ask(gateway: &flashweir_testkit::Gateway) -> (usize, usize) {
    let (mut served, mut failed) = (0, 0);
    let begun = Instant::now();
    let mut client = gateway.connect();
    while begun.elapsed() < FOR {
        let target = format!("/{}", served + failed);
        let answer = client.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        match answer.status() {
            200 => {
                assert_eq!(answer.text(), target, "another request's answer");
                served += 1;
            }
            502..=504 => failed += 1,
            status => panic!("{target} was answered {status}"),
        }
        if answer.field("connection") == Some("close") {
            client = gateway.connect();
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    (served, failed)
}

#[test]
#[ignore = "real load: make test-load"]
fn beside_a_steady_server_a_flapping_one_costs_few_answers_under_load() {
    let steady = answering(reserve_address());
    let address = reserve_address();
    let mut flapping = Flapping::start(address);
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([steady.url().as_str(), &format!("http://{address}")])
        .start();
    let (served, failed) = ask(&gateway);
    // Only a request that was on its way when the server went is lost: one each time, at most.
    assert!(failed <= 30 && served > 20 * failed.max(1), "{served} served, {failed} failed");
    let _stays = flapping.stay();
    gateway.wait_in_flight(0);
}

#[test]
#[ignore = "real load: make test-load"]
fn a_server_that_flaps_alone_is_used_whenever_it_is_there_under_load() {
    let address = reserve_address();
    let mut flapping = Flapping::start(address);
    let gateway = GatewayBuilder::new(&binary()).upstream(&format!("http://{address}")).start();
    let (served, failed) = ask(&gateway);
    // Requests wait while it is gone for less than a second; one whose answer has begun when it goes is lost.
    assert!(served > 50 && failed <= 2, "{served} served, {failed} failed");
    assert!(gateway.metrics().value("flashweir_upstream_retries_total") > 0.0, "it was never gone");
    let stays = flapping.stay();
    eventually("service again", || (gateway.get("/back").status() == 200).then_some(()));
    for _ in 0..50 {
        assert_eq!(gateway.get("/stays").status(), 200);
    }
    drop(stays);
    gateway.wait_in_flight(0);
}

/// Turns of a server that is there and gone, and answers in each that show it.
const TURNS: u32 = 10;
const ANSWERS: u32 = 5;

/// The same for an upstream of HTTP/2, where one connection carries all requests.
#[test]
fn a_flapping_http2_server_costs_no_more_than_its_absence() {
    const TEST: &str = "a_flapping_http2_server_costs_no_more_than_its_absence";
    let Some(mut nginx) = Nginx::require(TEST, "http2", "location / { return 200 served; }") else { return };
    let url = format!("http://{}", nginx.address());
    let gateway = GatewayBuilder::new(&binary()).upstream(&url).text("upstream.protocol", "http2").start();
    for turn in 0..TURNS {
        let is_there = turn % 2 == 0;
        let mut answers = 0;
        eventually(if is_there { "its answers" } else { "its absence" }, || {
            match gateway.get("/").status() {
                200 => answers += u32::from(is_there),
                502..=504 => answers += u32::from(!is_there),
                status => panic!("answered {status}"),
            }
            (answers >= ANSWERS).then_some(())
        });
        if is_there {
            nginx.process().signal(Signal::Kill);
        } else {
            nginx.start_again();
        }
    }
    eventually("service again", || (gateway.get("/").status() == 200).then_some(()));
    gateway.wait_in_flight(0);
}

//! New connections of a client that ignores `Retry-After` again and again are dropped by the kernel for a
//! while.
//!
//! Twin in virtual time of the tests under load: `admission`,
//! `one_client_that_hammers_is_listed_within_half_a_minute_or_so`.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flashweir_testkit::{Client, Connection, Gateway, Latch, Testbed, Upstream, Visitor, until};

use crate::kernel::scene::{CLIENTS, SERVER, as_server, builder, may_load, require_testbed};

/// Addresses of the clients' namespace beside that of its interface.
const NETWORK: &str = "198.18.66.0/24";
const HASTY: Ipv4Addr = Ipv4Addr::new(198, 18, 66, 1);
const POLITE: Ipv4Addr = Ipv4Addr::new(198, 18, 66, 2);
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// Ends the clients' loops when it goes.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A server that answers nothing until the end, which is where it was begun: it is woken by a connection to
/// itself.
struct Stuck<'a> {
    testbed: &'a Testbed,
    latch: Latch,
    upstream: Option<Upstream>,
}

impl Drop for Stuck<'_> {
    fn drop(&mut self) {
        self.latch.open();
        let upstream = self.upstream.take();
        as_server(self.testbed, || drop(upstream));
    }
}

/// Goal: the kernel drops what the gateway lists, alone and for as long, whether there is a ceiling or not.
/// Method: a server with room for one request, which is taken. One client hammers on connections that it has,
/// which the kernel does not judge.
#[test]
#[ignore = "real load: make test-load"]
fn the_kernel_drops_new_connections_of_who_ignores_retry_after_until_the_time_is_over_under_load() {
    let test = "impatient sources before the kernel's gate";
    let Some((testbed, address)) = require_testbed(test) else { return };
    if !may_load(test) {
        return;
    }
    let std::net::IpAddr::V4(server) = address.ip() else { panic!("links have IPv4 addresses") };
    let [a, b, c, host] = server.octets();
    testbed.own(CLIENTS, NETWORK);
    testbed.route(SERVER, HASTY, Ipv4Addr::new(a, b, c, 3 - host));
    let latch = Latch::new();
    let (gateway, upstream) = as_server(&testbed, || {
        let held = latch.clone();
        let upstream = Upstream::start(move |connection: &mut Connection| {
            while connection.read_request().is_some() {
                (0..10).for_each(|_| held.wait());
                if !connection.answer(200, "", "at last") {
                    return;
                }
            }
        });
        let builder = builder(address, &upstream.url()).set("bounds.max_requests_in_flight", "1");
        (builder.text("upstream.response_header_timeout", "5m").start(), upstream)
    });
    let _stuck = Stuck { testbed: &testbed, latch: latch.clone(), upstream: Some(upstream) };
    let status = || as_server(&testbed, || gateway.status());
    let purged = || status()["kernel"]["connections"]["purged"].as_u64().expect("a count");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A failed assertion must not leave the clients at work.
        let _end = EndsOnDrop(&ends);
        let mut holder = testbed.inside(CLIENTS, || Client::connect_from(POLITE, address));
        holder.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        until("the request that is held", LISTED_WITHIN, || {
            (status()["requests"]["in_flight"] == 1).then_some(())
        });
        let hammer = || {
            testbed.inside(CLIENTS, || {
                let mut visitor = Visitor::new(HASTY, address, "");
                // Of new connections, the first that is not made ends it.
                let mut is_answered = true;
                while is_answered && !ends.load(Relaxed) {
                    is_answered = visitor.ask("/work").is_some();
                }
            });
        };
        let hammers: Vec<_> = (0..3).map(|_| scope.spawn(hammer)).collect();
        let polite = || testbed.inside(CLIENTS, || Visitor::new(POLITE, address, "").ask("/other").is_some());
        let hasty = || testbed.inside(CLIENTS, || Visitor::new(HASTY, address, "").ask("/work").is_some());
        until("a listed source", LISTED_WITHIN, || {
            assert!(polite(), "a client that waits");
            (status()["fairness"]["impatient"]["sources"] == 1).then_some(())
        });
        let since = Instant::now();
        until("the kernel's first drop", Duration::from_secs(9), || {
            assert!(polite(), "a client that waits, beside one that is listed");
            (!hasty() && purged() > 0).then_some(())
        });
        ends.store(true, Relaxed);
        hammers.into_iter().for_each(|hammer| hammer.join().expect("no panic"));
        until("its return", Duration::from_secs(30), || hasty().then_some(()));
        assert!(since.elapsed() >= Duration::from_secs(8), "{:?}", since.elapsed());
        let dropped = purged();
        assert!(hasty() && polite() && purged() == dropped);
        let metrics = as_server(&testbed, || Gateway::metrics(&gateway));
        let how = "flashweir_kernel_connections_refused_total{service=\"default\",how=\"purged\"}";
        assert!(metrics.value(how) > 0.0);
        latch.open();
        assert_eq!(holder.response().status(), 200);
    });
}

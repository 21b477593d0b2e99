//! Requests that find no room at the origin: before a crowd has opened the cache they are one fetch for all,
//! and a fetch that is refused is not refused to all who wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashweir_testkit::{Client, Gateway, GatewayBuilder, Latch, Upstream, eventually};

use crate::cache::scene::binary;

/// An origin all of whose room requests for `/slow` take until the latch opens, with a gateway before it in
/// this mode.
struct Busy {
    gateway: Gateway,
    latch: Latch,
    /// Requests for `/page` that it got.
    pages: Arc<AtomicUsize>,
    slow: Vec<Client>,
    _upstream: Upstream,
}

impl Busy {
    fn start(mode: &str, fields: &'static str) -> Self {
        let (latch, pages) = (Latch::new(), Arc::new(AtomicUsize::new(0)));
        let (opened, counted) = (latch.clone(), pages.clone());
        let upstream = Upstream::start(move |connection| {
            while let Some(request) = connection.read_request() {
                let is_page = request.start.contains("/page");
                match is_page {
                    true => drop(counted.fetch_add(1, Ordering::SeqCst)),
                    false => opened.wait(),
                }
                let whose = format!("of {}", request.field("cookie").unwrap_or("no user"));
                if !connection.answer(200, if is_page { fields } else { "" }, whose) {
                    return;
                }
            }
        });
        let gateway = GatewayBuilder::new(&binary())
            .upstream(&upstream.url())
            .text("cache.mode", mode)
            .set("gateway.workers", "1")
            .start();
        let mut busy = Self { gateway, latch, pages, slow: Vec::new(), _upstream: upstream };
        // One of them waits: what comes now finds no room.
        while busy.gateway.metrics().value("flashweir_requests_held_total") == 0.0 {
            assert!(busy.slow.len() < 200, "nothing waits");
            // Each another document.
            let asked = busy.ask(&format!("/slow?{}", busy.slow.len()), "");
            busy.slow.push(asked);
        }
        busy
    }

    fn ask(&self, path: &str, fields: &str) -> Client {
        let mut client = self.gateway.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
        client
    }

    /// Asks for the page once for each of these field lines; the gateway has taken all of them in.
    fn ask_for_page(&self, fields: &[&str]) -> Vec<Client> {
        let before = self.gateway.metrics().value("flashweir_requests_offered_total");
        let clients = fields.iter().map(|fields| self.ask("/page", fields)).collect();
        self.gateway.wait_metric("flashweir_requests_offered_total", before + fields.len() as f64);
        clients
    }

    fn value(&self, name: &str) -> f64 {
        self.gateway.metrics().value(name)
    }
}

/// Goal: those who wait at the sentry when a crowd comes are not one after the other at the origin.
#[test]
fn requests_that_wait_for_the_origin_while_the_cache_is_closed_are_one_fetch() {
    let busy = Busy::start("crowd", "Cache-Control: max-age=60\r\n");
    let clients = busy.ask_for_page(&[""; 40]);
    busy.latch.open();
    for mut client in clients {
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "of no user"));
    }
    assert_eq!(busy.pages.load(Ordering::SeqCst), 1);
    let collapsed = busy.value("flashweir_cache_answers_total{how=\"collapsed\"}");
    assert_eq!(collapsed, 39.0);
    // Closed: nothing was kept.
    eventually("what was fetched to go", || {
        (busy.gateway.status()["cache"]["used_bytes"] == 0).then_some(())
    });
    assert_eq!(busy.ask("/page", "").response().field("cache-status"), None);
    assert_eq!(busy.pages.load(Ordering::SeqCst), 2);
}

/// Goal: no user gets what is another's on this path, for any answer of the origin. Method: two users and a
/// client without a cookie wait.
#[test]
fn what_is_one_users_own_is_no_others_who_waits() {
    let users =
        ["Cookie: user=a\r\n", "Cookie: user=b\r\n", "", "Cookie: user=a\r\n", "Cookie: user=b\r\n", ""];
    for fields in [
        "Cache-Control: private, max-age=60\r\n",
        "Cache-Control: public, max-age=60\r\nSet-Cookie: id=1\r\n",
        "Cache-Control: max-age=60\r\nVary: *\r\n",
        "Cache-Control: max-age=60\r\nVary: Cookie\r\n",
        "Cache-Control: max-age=60\r\n",
        "",
    ] {
        let busy = Busy::start("crowd", fields);
        let clients = busy.ask_for_page(&users);
        let sent = (busy.slow.len() + users.len()) as f64;
        busy.latch.open();
        for (mut client, user) in clients.into_iter().zip(users) {
            let answer = client.response();
            let own = user.trim_end().strip_prefix("Cookie: ").unwrap_or("no user");
            assert_eq!((answer.status(), answer.text()), (200, format!("of {own}")), "{fields}");
        }
        for mut client in busy.slow {
            assert_eq!(client.response().status(), 200);
        }
        // Each is one request, those included that asked the pipeline once more.
        let gateway = busy.gateway;
        gateway.wait_in_flight(0);
        let metrics = gateway.metrics();
        let count = |name: &str| metrics.value(&format!("flashweir_requests_{name}_total"));
        let counts = [count("offered"), count("admitted"), count("completed"), count("left")];
        assert_eq!(counts, [sent, sent, sent, 0.0], "{fields}");
    }
}

/// Goal: what was fetched for those without a cookie is no user's answer where the origin distinguishes them.
/// Method: one without fetches.
#[test]
fn a_variant_reaches_those_alone_who_select_it() {
    let users = ["", "Cookie: user=a\r\n", "", "Cookie: user=b\r\n", "Cookie: user=a\r\n"];
    let busy = Busy::start("crowd", "Cache-Control: public, max-age=60\r\nVary: Cookie\r\n");
    let clients = busy.ask_for_page(&users);
    busy.latch.open();
    for (mut client, user) in clients.into_iter().zip(users) {
        let answer = client.response();
        let own = user.trim_end().strip_prefix("Cookie: ").unwrap_or("no user");
        assert_eq!((answer.status(), answer.text()), (200, format!("of {own}")));
    }
}

/// Goal: a request for a part waits with the others and never fetches for them. Method: it is the first of
/// those that wait.
#[test]
fn a_request_for_a_part_gets_its_part_and_fetches_for_itself_alone() {
    let busy = Busy::start("crowd", "Cache-Control: max-age=60\r\n");
    let mut clients = busy.ask_for_page(&["Range: bytes=0-1\r\n", "", "Range: bytes=0-1\r\n", ""]);
    busy.latch.open();
    let answers: Vec<_> = clients.iter_mut().map(|client| client.response()).collect();
    // The first found no flight: it asks the origin, which knows no parts.
    assert_eq!(answers[0].status(), 200);
    assert_eq!((answers[2].status(), answers[2].text().as_str()), (206, "of"));
    for whole in [&answers[1], &answers[3]] {
        assert_eq!((whole.status(), whole.text().as_str()), (200, "of no user"));
    }
    assert_eq!(busy.pages.load(Ordering::SeqCst), 2);
}

/// Goal: those who leave take nothing from the others and leave nothing behind.
#[test]
fn clients_that_leave_while_they_wait_end_nothing_for_the_others() {
    let busy = Busy::start("crowd", "Cache-Control: max-age=60\r\n");
    let mut clients = busy.ask_for_page(&[""; 6]);
    drop(clients.drain(..3));
    eventually("those who left", || (busy.value("flashweir_requests_left_total") == 3.0).then_some(()));
    busy.latch.open();
    for mut client in clients {
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(busy.pages.load(Ordering::SeqCst), 1);

    let busy = Busy::start("crowd", "Cache-Control: max-age=60\r\n");
    let flights = |busy: &Busy| busy.gateway.status()["cache"]["flights"].clone();
    // The request that waits has one.
    let before = flights(&busy);
    drop(busy.ask_for_page(&[""; 6]));
    eventually("those who left", || (busy.value("flashweir_requests_left_total") == 6.0).then_some(()));
    assert_eq!(flights(&busy), before);
    busy.latch.open();
    assert_eq!(busy.ask("/page", "").response().status(), 200);
}

/// Goal: a refusal of the request that would fetch is none of those who wait for it, and what asks again for
/// them is no request. Method: nothing gets through until the fetch was tried again. The origin gives no
/// answer for four targets, and requests that came after the fetch take the places that are given back then,
/// so it is refused at its deadline.
#[test]
fn a_fetch_that_is_refused_is_tried_again_for_those_who_wait() {
    let mut busy = Busy::start("always", "Cache-Control: max-age=60\r\n");
    let clients = busy.ask_for_page(&[""; 20]);
    for late in 0..8 {
        let asked = busy.ask(&format!("/slow?late={late}"), "");
        busy.slow.push(asked);
    }
    busy.gateway.wait_metric("flashweir_cache_fetch_retries_total", 1.0);
    busy.latch.open();
    for mut client in clients {
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(busy.pages.load(Ordering::SeqCst), 1);
    let sent = (busy.slow.len() + 20) as f64;
    let Busy { gateway, slow, .. } = busy;
    let refused = slow.into_iter().filter_map(|mut client| (client.response().status() == 503).then_some(()));
    let refused = refused.count() as f64;
    gateway.wait_in_flight(0);
    let metrics = gateway.metrics();
    let counts =
        ["offered", "completed", "left"].map(|it| metrics.value(&format!("flashweir_requests_{it}_total")));
    assert_eq!(counts, [sent, sent - refused, 0.0], "what clients sent, and how it ended");
    assert_eq!(metrics.sum("flashweir_requests_shed_total"), refused, "a refusal is one that a client got");
    let class = "flashweir_class_offered_total";
    assert_eq!(metrics.sum(class), sent, "{class}");
    assert!(gateway.status()["cache"]["fetch_retries"].as_u64() >= Some(1));
}

//! Any number of requests for one missing document are one at the origin, and every waiting request gets an
//! answer.

use std::time::Instant;

use flashweir_testkit::{Client, Http2Client, Latch, StreamEnd, Upstream, eventually};

use crate::cache::scene::{cache_status, caching, get, number, numbered};

const CONNECTIONS: u8 = 100;
const STREAMS: u32 = 100;

#[test]
fn ten_thousand_who_wait_for_one_document_are_one_request() {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |_| {
        opened.wait();
        (200, "Cache-Control: max-age=60\r\n".to_owned())
    });
    let gateway = caching(&upstream).set("gateway.workers", "2").start();
    let mut clients = Http2Client::all_asking_for("/page", CONNECTIONS, STREAMS, gateway.address());
    let all = f64::from(CONNECTIONS) * f64::from(STREAMS);
    gateway.wait_metric("flashweir_cache_waiting", all - 1.0);
    assert_eq!(upstream.request_count(), 1);
    let resident_bytes = gateway.process().resident_bytes();
    assert!(resident_bytes < 400 << 20, "{resident_bytes} bytes for those who wait");
    let begun = Instant::now();
    latch.open();
    // Any order will do; a client reads its streams' ends as they come, and the last stream's is asked for
    // last.
    for client in &mut clients {
        assert_eq!(client.outcome(2 * STREAMS - 1), StreamEnd::Status(200));
    }
    println!("all were answered {:?} after the origin", begun.elapsed());
    gateway.wait_metric("flashweir_requests_completed_total", all);
    assert_eq!(upstream.request_count(), 1);
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_cache_answers_total{how=\"collapsed\"}"), all - 1.0);
    assert_eq!(metrics.value("flashweir_cache_waiting"), 0.0);
}

/// Clients that ask at once, before the server answers.
fn waiting(gateway: &flashweir_testkit::Gateway, fields: &[&str]) -> Vec<Client> {
    let mut clients: Vec<Client> = fields.iter().map(|_| gateway.connect()).collect();
    for (client, fields) in clients.iter_mut().zip(fields) {
        client.send(format!("GET /page HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
    }
    gateway.wait_metric("flashweir_requests_offered_total", fields.len() as f64);
    clients
}

#[test]
fn those_who_wait_get_their_own_part_and_variant() {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |_| {
        opened.wait();
        (200, "Cache-Control: max-age=60\r\nETag: \"1\"\r\nVary: Accept-Language\r\n".to_owned())
    });
    let gateway = caching(&upstream).start();
    let mut leader = waiting(&gateway, &["Accept-Language: de\r\n"]).remove(0);
    eventually("the leader's request", || (upstream.request_count() == 1).then_some(()));
    let mut clients: Vec<Client> = [
        "Accept-Language: de\r\n",
        "Accept-Language: de\r\nRange: bytes=0-0\r\n",
        "Accept-Language: de\r\nIf-None-Match: \"1\"\r\n",
        "Accept-Language: en\r\n",
    ]
    .iter()
    .map(|fields| {
        let mut client = gateway.connect();
        client.send(format!("GET /page HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
        client
    })
    .collect();
    gateway.wait_metric("flashweir_cache_waiting", 4.0);
    latch.open();
    assert_eq!(number(&leader.response()), 1);
    let answers: Vec<_> = clients.iter_mut().map(Client::response).collect();
    assert_eq!(
        (number(&answers[0]), cache_status(&answers[0]).as_str()),
        (1, "flashweir; fwd=uri-miss; collapsed")
    );
    assert_eq!((answers[1].status(), answers[1].text().as_str()), (206, "1"));
    assert_eq!(answers[2].status(), 304);
    assert_eq!(number(&answers[3]), 2, "another variant is fetched by itself");
    assert_eq!(upstream.request_count(), 2);
}

/// A request that the origin may answer in its own way makes those wait that send the same, and no others.
#[test]
fn requests_with_one_origin_are_one_fetch_beside_the_one_without() {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |_| {
        opened.wait();
        (200, "Cache-Control: max-age=60\r\nVary: Origin\r\n".to_owned())
    });
    let gateway = caching(&upstream).start();
    let origin = "Origin: https://a.example\r\n";
    let mut with = waiting(&gateway, &[origin, origin, origin]);
    gateway.wait_metric("flashweir_cache_waiting", 2.0);
    let mut without = gateway.connect();
    without.send("GET /page HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    eventually("a second fetch", || (upstream.request_count() == 2).then_some(()));
    latch.open();
    let numbers: Vec<usize> = with.iter_mut().map(|client| number(&client.response())).collect();
    assert!(numbers.iter().all(|&other| other == numbers[0]), "{numbers:?}");
    assert_ne!(number(&without.response()), numbers[0]);
    assert_eq!(upstream.request_count(), 2);
}

#[test]
fn a_leader_that_leaves_takes_nothing_from_those_who_wait_and_the_last_one_ends_the_fetch() {
    let latch = Latch::new();
    let opened = latch.clone();
    let upstream = numbered(move |_| {
        opened.wait();
        (200, "Cache-Control: max-age=60\r\n".to_owned())
    });
    let gateway = caching(&upstream).start();
    let mut clients = waiting(&gateway, &["", "", ""]);
    gateway.wait_metric("flashweir_cache_waiting", 2.0);
    drop(clients.remove(0));
    // The gateway has noticed when it notices the second.
    drop(clients.remove(0));
    eventually("those who left", || {
        (gateway.metrics().value("flashweir_cache_waiting") <= 1.0).then_some(())
    });
    latch.open();
    assert_eq!(number(&clients[0].response()), 1);
    assert_eq!(upstream.request_count(), 1);

    let holding = Upstream::start(|connection| {
        while connection.read_request().is_some() {
            connection.stall();
        }
    });
    let gateway = caching(&holding).start();
    let clients = waiting(&gateway, &["", ""]);
    eventually("the request", || (holding.request_count() == 1).then_some(()));
    drop(clients);
    eventually("the end of the fetch", || (holding.open_connections() == 0).then_some(()));
    gateway.wait_in_flight(0);
    assert_eq!(gateway.status()["cache"]["flights"], 0);
    let metrics = gateway.metrics();
    let ended =
        metrics.value("flashweir_requests_abandoned_total") + metrics.value("flashweir_requests_left_total");
    assert_eq!(ended, 2.0, "each is accounted for");
}

#[test]
fn a_failure_is_not_shared() {
    let upstream = numbered(|_| (500, "Cache-Control: max-age=60\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut clients = waiting(&gateway, &["", "", ""]);
    let mut numbers: Vec<usize> = clients.iter_mut().map(|client| number(&client.response())).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    let mut client = gateway.connect();
    assert_eq!(get(&mut client, "/page", "").status(), 500);
}

#[test]
fn a_document_that_nobody_can_share_is_not_waited_for_again() {
    let upstream = numbered(|_| (200, "Cache-Control: private\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    for _ in 0..5 {
        assert_eq!(get(&mut client, "/page", "").field("cache-status"), None);
    }
    assert_eq!(gateway.metrics().value("flashweir_cache_fetches_total"), 1.0, "then it is known");
}

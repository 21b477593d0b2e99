//! A client that goes away leaves nothing behind: no place taken, no work at the upstream, no connection
//! open.

use flashweir_testkit::{Connection, Gateway, Latch, Upstream, eventually, pattern};

use crate::end_to_end::support::{before, get, holding};

/// A server that takes a request and then waits for its client to go.
fn patient() -> Upstream {
    Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.stall();
        }
    })
}

/// A server that never stops sending.
fn endless() -> Upstream {
    Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_none() {
            return;
        }
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n");
        let part = pattern(64 << 10);
        while connection.send(&part) {}
    })
}

fn nothing_is_left(upstream: &Upstream, gateway: &Gateway) {
    gateway.wait_in_flight(0);
    eventually("the upstream left alone", || (upstream.open_connections() == 0).then_some(()));
    gateway.wait_metric("flashweir_requests_abandoned_total", 1.0);
    let metrics = gateway.metrics();
    let admitted = metrics.value("flashweir_requests_admitted_total");
    let finished: f64 = ["completed", "failed", "abandoned"]
        .iter()
        .map(|end| metrics.value(&format!("flashweir_requests_{end}_total")))
        .sum();
    assert_eq!(admitted, finished, "every admitted request is accounted for");
}

#[test]
fn who_leaves_before_the_answer_is_forgotten_at_once() {
    let upstream = patient();
    let gateway = before(&upstream).start();
    let mut clients: Vec<_> = (0..5).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(5);
    clients.into_iter().for_each(|client| client.reset());
    nothing_is_left(&upstream, &gateway);
    assert_eq!(gateway.metrics().value("flashweir_requests_abandoned_total"), 5.0);
}

#[test]
fn who_closes_in_order_while_waiting_is_forgotten_too() {
    let upstream = patient();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/"));
    gateway.wait_in_flight(1);
    drop(client);
    nothing_is_left(&upstream, &gateway);
}

/// A page with an event stream that is closed, while the stream has nothing to say.
#[test]
fn a_reader_that_leaves_a_silent_stream_is_noticed() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_some() {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            connection.send(head);
            connection.send("8\r\ndata: 1\n\r\n");
            connection.stall();
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.response_head().expect("a head").status(), 200);
    let _ = client.read_exactly("8\r\ndata: 1\n\r\n".len());
    drop(client);
    nothing_is_left(&upstream, &gateway);
}

#[test]
fn who_leaves_in_the_middle_of_a_response_stops_it() {
    let upstream = endless();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.response_head().expect("a head").status(), 200);
    let _ = client.read_exactly(1 << 20);
    client.reset();
    nothing_is_left(&upstream, &gateway);
}

#[test]
fn who_leaves_in_the_middle_of_a_request_stops_it() {
    let upstream = patient();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    // Enough for it to be admitted.
    client.send(pattern(100_000));
    gateway.wait_in_flight(1);
    client.reset();
    nothing_is_left(&upstream, &gateway);
}

#[test]
fn who_leaves_before_a_small_body_is_whole_was_never_there() {
    let upstream = patient();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome");
    gateway.wait_metric("flashweir_uploads_gathering", 1.0);
    client.reset();
    eventually("nothing is waited for", || {
        (gateway.metrics().value("flashweir_uploads_gathering") == 0.0).then_some(())
    });
    assert_eq!(gateway.metrics().value("flashweir_requests_offered_total"), 0.0);
    assert_eq!(upstream.received().connections, 0);
}

#[test]
fn who_leaves_in_the_middle_of_a_head_was_never_there() {
    let upstream = patient();
    let gateway = before(&upstream).start();
    for partial in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut client = gateway.connect();
        client.send(partial);
        client.reset();
    }
    gateway.wait_metric("flashweir_connections_closed_total", 3.0);
    eventually("all closed", || (gateway.metrics().value("flashweir_connections_open") == 0.0).then_some(()));
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_requests_offered_total"), 0.0);
    assert_eq!(upstream.received().connections, 0);
}

#[test]
fn a_client_that_takes_nothing_is_cut_after_a_while() {
    let upstream = endless();
    let gateway = before(&upstream).text("bounds.write_stall_timeout", "1s").start();
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.response_head().expect("a head").status(), 200);
    gateway.wait_in_flight(0);
    eventually("the upstream left alone", || (upstream.open_connections() == 0).then_some(()));
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"write_stall\"}", 1.0);
}

#[test]
fn no_file_is_left_open_after_many_came_and_went() {
    let upstream = patient();
    // It is about files; the sentry would react to requests that are never answered.
    let gateway = before(&upstream).text("sentry.policing", "off").start();
    let come_and_go = || {
        let clients: Vec<_> = (0..20)
            .map(|_| {
                let mut client = gateway.connect();
                client.send(get("/"));
                client
            })
            .collect();
        gateway.wait_in_flight(20);
        clients.into_iter().for_each(|client| client.reset());
        gateway.wait_in_flight(0);
        eventually("all closed", || {
            (gateway.metrics().value("flashweir_connections_open") == 0.0).then_some(())
        });
    };
    // Some files are opened by the first requests and stay.
    come_and_go();
    eventually("upstream connections closed", || (upstream.open_connections() == 0).then_some(()));
    let before_them = gateway.process().open_files();
    (0..10).for_each(|_| come_and_go());
    eventually("no file left open", || (gateway.process().open_files() <= before_them + 3).then_some(()));
}

/// RFC 9112 §9.6: a client that will send no more may end its half and wait.
#[test]
fn a_client_that_ends_its_half_gets_its_answer() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).start();
    let requests = [
        get("/"),
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy".to_owned(),
    ];
    let mut clients = requests.map(|request| {
        let mut client = gateway.connect();
        client.send(request);
        client.finish_writing();
        client
    });
    gateway.wait_in_flight(3);
    latch.open();
    for client in &mut clients {
        let response = client.response();
        assert_eq!((response.status(), response.text().as_str()), (200, "held"));
        client.expect_closed();
    }
    gateway.wait_metric("flashweir_requests_completed_total", 3.0);
    assert_eq!(gateway.metrics().value("flashweir_requests_abandoned_total"), 0.0);
}

/// Goal: some clients would take the chunk before the cut for the last one, if the connection ended in order
/// behind it.
#[test]
fn an_answer_cut_short_is_reset_for_a_client_that_ended_its_half() {
    let latch = Latch::new();
    let breaks = latch.clone();
    let upstream = Upstream::start(move |connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            breaks.wait();
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/"));
    assert_eq!(client.response_head().expect("a head").status(), 200);
    client.finish_writing();
    assert_eq!(client.read_exactly("5\r\nhello\r\n0".len()), b"5\r\nhello\r\n0", "a digit ahead");
    latch.open();
    assert!(client.read_to_end().is_err(), "no orderly end");
    gateway.wait_in_flight(0);
}

#[test]
fn where_half_closed_clients_are_not_answered_an_end_is_the_end() {
    let upstream = patient();
    let gateway = before(&upstream).set("client.answer_half_closed", "false").start();
    let mut client = gateway.connect();
    client.send(get("/"));
    gateway.wait_in_flight(1);
    client.finish_writing();
    nothing_is_left(&upstream, &gateway);
    assert_eq!(client.read_to_end().expect("an end"), b"");
}

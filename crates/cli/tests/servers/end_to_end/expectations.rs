//! `Expect: 100-continue` is asked of the origin, which may answer before the body is sent (RFC 9110
//! §10.1.1).

use flashweir_testkit::{Connection, Latch, Upstream};

use crate::end_to_end::support::before;

const ASKS_FIRST: &str = "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

#[test]
fn an_origin_that_does_not_want_the_body_answers_before_it_is_sent() {
    let upstream = Upstream::start(|connection: &mut Connection| {
        if connection.read_head().is_some() {
            connection.answer(413, "Connection: close\r\n", "too large");
        }
    });
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(ASKS_FIRST);
    let answer = client.response();
    assert_eq!((answer.status(), answer.field("connection")), (413, Some("close")), "and no 100 before it");
    assert_eq!(answer.text(), "too large");
    assert_eq!(upstream.last_request().field("expect"), Some("100-continue"));
    gateway.wait_metric("flashweir_requests_completed_total", 1.0);
}

#[test]
fn the_client_is_asked_for_the_body_once_the_origin_wants_it() {
    let latch = Latch::new();
    let upstream = {
        let latch = latch.clone();
        Upstream::start(move |connection: &mut Connection| {
            while let Some(mut request) = connection.read_head() {
                connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
                latch.wait();
                connection.send("HTTP/1.1 100 Continue\r\n\r\n");
                if !connection.read_body(&mut request) || !connection.answer(200, "", request.text()) {
                    return;
                }
            }
        })
    };
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(ASKS_FIRST);
    assert_eq!(client.response_head().expect("a hint").status(), 103);
    latch.open();
    assert_eq!(client.response_head().expect("an interim response").status(), 100);
    client.send("hello");
    assert_eq!(client.response().text(), "hello");
    // The connection serves on, and a client that does not wait for 100 is served.
    client.send(format!("{ASKS_FIRST}world"));
    let statuses: Vec<u16> =
        (0..2).map(|_| client.response_head().expect("an interim response").status()).collect();
    assert_eq!(statuses, [103, 100]);
    assert_eq!(client.response().text(), "world");
}

/// Waits for a second: the time that an origin has for its 100.
#[test]
fn an_origin_that_knows_no_expectations_gets_the_body_and_is_not_asked_again() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    for is_asked in [true, false] {
        client.send(ASKS_FIRST);
        assert_eq!(client.response_head().expect("an interim response").status(), 100);
        client.send("hello");
        assert_eq!(client.response().field("x-body-bytes"), Some("5"));
        assert_eq!(upstream.last_request().fields.has("expect"), is_asked);
    }
}

//! Every bound answers, never hangs; every refusal explains itself; a stop loses nothing that was admitted.

use crate::GatewayError;
use crate::tests::serving::common::client::Client;
use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{PATIENCE, Running, eventually};
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;

fn hold(gateway: &Running, origin: &Origin) -> Client {
    let mut holder = gateway.connect();
    holder.send("GET /held HTTP/1.1\r\nhost: a\r\n\r\n");
    origin.next_head();
    holder
}

fn decision(field: &str) -> &str {
    field.split(';').next().expect("an id")
}

#[test]
fn a_full_gateway_refuses_keeps_the_connection_and_explains() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.max_requests_in_flight = 1");
    let mut holder = hold(&gateway, &origin);
    let mut client = gateway.connect();
    client.send("GET /x HTTP/1.1\r\nhost: a\r\naccept: application/json\r\n\r\n");
    let refused = client.response();
    assert_eq!(refused.status, 503);
    assert!(refused.expect_field("retry-after").parse::<u32>().expect("seconds") >= 1);
    let field = refused.expect_field("flashweir-decision");
    assert!(field.ends_with("; reason=requests_in_flight"), "{field}");
    let problem: Value = serde_json::from_slice(&refused.body).expect("problem+json");
    assert_eq!(problem["decision"], decision(&field));

    let (status, text) = gateway.admin(&format!("/explain/{}", decision(&field)));
    let explained: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &explained["reason"]), (200, &Value::from("requests_in_flight")));
    assert_eq!(explained["shadow"], false);
    assert!(explained["text"].as_str().expect("text").contains("max_requests_in_flight"));
    let (_, text) = gateway.admin("/status");
    let status: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(status["binds"], serde_json::json!(["requests_in_flight"]));

    origin.release.send(()).expect("release");
    assert_eq!(holder.response().text(), "released");
    // On the same connection, as soon as there is room.
    eventually("room again", || client.get("/hello").status == 200);
    let sum = |name: &str| gateway.metric(&format!("flashweir_requests_{name}_total"));
    eventually("conservation", || sum("offered") == sum("admitted") + gateway.metric(SHED_IN_FLIGHT));
    assert_eq!(gateway.metric("flashweir_requests_in_flight"), 0.0);
}

const SHED_IN_FLIGHT: &str = "flashweir_requests_shed_total{reason=\"requests_in_flight\"}";

#[test]
fn unknown_and_malformed_decisions_are_told_apart() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    assert_eq!(gateway.admin("/explain/nonsense").0, 400);
    assert_eq!(gateway.admin("/explain/0000000000000").0, 404);
    assert_eq!(gateway.admin("/healthz").0, 200);
    assert_eq!(gateway.admin("/readyz").0, 200);
    assert_eq!(gateway.admin("/nowhere").0, 404);
}

#[test]
fn a_busy_upstream_pool_refuses_instead_of_queueing() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "upstream.max_connections = 1");
    let _holder = hold(&gateway, &origin);
    let refused = gateway.connect().get("/hello");
    assert_eq!(refused.status, 503);
    assert!(refused.expect_field("flashweir-decision").ends_with("; reason=upstream_connections"));
    origin.release.send(()).expect("release");
}

#[test]
fn one_connection_too_many_is_answered_and_closed() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.max_connections = 1");
    let mut first = gateway.connect();
    assert_eq!(first.get("/hello").status, 200);
    let mut second = gateway.connect();
    let refused = second.get("/hello");
    assert_eq!(refused.status, 503);
    assert!(refused.expect_field("flashweir-decision").ends_with("; reason=connections"));
    assert_eq!(refused.expect_field("connection"), "close");
    assert!(second.is_closed());
    assert_eq!(first.get("/hello").status, 200, "those inside notice nothing");
    drop(first);
    eventually("its place is free", || gateway.connect().get("/hello").status == 200);
}

#[test]
fn one_client_cannot_hold_every_connection() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "client.max_connections_per_client = 2");
    let _held = [gateway.connect(), gateway.connect()];
    eventually("both are accepted", || gateway.metric("flashweir_connections_opened_total") >= 2.0);
    let refused = gateway.connect().get("/hello");
    assert_eq!(refused.status, 429);
    assert!(refused.expect_field("flashweir-decision").ends_with("; reason=connections_per_client"));
}

#[test]
fn a_trusted_proxy_speaks_for_many() {
    let origin = Origin::start();
    let more = "client.max_connections_per_client = 1\nclient.trusted_proxies = ['127.0.0.0/8']";
    let gateway = Running::start(origin.address, more);
    let mut connections = [gateway.connect(), gateway.connect(), gateway.connect()];
    assert!(connections.iter_mut().all(|connection| connection.get("/hello").status == 200));
}

#[test]
fn a_refused_upload_gets_its_answer_although_nobody_reads_it() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.max_requests_in_flight = 1");
    let _holder = hold(&gateway, &origin);
    let mut client = gateway.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 150000\r\n\r\n");
    client.send(&"x".repeat(150_000));
    let refused = client.response();
    assert_eq!((refused.status, refused.expect_field("connection").as_str()), (503, "close"));
    assert!(refused.complete);
    // A small body that has arrived does not cost the connection, and one merely announced is not asked for.
    let mut client = gateway.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc");
    assert_eq!((client.response().status, client.get("/x").status), (503, 503));
    let mut client = gateway.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().status, 503, "and no 100 before it");
    origin.release.send(()).expect("release");
}

#[test]
fn responses_are_measured_once_the_client_has_them() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let mut client = gateway.connect();
    for path in ["/hello", "/large", "/failing", "/empty", "/hello"] {
        client.get(path);
    }
    gateway.await_metric("flashweir_responses_measured_total", 3.0);
    assert_eq!(gateway.metric("flashweir_responses_unmeasured_total{kind=\"error\"}"), 1.0);
    assert_eq!(gateway.metric("flashweir_responses_unmeasured_total{kind=\"empty\"}"), 1.0);
    // Another way to know that samples reach the planner.
    eventually("samples are judged", || gateway.metric("flashweir_samples_judged_total") > 0.0);
}

#[test]
fn a_stop_refuses_new_work_and_loses_nothing_admitted() {
    let origin = Origin::start();
    let mut gateway = Running::start(origin.address, "");
    let mut holder = hold(&gateway, &origin);
    let mut idle = gateway.connect();
    assert_eq!(idle.get("/hello").status, 200);
    gateway.stop();
    assert!(idle.is_closed(), "idle connections end at once");
    assert_eq!(gateway.admin("/readyz").0, 503);
    assert_eq!(gateway.admin("/healthz").0, 200);
    let address = gateway.address;
    eventually("the port is closed", || TcpStream::connect(address).is_err());
    origin.release.send(()).expect("release");
    assert_eq!(holder.response().text(), "released");
    assert!(holder.is_closed());
    gateway.outcome().expect("a clean end");
}

#[test]
fn a_stop_that_must_cut_requests_says_how_many() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.drain_timeout = '1s'");
    let _holders = [hold(&gateway, &origin), hold(&gateway, &origin)];
    let error = gateway.outcome().expect_err("cut");
    assert!(matches!(error, GatewayError::RequestsCut { requests: 2 }), "{error}");
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "bounds.write_stall_timeout = '1s'");
    let mut stream = TcpStream::connect(gateway.address).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
    for _ in 0..64 {
        stream.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").expect("send");
    }
    gateway.await_metric("flashweir_connections_failed_total{kind=\"write_stall\"}", 1.0);
}

//! Order of the sentry's queue, and the times at which a slot at the origin is free again. Nothing is known
//! of these origins, so the limit is that of a cold start.

use crate::tests::serving::common::client::Client;
use crate::tests::serving::common::origin::Origin;
use crate::tests::serving::common::{Running, eventually};

/// The limit at a cold start.
const LIMIT: usize = 8;
const HELD: &str = "flashweir_requests_held_total";
const LEFT: &str = "flashweir_requests_left_total";

/// As many clients as the origin is given at once, all with a request there that it holds.
fn fill(gateway: &Running, origin: &Origin, path: &str) -> Vec<Client> {
    let mut clients: Vec<_> = (0..LIMIT).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        origin.next_head();
    }
    clients
}

fn ask(gateway: &Running, path: &str) -> Client {
    let mut client = gateway.connect();
    client.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
    client
}

fn waiting(gateway: &Running) -> f64 {
    gateway.metric("flashweir_class_waiting{service=\"default\",class=\"default\"}")
}

#[test]
fn one_too_many_waits_and_goes_when_a_place_is_free() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "sentry.response_target = '10s'");
    let mut first = fill(&gateway, &origin, "/held");
    let mut waits = ask(&gateway, "/hello");
    gateway.await_metric(HELD, 1.0);
    eventually("the gauge to show who waits", || waiting(&gateway) == 1.0);
    assert!(origin.heads.try_recv().is_err(), "sent although there was no room");
    let (_, status) = gateway.admin("/status");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let sentry = &status["services"][0]["sentry"];
    assert_eq!(
        (sentry["in_flight"].as_u64(), sentry["plan"]["limit"].as_u64()),
        (Some(8), Some(8)),
        "{sentry}"
    );
    let class = &sentry["classes"][0];
    assert_eq!((class["name"].as_str(), class["waiting"].as_u64()), (Some("default"), Some(1)), "{sentry}");
    assert_eq!(class["queue_stands"].as_bool(), Some(false), "{sentry}");
    assert!(class["oldest_waiting_s"].as_f64().is_some_and(|age| age > 0.0 && age < 10.0), "{sentry}");
    origin.release.send(()).expect("release");
    assert_eq!(waits.response().text(), "hello");
    (1..LIMIT).for_each(|_| origin.release.send(()).expect("release"));
    assert!(first.iter_mut().all(|client| client.response().text() == "released"));
    eventually("an empty queue", || waiting(&gateway) == 0.0);
    let offered = gateway.metric("flashweir_class_offered_total{service=\"default\",class=\"default\"}");
    assert_eq!((offered, gateway.metric("flashweir_requests_admitted_total")), (9.0, 9.0));
}

#[test]
fn whoever_leaves_while_waiting_is_taken_out_at_once() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "sentry.response_target = '10s'");
    let _first = fill(&gateway, &origin, "/held");
    let leaves = ask(&gateway, "/never");
    let mut stays = ask(&gateway, "/hello");
    gateway.await_metric(HELD, 2.0);
    drop(leaves);
    gateway.await_metric(LEFT, 1.0);
    eventually("one to wait", || waiting(&gateway) == 1.0);
    origin.release.send(()).expect("release");
    assert_eq!(stays.response().text(), "hello");
    assert!(origin.next_head().starts_with("get /hello"), "the other never reached the origin");
}

#[test]
fn whoever_waits_too_long_is_told_so_with_the_reason_and_the_numbers() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "sentry.response_target = '50ms'");
    let _first = fill(&gateway, &origin, "/held");
    let mut refused = ask(&gateway, "/hello");
    gateway.await_metric(HELD, 1.0);
    // Those that the origin has not answered for four targets give their places back: to these, which came
    // last.
    let _others: Vec<_> = (0..LIMIT).map(|_| ask(&gateway, "/held")).collect();
    let response = refused.response();
    assert_eq!(response.status, 503);
    let field = response.expect_field("flashweir-decision");
    assert!(field.ends_with("; reason=deadline; class=default"), "{field}");
    assert!(response.expect_field("retry-after").parse::<u64>().is_ok_and(|seconds| seconds >= 1));
    assert_eq!(response.field("ratelimit"), None, "a number in flight is no rate");
    let id = field.split(';').next().expect("an id");
    let (status, explained) = gateway.admin(&format!("/explain/{id}"));
    let explained: serde_json::Value = serde_json::from_str(&explained).expect("JSON");
    assert_eq!((status, explained["reason"].as_str()), (200, Some("deadline")));
    let sentry = &explained["sentry"];
    let number = |name: &str| sentry[name].as_u64().unwrap_or_else(|| panic!("a number {name}: {sentry}"));
    assert_eq!(sentry["class"].as_str(), Some("default"), "{sentry}");
    // An origin that answers no request is given fewer: before the others took the places, or after that.
    let (limit, in_flight, waiting) = (number("limit"), number("in_flight"), number("waiting"));
    assert!(
        limit <= in_flight && in_flight + waiting == LIMIT as u64,
        "each of the others is counted: {sentry}"
    );
    assert!(sentry["plan"]["rule"].is_string(), "{sentry}");
    assert_eq!(sentry["oldest_waiting_s"] == 0.0, waiting == 0, "{sentry}");
    // The connection is as good as before.
    (0..8).for_each(|_| origin.release.send(()).expect("release"));
    assert_eq!(refused.get("/again").status, 200);
    let shed = "flashweir_class_shed_total{service=\"default\",class=\"default\",reason=\"deadline\"}";
    assert!((1.0..=1.0 + waiting as f64).contains(&gateway.metric(shed)));
}

#[test]
fn a_place_is_free_when_the_rest_is_no_work_for_the_origin() {
    for (path, head) in [("/socket", "connection: upgrade\r\nupgrade: echo\r\n"), ("/events", "")] {
        let origin = Origin::start();
        let gateway = Running::start(origin.address, "");
        let mut lasting: Vec<Client> = Vec::new();
        for _ in 0..2 * LIMIT {
            let mut client = gateway.connect();
            client.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n{head}\r\n"));
            assert!(
                client.line().is_some_and(|line| line.contains(" 101 ") || line.contains(" 200 ")),
                "{path}"
            );
            lasting.push(client);
        }
        assert_eq!(gateway.connect().get("/hello").text(), "hello");
        assert_eq!(gateway.metric(HELD), 0.0, "{path}");
        assert_eq!(gateway.metric("flashweir_requests_in_flight"), 2.0 * LIMIT as f64, "{path}");
    }
}

#[test]
fn a_client_that_does_not_take_its_response_does_not_keep_its_place() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "sentry.response_target = '10s'");
    let _slow = fill(&gateway, &origin, "/endless");
    // All eight places would be theirs for as long as they like.
    assert_eq!(gateway.connect().get("/hello").text(), "hello");
    assert_eq!(gateway.metric("flashweir_requests_in_flight"), LIMIT as f64, "the responses go on");
}

#[test]
fn in_shadow_uploads_that_stall_are_not_counted_either() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "sentry.shadow = true");
    let in_flight = || {
        let (_, status) = gateway.admin("/status");
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        status["services"][0]["sentry"]["in_flight"].as_u64().expect("a number")
    };
    let mut slow: Vec<Client> = (0..2 * LIMIT).map(|_| gateway.connect()).collect();
    for client in &mut slow {
        // Less than 64 KiB would be waited for before it goes to the origin.
        client.send("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 65540\r\n\r\n");
        client.send(&"s".repeat(65_538));
        origin.next_head();
    }
    eventually("no request at the origin", || in_flight() == 0);
    slow.iter_mut().for_each(|client| client.send("ow"));
    assert!(slow.iter_mut().all(|client| client.response().text().ends_with("sow")));
    eventually("no request left", || in_flight() == 0);
    // How long that took says nothing of the service.
    let unmeasured = gateway.metric("flashweir_responses_unmeasured_total{kind=\"paused\"}");
    assert_eq!(unmeasured, 2.0 * LIMIT as f64);
}

#[test]
fn an_exempt_class_never_waits() {
    let origin = Origin::start();
    let more =
        "sentry.response_target = '10s'\n[[class]]\nname = 'health'\nmatch.path = '/hello'\nexempt = true";
    let gateway = Running::start(origin.address, more);
    let _first = fill(&gateway, &origin, "/held");
    assert_eq!(gateway.connect().get("/hello").text(), "hello");
    assert_eq!(gateway.metric(HELD), 0.0);
    assert_eq!(gateway.metric("flashweir_class_admitted_total{service=\"default\",class=\"health\"}"), 1.0);
}

#[test]
fn what_the_origin_says_of_its_load_is_for_us_alone() {
    let origin = Origin::start();
    let gateway = Running::start(origin.address, "");
    let response = gateway.connect().get("/measured");
    assert_eq!((response.text().as_str(), response.expect_field("x-kept").as_str()), ("ok", "1"));
    assert!(response.field("server-timing").is_some(), "that one is for the client, too");
    assert_eq!(response.field("endpoint-load-metrics"), None);
    assert_eq!(gateway.metric("flashweir_upstream_load_reports_total{outcome=\"used\"}"), 2.0);
    assert_eq!(gateway.metric("flashweir_upstream_reported_utilisation_milli_total"), 500.0);
    let service_time = "flashweir_class_service_time_seconds{service=\"default\",class=\"default\"}";
    eventually("the service time to be known", || gateway.metric(service_time) == 0.0025);
}

#[test]
fn room_at_one_worker_is_room_for_all() {
    let origin = Origin::start();
    let gateway = Running::start_workers(3, origin.address, "sentry.response_target = '10s'");
    let mut clients = fill(&gateway, &origin, "/held");
    clients.extend((0..12).map(|_| ask(&gateway, "/held")));
    gateway.await_metric(HELD, 12.0);
    // One after the other: each place that is given back must find the waiting request, at any worker.
    for _ in 0..12 {
        origin.release.send(()).expect("release");
        origin.next_head();
    }
    (0..LIMIT).for_each(|_| origin.release.send(()).expect("release"));
    assert!(clients.iter_mut().all(|client| client.response().text() == "released"));
    assert_eq!(gateway.metric("flashweir_requests_completed_total"), 20.0);
}

#[test]
fn in_shadow_nobody_waits_and_what_would_have_happened_is_counted() {
    let origin = Origin::start();
    let class = "[[class]]\nname = 'few'\nqueue = 0\nmatch.path = '/held'";
    let gateway = Running::start(origin.address, &format!("sentry.shadow = true\n{class}"));
    let mut clients = fill(&gateway, &origin, "/held");
    clients.push(ask(&gateway, "/held"));
    origin.next_head();
    assert_eq!(gateway.connect().get("/hello").text(), "hello");
    let of = |metric: &str| {
        gateway.metric(&format!("flashweir_class_{metric}{{service=\"default\",class=\"few\"}}"))
    };
    assert_eq!((of("offered_total"), of("admitted_total"), of("shadow_shed_total")), (9.0, 9.0, 1.0));
    assert_eq!((gateway.metric(HELD), gateway.metric("flashweir_requests_shadow_shed_total")), (0.0, 1.0));
    clients.iter().for_each(|_| origin.release.send(()).expect("release"));
    assert!(clients.iter_mut().all(|client| client.response().text() == "released"));
}

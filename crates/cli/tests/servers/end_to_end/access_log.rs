//! The access log: a line for each request, served, refused or abandoned.

use crate::end_to_end::support::{before, binary, get, holding};
use flashweir_testkit::{Client, Gateway, GatewayBuilder, Latch, Upstream, eventually};
use serde_json::Value;
use std::fs;

/// Its access log is `access.log` in its folder.
fn logging(upstream: &Upstream, format: &str) -> GatewayBuilder {
    before(upstream).text("log.access.file", "access.log").text("log.access.format", format)
}

/// The lines, once there are as many.
fn lines(gateway: &Gateway, count: usize) -> Vec<String> {
    let file = gateway.directory().join("access.log");
    eventually(&format!("{count} lines"), || {
        let lines: Vec<String> = fs::read_to_string(&file).ok()?.lines().map(str::to_owned).collect();
        (lines.len() >= count).then_some(lines)
    })
}

fn objects(gateway: &Gateway, count: usize) -> Vec<Value> {
    let lines = lines(gateway, count);
    lines.iter().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

#[test]
fn combined_is_a_line_as_other_servers_write_it() {
    let upstream = Upstream::saying("served");
    let gateway = logging(&upstream, "combined").start();
    let request = "GET /a?b=%22 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: Browser \"1\"\r\nReferer: http://x/\r\n\r\n";
    assert_eq!(gateway.connect().ask(request).text(), "served");
    let line = lines(&gateway, 1).remove(0);
    assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
    let rest = "\"GET /a?b=%22 HTTP/1.1\" 200 6 \"http://x/\" \"Browser \\x221\\x22\"";
    assert!(line.ends_with(rest), "{line}");
}

#[test]
fn json_says_what_was_decided_and_by_whom_it_was_answered() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = logging(&upstream, "json").set("bounds.max_requests_in_flight", "1").start();
    let mut held = gateway.connect();
    held.send(get("/held"));
    gateway.wait_in_flight(1);
    let refused = gateway.get("/refused");
    assert_eq!(refused.status(), 503);
    let decision = refused.field("flashweir-decision").expect("an id").split(';').next().map(str::to_owned);
    latch.open();
    assert_eq!(held.response().text(), "held");
    let lines = objects(&gateway, 2);
    let of = |target: &str| lines.iter().find(|line| line["target"] == target).expect("its line");
    let (held, refused) = (of("/held"), of("/refused"));
    assert_eq!(
        (&held["status"], &held["result"], &held["complete"]),
        (&200.into(), &"forwarded".into(), &true.into())
    );
    assert_eq!((&held["bytes"], &held["class"]), (&4.into(), &"default".into()));
    assert!(held["upstream"].as_str().is_some_and(|url| url.starts_with(&upstream.url())), "{held}");
    let times = ["head_after_s", "total_s"].map(|time| held[time].as_f64().expect("a time"));
    assert!(times[0] > 0.0 && times[1] >= times[0], "{held}");
    assert_eq!((&refused["status"], &refused["result"]), (&503.into(), &"refused".into()));
    assert_eq!(refused["reason"], "requests_in_flight");
    assert_eq!(refused["decision"].as_str().map(str::to_owned), decision);
    assert_eq!(refused["upstream"], Value::Null);
}

#[test]
fn a_client_that_is_gone_before_its_answer_leaves_a_499() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = logging(&upstream, "json").start();
    let mut client = gateway.connect();
    client.send(get("/left"));
    gateway.wait_in_flight(1);
    drop(client);
    let line = objects(&gateway, 1).remove(0);
    assert_eq!(
        (&line["status"], &line["result"], &line["complete"]),
        (&499.into(), &"abandoned".into(), &false.into())
    );
    latch.open();
}

#[test]
fn of_many_refusals_some_have_a_line_and_the_others_are_counted() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = logging(&upstream, "json")
        .set("log.access.refused_per_s", "2")
        .set("gateway.workers", "1")
        .set("fairness.drop_impatient", "false")
        .set("bounds.max_requests_in_flight", "1")
        .start();
    let mut held = gateway.connect();
    held.send(get("/held"));
    gateway.wait_in_flight(1);
    let mut client = gateway.connect();
    for _ in 0..300 {
        assert_eq!(client.ask(&get("/refused")).status(), 503);
    }
    let left_out = "flashweir_access_log_lines_total{outcome=\"left_out\"}";
    let metrics = gateway.metrics();
    let left_out = metrics.value(left_out);
    // Two in each second that it took.
    assert!(left_out >= 200.0, "{left_out}");
    latch.open();
}

#[test]
fn the_last_lines_are_written_before_the_process_ends() {
    let upstream = Upstream::saying("served");
    let gateway = logging(&upstream, "combined").start();
    let mut client = gateway.connect();
    for _ in 0..50 {
        assert_eq!(client.ask(&get("/")).text(), "served");
    }
    drop(client);
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let text = fs::read_to_string(builder.directory().join("access.log")).expect("the access log");
    assert_eq!(text.lines().count(), 50);
}

#[test]
fn a_full_disk_costs_lines_and_no_answers() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).text("log.access.file", "/dev/full").start();
    let mut client = gateway.connect();
    for _ in 0..20 {
        assert_eq!(client.ask(&get("/")).text(), "served");
    }
    eventually("lost lines", || {
        // The count comes with the next lines.
        let _ = Client::get(gateway.address(), "/");
        let lost = gateway.metrics().value("flashweir_access_log_lines_total{outcome=\"lost\"}");
        (lost >= 20.0).then_some(())
    });
    assert!(
        gateway.stderr().contains("access log /dev/full: No space left on device"),
        "{}",
        gateway.stderr()
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let upstream = Upstream::saying("served");
    let finished = before(&upstream).text("log.access.file", "/nowhere/access.log").start_in_vain();
    assert_eq!(finished.code(), Some(64));
    let said = "cannot write the access log /nowhere/access.log (log.access.file): No such file or directory";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
}

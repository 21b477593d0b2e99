//! A candidate of the flash-crowd stage beside the policy in force: it is asked about each request, `/status`
//! and `/metrics` show it, and a reload changes it and takes it away. What it finds in a real crowd is tested
//! in `tests/news/crowd.rs`.

use flashweir_testkit::{Gateway, Upstream, eventually};
use serde_json::{Value, json};

use crate::end_to_end::support::before;

fn candidate(gateway: &Gateway) -> Value {
    gateway.status()["flash_crowd_candidate"].clone()
}

fn compared(live: &str, candidate: &str) -> String {
    format!("flashweir_flash_crowd_candidate_compared_total{{live=\"{live}\",candidate=\"{candidate}\"}}")
}

/// Four requests.
fn ask(gateway: &Gateway) {
    for _ in 0..4 {
        assert_eq!(gateway.get("/").text(), "served");
    }
}

fn check_passed_by_both(gateway: &Gateway, count: u64) {
    let wanted = json!({ "both": count, "live": 0, "candidate": 0, "neither": 0 });
    let shown = || candidate(gateway)["passed_by"].clone();
    eventually("its samples", || (shown()["both"] == count).then_some(()));
    assert_eq!(shown(), wanted);
}

#[test]
fn it_is_compared_with_the_policy_in_force_with_and_without_a_sentry() {
    let upstream = Upstream::saying("served");
    for policing in ["reservation", "off"] {
        let gateway = before(&upstream)
            .text("sentry.policing", policing)
            .text("flash_crowd.candidate.mode", "paper")
            .text("flash_crowd.candidate.interval", "50ms")
            .set("flash_crowd.candidate.margin", "0.25")
            .start();
        ask(&gateway);
        check_passed_by_both(&gateway, 4);
        let shown = candidate(&gateway);
        assert_eq!((&shown["mode"], &shown["margin"]), (&json!("paper"), &json!(0.25)), "{shown}");
        assert_eq!((&shown["interval_s"], &shown["hot_spots"]), (&json!(0.05), &json!(true)), "{shown}");
        assert_eq!((&shown["ceiling_rps"], &shown["plan"]["limit"]["kind"]), (&Value::Null, &json!("open")));
        assert_eq!(shown["verdict"], shown["plan"]["cause"], "{shown}");
        eventually("its own plans", || {
            candidate(&gateway)["plan"]["epoch"].as_u64().filter(|&epoch| epoch > 2)
        });
        let metrics = gateway.metrics();
        assert_eq!(metrics.value(&compared("pass", "pass")), 4.0);
        assert_eq!(metrics.value(&compared("pass", "refuse")), 0.0);
        let cause = "flashweir_flash_crowd_candidate_cause{cause=\"too_few_samples\"}";
        assert_eq!(metrics.value(cause), 1.0, "four responses are too few to judge");
        let said = || gateway.stderr().matches("a candidate of the flash-crowd stage is compared").count();
        eventually("a line", || (said() >= 1).then_some(()));
        assert_eq!(said(), 1, "{}", gateway.stderr());
    }
}

#[test]
fn a_reload_brings_it_changes_it_and_takes_it_away() {
    let upstream = Upstream::saying("served");
    let mut gateway = before(&upstream).start();
    ask(&gateway);
    assert_eq!(candidate(&gateway), Value::Null);
    let is_counted = |line: &str| line.starts_with("flashweir_flash_crowd_candidate_compared_total");
    assert!(!gateway.ask_admin("/metrics").text().lines().any(is_counted));

    gateway.configure(&[("flash_crowd.candidate.margin", Some("0.2"))]);
    gateway.reload();
    eventually("the candidate", || (candidate(&gateway)["margin"] == 0.2).then_some(()));
    gateway.wait_metric("flashweir_flash_crowd_candidate_cause{cause=\"too_few_samples\"}", 1.0);
    ask_until_compared(&gateway);

    // A wrong one is refused with its place, and the one before stays with all that was compared.
    gateway.configure(&[("flash_crowd.candidate.margin", Some("2"))]);
    gateway.reload();
    gateway.wait_metric("flashweir_config_reloads_total{outcome=\"failed\"}", 1.0);
    let wrong = "flash_crowd.candidate.margin: 2 is out of range, expected 0.01 to 0.9";
    eventually("what is wrong", || gateway.stderr().contains(wrong).then_some(()));
    assert_eq!(candidate(&gateway)["margin"], 0.2);
    assert!(candidate(&gateway)["passed_by"]["both"].as_u64() > Some(0));

    gateway.configure(&[("flash_crowd.candidate.margin", Some("0.3"))]);
    gateway.reload();
    eventually("another one", || (candidate(&gateway)["margin"] == 0.3).then_some(()));
    ask_until_compared(&gateway);
    gateway.configure(&[("flash_crowd.candidate.margin", None)]);
    gateway.reload();
    eventually("its end", || (candidate(&gateway) == Value::Null).then_some(()));
    let verdicts = || gateway.metrics().sum("flashweir_flash_crowd_candidate_cause");
    eventually("no verdict of it", || (verdicts() == 0.0).then_some(()));
    let counted = || gateway.metrics().value(&compared("pass", "pass"));
    let before = counted();
    ask(&gateway);
    assert!(before > 0.0 && counted() == before, "{before}, {}", counted());
}

/// The workers take a reload over one by one, so the first requests may come before that.
fn ask_until_compared(gateway: &Gateway) {
    eventually("a request compared", || {
        ask(gateway);
        candidate(gateway)["passed_by"]["both"].as_u64().filter(|&both| both > 0)
    });
}

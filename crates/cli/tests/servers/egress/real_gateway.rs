//! Goal: a real gateway, overloaded, asks the sidecar for less, and the sidecar refuses what the gateway else
//! would have to. Method: an origin that does real work, the gateway before it, the sidecar before that, and
//! a crowd of at least 2.25 times what the origin can do.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `ladder_and_sentry_together_are_as_useful_as_the_sentry_alone`.

use crate::egress::scene::{Egress, binary};
use flashweir_testkit::{GatewayBuilder, Load, Origin, eventually, skip};
use std::time::Duration;
use tempfile::TempDir;

/// Work of each request: the one server of the origin completes 200 a second at most, which leaves room for
/// all other processes on two cores.
const WORK_MS: f64 = 5.0;
const KEY: &str = "1 correct-horse-battery-staple\n";
/// The crowd over that, as in the Intel study. What the origin can do in a busy moment before the crowd says
/// little about the time of the crowd.
const CROWD: f64 = 2.25;
/// The crowd takes a quarter of a minute; the rest is for a machine that is slow.
const WITHIN: Duration = Duration::from_secs(120);
/// Of what the crowd asked for, the part that may be refused at the gateway. It is below 1 % unless the
/// machine keeps the origin from its work.
const REFUSED_AT_NODE_MAX: f64 = 0.1;

/// Returns whether this build's gateway asks the nodes in front of it for less.
fn gateway_gives_feedback() -> bool {
    let directory = TempDir::new().expect("a directory");
    let config = "upstream.urls = [\"http://127.0.0.1:1\"]\nfeedback.enabled = true\n";
    std::fs::write(directory.path().join("flashweir.toml"), config).expect("a writable directory");
    binary().run_in(directory.path(), WITHIN, ["config", "check", "flashweir.toml"]).code() == Some(0)
}

#[test]
#[ignore = "real load: make test-load"]
fn an_overloaded_gateway_asks_the_sidecar_for_less_under_load() {
    if !gateway_gives_feedback() {
        return skip("the sidecar before a real gateway", "this gateway has no [feedback]");
    }
    let origin = Origin::start(&binary(), WORK_MS);
    let builder = GatewayBuilder::new(&binary()).upstream(&origin.url()).text("gateway.name", "node");
    std::fs::write(builder.directory().join("feedback.keys"), KEY).expect("a writable directory");
    let builder = builder.text("feedback.keys_file", "feedback.keys");
    let node = builder.set("feedback.senders", "[\"127.0.0.0/8\"]").start();
    let egress = Egress::start(&[format!("http://{}", node.address())], "node = \"node\"");
    egress.write_keys(KEY);
    eventually("the gateway's key", || egress.stderr().contains("keys read again").then_some(()));
    let rate = format!("{:.1}", CROWD * 1_000.0 / WORK_MS);
    let url = format!("http://{}/work", egress.address);
    let result = Load::start(&binary(), &url, &["--rate", &rate, "--duration", "12s"]).finish(WITHIN);
    let offered = result["totals"]["offered"].as_f64().or(result["offered"].as_f64()).expect("a count");
    let refused_at_node = node.metrics().sum("flashweir_requests_shed_total");
    let metrics = egress.metrics();
    let refused_here = metrics.value("flashweir_egress_refused_total{target=\"api\",reason=\"limit\"}");
    let summary = format!(
        "offered {offered}, refused by the gateway {refused_at_node}, here {refused_here}: {}",
        egress.node()
    );
    println!("{summary}");
    assert!(
        metrics.value("flashweir_egress_feedback_total{target=\"api\",outcome=\"new\"}") > 0.0,
        "{summary}"
    );
    for bad in ["forged", "untagged", "unknown_key", "syntax", "length"] {
        assert_eq!(egress.feedback(bad), 0, "{bad}: {summary}");
    }
    assert!(refused_here > 0.0, "{summary}");
    assert!(refused_at_node <= REFUSED_AT_NODE_MAX * offered, "{summary}");
}

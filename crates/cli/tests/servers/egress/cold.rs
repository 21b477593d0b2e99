//! Goal: how many requests a gateway refuses that knows nothing of its origin when a crowd comes which
//! listens. Method: an origin that is bound by the processor, and one that waits; a gateway and a sidecar
//! that have just started; 2.25 times what the origin can do, for a minute. Needs a machine that does nothing
//! else and a release build: docs/feedback.md has the command.

use crate::egress::scene::{Egress, KEY, binary};
use flashweir_testkit::{GatewayBuilder, Load, Origin};
use std::time::{Duration, Instant};

const CROWD: f64 = 2.25;
const CROWD_S: u64 = 60;
const WITHIN: Duration = Duration::from_secs(180);
/// Of all that was offered.
const REFUSED_AT_NODE_MAX: f64 = 0.01;
/// Between two readings of what the gateway refused.
const READ_EVERY: Duration = Duration::from_millis(500);

fn refused_part(origin: &[&str], seed: u64) -> f64 {
    let origin = Origin::start_with(&binary(), origin);
    let builder = GatewayBuilder::new(&binary()).upstream(&origin.url()).text("gateway.name", "node");
    std::fs::write(builder.directory().join("feedback.keys"), format!("{KEY}\n")).expect("a directory");
    let builder = builder.text("feedback.keys_file", "feedback.keys");
    let capacity_rps = origin.measure_capacity();
    let node = builder.set("feedback.senders", "[\"127.0.0.0/8\"]").start();
    let egress = Egress::start(&[format!("http://{}", node.address())], "node = \"node\"");
    let url = format!("http://{}/work", egress.address);
    let (rate, length) = (format!("{:.1}", CROWD * capacity_rps), format!("{CROWD_S}s"));
    let arguments = ["--rate", &rate, "--duration", &length, "--seed", &seed.to_string()];
    let (begun, crowd) = (Instant::now(), Load::start(&binary(), &url, &arguments));
    let (mut refused, mut when) = (0.0, Vec::new());
    while begun.elapsed() < Duration::from_secs(CROWD_S) {
        std::thread::park_timeout(READ_EVERY);
        let now = node.metrics().sum("flashweir_requests_shed_total");
        if now > refused {
            when.push(format!("{:.1} s: {}", begun.elapsed().as_secs_f64(), now - refused));
            refused = now;
        }
    }
    let result = crowd.finish(WITHIN);
    let refused = node.metrics().sum("flashweir_requests_shed_total");
    let totals = &result["totals"];
    let [offered, goodput] = ["offered", "goodput"].map(|name| totals[name].as_f64().expect("a count"));
    println!(
        "seed {seed}, capacity {capacity_rps:.0}/s, offered {offered}, of the capacity in time {:.2}, refused by the gateway {refused} \
         ({:.2} %): {}",
        goodput / capacity_rps / CROWD_S as f64,
        100.0 * refused / offered,
        when.join(", ")
    );
    refused / offered
}

#[test]
#[ignore = "minutes on a quiet machine, in a release build"]
fn a_cold_node_refuses_little() {
    const BOUND_BY_PROCESSOR: &[&str] = &["--workers", "1", "--work-ms", "5"];
    const WAITS: &[&str] = &["--workers", "1", "--work-ms", "0.01", "--wait-ms", "5"];
    let worst = [(BOUND_BY_PROCESSOR, 1), (BOUND_BY_PROCESSOR, 2), (WAITS, 3)]
        .into_iter()
        .map(|(origin, seed)| refused_part(origin, seed))
        .fold(0.0, f64::max);
    assert!(worst <= REFUSED_AT_NODE_MAX, "{worst:.4}");
}

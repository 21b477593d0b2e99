//! Goal: a restart of either end in the middle of a crowd brings no overload back for long, and no limit of
//! an earlier run stays. Method: a crowd of 2.25 times what an origin can do, through the sidecar and a
//! gateway; the gateway is killed and starts again, then the sidecar.
//!
//! Twin in virtual time of the tests under load: `sim`, `three_seconds_after_the_load_no_sender_is_limited`.

use crate::egress::scene::{Egress, KEY, binary};
use flashweir_testkit::{GatewayBuilder, Load, Origin, eventually, reserve_address};
use std::time::{Duration, Instant};

/// An origin that waits: a busy machine hardly changes what it can do.
const WAITS: [&str; 6] = ["--workers", "1", "--work-ms", "0.01", "--wait-ms", "5"];
/// A capacity of nearly 200 a second, and a crowd of 2.25 times that.
const CROWD_RPS: &str = "430";
const WITHIN: Duration = Duration::from_secs(120);
/// Of what came to the gateway after its restart, the part that it may refuse. On a quiet machine 1 to 3 %:
/// it comes to know its origin twice.
const REFUSED_MAX: f64 = 0.25;

#[test]
#[ignore = "real load: make test-load"]
fn a_restart_of_either_end_in_mid_crowd_brings_no_overload_back_under_load() {
    let origin = Origin::start_with(&binary(), &WAITS);
    let builder = GatewayBuilder::new(&binary()).upstream(&origin.url()).text("gateway.name", "api");
    std::fs::write(builder.directory().join("feedback.keys"), format!("{KEY}\n")).expect("a directory");
    let builder =
        builder.text("feedback.keys_file", "feedback.keys").set("feedback.senders", "[\"127.0.0.0/8\"]");
    let node = builder.start();
    let (address, admin) = (reserve_address(), reserve_address());
    let config = format!(
        "name = \"shop\"\nadmin = \"{admin}\"\n[[listen]]\naddress = \"{address}\"\ntarget = \"api\"\n\
         [[target]]\nname = \"api\"\nurls = [\"http://{}\"]\nkey_file = \"api.keys\"\nretry = {{ attempts = 1 }}\n",
        node.address()
    );
    let egress = Egress::start_config(&config, address, admin);
    let url = format!("http://{address}/work");
    let crowd = Load::start(&binary(), &url, &["--rate", CROWD_RPS, "--duration", "16s"]);
    egress.until_condition("limited");

    // Its epoch is the second in which it starts, and a crowd is under way for longer than that.
    let begun = Instant::now();
    eventually("a later second", || (begun.elapsed() >= Duration::from_millis(1_100)).then_some(()));
    let news = egress.feedback("new");
    let (_, builder) = node.crash(&binary());
    let node = builder.start();
    eventually("news of the gateway's second run", || (egress.feedback("new") > news + 5).then_some(()));
    egress.until_condition("limited");
    for bad in ["forged", "untagged", "unknown_key", "syntax", "absurd"] {
        assert_eq!(egress.feedback(bad), 0, "{bad}");
    }

    // A sidecar that starts in the crowd hears with its first answers what is asked.
    assert!(egress.stop().status.success());
    let egress = Egress::start_config(&config, address, admin);
    egress.until_condition("limited");
    assert_eq!(egress.feedback("forged"), 0);
    let result = crowd.finish(WITHIN);
    let metrics = node.metrics();
    let (came, refused) =
        (metrics.sum("flashweir_requests_offered_total"), metrics.sum("flashweir_requests_shed_total"));
    let series = result["series"].as_array().expect("a series");
    let good: u64 = series.iter().rev().take(4).filter_map(|second| second["goodput"].as_u64()).sum();
    println!(
        "after its restart {came} requests came to the gateway, of which it refused {refused}; {good} in time in the last 4 s"
    );
    assert!(refused <= REFUSED_MAX * came, "{refused} of {came} refused: {}", egress.node());
    assert!(good > 0, "{result}");
}

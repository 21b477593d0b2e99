//! Goal: where a user request needs several calls to an overloaded service, work is not begun that is refused
//! deeper. Method: a crowd of twice what the origin can do comes to a front end that makes 1, 2 or 3 calls
//! for each user request, one after the other, through three gateways in a row. Without coordination the
//! front end calls the first gateway itself and no gateway asks another for less; with it, the front end
//! calls through the sidecar, which refuses user requests at their first call or not at all. Each call has a
//! second, the gateways' target, and a user request one for each of its calls. An oracle completes as many
//! user requests as the origin has room for calls. `cargo test -p flashweir-cli --test servers chain --
//! --nocapture` prints the numbers.
//!
//! Twin in virtual time of the tests under load: `sim`, `what_is_begun_is_finished`.

use crate::egress::scene::{Egress, KEY, binary};
use flashweir_testkit::{Client, Connection, Gateway, GatewayBuilder, Load, Origin, Upstream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each call holds the origin for 10 ms without work: a capacity of some 100 a second that other programs on
/// the machine hardly change.
const WAITS: [&str; 6] = ["--workers", "1", "--work-ms", "0.01", "--wait-ms", "10"];
/// Calls that are offered, over what the origin can do.
const OVERLOAD: f64 = 2.0;
const LENGTH_S: f64 = 14.0;
/// From this second on a crowd is judged: each gateway has met its origin by then.
const JUDGED_FROM_S: u64 = 4;
const WITHIN: Duration = Duration::from_secs(120);
/// Of what the oracle completes, with coordination. A machine ten times slower and busy holds this; what is
/// measured on an idle one is printed.
const OF_ORACLE_MIN: f64 = 0.5;

/// Result of a crowd.
#[derive(Debug)]
struct Run {
    /// Completed within the target, of what the oracle completes.
    of_oracle: f64,
    /// Calls that the node refused, of those that came to the first hop.
    refused_at_node: f64,
}

/// Answers a user request with 200 when all its calls were, else with 503.
fn front_end(calls: usize, to: SocketAddr) -> Upstream {
    let traces = Arc::new(AtomicU64::new(1));
    Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            let trace = traces.fetch_add(1, Ordering::Relaxed);
            let status = if (0..calls).all(|_| call(to, trace)) { 200 } else { 503 };
            if !connection.answer(status, "", "") {
                return;
            }
        }
    })
}

fn call(to: SocketAddr, trace: u64) -> bool {
    let request = format!(
        "GET /work HTTP/1.1\r\nHost: api\r\nFlashweir-Deadline: 1000\r\ntraceparent: 00-{trace:032x}-{trace:016x}-01\r\n\
         Connection: close\r\n\r\n"
    );
    let Ok(mut client) = Client::try_connect(to) else { return false };
    client.try_send(request).is_ok() && client.try_response().is_ok_and(|response| response.status() == 200)
}

/// A gateway, which asks the one before it for less if that is to be so.
fn gateway(name: &str, before: &str, before_name: Option<&str>, coordinates: bool) -> Gateway {
    let builder = GatewayBuilder::new(&binary()).upstream(before).text("gateway.name", name);
    if !coordinates {
        return builder.set("feedback.enabled", "false").start();
    }
    std::fs::write(builder.directory().join("feedback.keys"), format!("{KEY}\n"))
        .expect("a writable directory");
    let builder =
        builder.text("feedback.keys_file", "feedback.keys").set("feedback.senders", "[\"127.0.0.0/8\"]");
    match before_name {
        Some(node) => builder.set("feedback.upstream_names", &format!("{{ {name} = \"{node}\" }}")).start(),
        None => builder.start(),
    }
}

fn run(calls: usize, coordinates: bool) -> Run {
    let origin = Origin::start_with(&binary(), &WAITS);
    let capacity_rps = origin.measure_capacity();
    let node = gateway("node", &origin.url(), None, coordinates);
    let middle = gateway("middle", &format!("http://{}", node.address()), Some("node"), coordinates);
    let edge = gateway("edge", &format!("http://{}", middle.address()), Some("middle"), coordinates);
    let egress = coordinates
        .then(|| Egress::start(&[format!("http://{}", edge.address())], "node = \"edge\"\nwait_ms = 200"));
    let front_end = front_end(calls, egress.as_ref().map_or(edge.address(), |egress| egress.address));
    let oracle_rps = capacity_rps / calls as f64;
    let rate = format!("{:.1}", OVERLOAD * oracle_rps);
    let (length, target, timeout) = (format!("{LENGTH_S}s"), format!("{calls}s"), format!("{}s", 3 * calls));
    let arguments = ["--rate", &rate, "--duration", &length, "--target", &target, "--timeout", &timeout];
    let result = Load::start(&binary(), &format!("{}/", front_end.url()), &arguments).finish(WITHIN);
    let judged = JUDGED_FROM_S..LENGTH_S as u64;
    let series = result["series"].as_array().expect("a series");
    let good: u64 = series
        .iter()
        .filter(|second| second["second"].as_u64().is_some_and(|at| judged.contains(&at)))
        .filter_map(|second| second["goodput"].as_u64())
        .sum();
    let good_rps = good as f64 / (judged.end - judged.start) as f64;
    let offered_calls = match &egress {
        Some(egress) => egress.metrics().sum("flashweir_egress_requests_total"),
        None => edge.metrics().sum("flashweir_requests_offered_total"),
    };
    let refused = [&edge, &middle, &node].map(|it| it.metrics().sum("flashweir_requests_shed_total"));
    let run = Run { of_oracle: good_rps / oracle_rps, refused_at_node: refused[2] / offered_calls.max(1.0) };
    println!(
        "{calls} calls, {}: capacity {capacity_rps:.0}/s, {good_rps:.1} user requests/s in time, {:.3} of the oracle's, 99 % of those \
         completed within {} ms; {offered_calls} calls, refused by edge, middle and node {refused:?}",
        if coordinates { "with coordination" } else { "without" },
        run.of_oracle,
        result["latency_ms"]["p99"],
    );
    if let Some(egress) = &egress {
        println!("  sidecar: {}", egress.node());
        println!("  node: {}", node.status()["services"][0]["feedback"]);
    }
    run
}

#[test]
#[ignore = "real load: make test-load"]
fn a_chain_completes_user_requests_of_several_calls_under_load() {
    for calls in [1, 2, 3] {
        // Beside each other: the origins wait, so that neither takes the other's time, and both have the same
        // machine.
        let [without, with] = std::thread::scope(|scope| {
            [false, true]
                .map(|coordinates| scope.spawn(move || run(calls, coordinates)))
                .map(|run| run.join().expect("a run"))
        });
        assert!(with.of_oracle >= OF_ORACLE_MIN, "{with:?}, {without:?}");
        if calls > 1 {
            assert!(with.of_oracle > without.of_oracle, "{with:?}, {without:?}");
        }
        assert!(with.refused_at_node < without.refused_at_node.max(0.05), "{with:?}, {without:?}");
    }
}

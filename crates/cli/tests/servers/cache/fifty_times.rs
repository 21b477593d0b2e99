//! One page at fifty times what its server can do. The bars leave room for a busy machine; `flashweir
//! demo-hot` measures the same with a server that works instead of waiting.
//!
//! Twin in virtual time of the tests under load: `cache`,
//! `the_host_that_has_the_rise_is_opened_at_once_and_its_neighbour_is_not`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flashweir_testkit::{GatewayBuilder, Load, Upstream};
use serde_json::Value;

use crate::cache::scene::binary;

/// The server answers four requests at a time, ten a second.
const TAKES: Duration = Duration::from_millis(400);
const CONNECTIONS: &str = "4";
const CAPACITY_RPS: f64 = 10.0;
const CROWD_RPS: &str = "500";
const CROWD_S: f64 = 8.0;
/// Rate of other requests meanwhile.
const OTHERS_RPS: &str = "3";

/// A server that takes its time, and the number of requests for the page.
fn slow(fields: &'static str) -> (Upstream, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let upstream = Upstream::start(move |connection| {
        while let Some(request) = connection.read_request() {
            let is_hot = request.start.contains("/page");
            counted.fetch_add(usize::from(is_hot), Ordering::SeqCst);
            std::thread::park_timeout(TAKES);
            if !connection.answer(200, if is_hot { fields } else { "" }, "slow") {
                return;
            }
        }
    });
    (upstream, count)
}

fn gateway(upstream: &Upstream, mode: &str) -> GatewayBuilder {
    GatewayBuilder::new(&binary())
        .upstream(&upstream.url())
        .set("upstream.max_connections", CONNECTIONS)
        .text("cache.mode", mode)
        .set("gateway.workers", "1")
}

/// The crowd and the others; their results.
fn send(gateway: &flashweir_testkit::Gateway) -> [Value; 2] {
    let start = |path: &str, rate: &str, host: &str| {
        let url = format!("http://{}{path}", gateway.address());
        let host = format!("Host: {host}");
        let duration = format!("{CROWD_S}s");
        let arguments =
            ["--rate", rate, "--duration", &duration, "--sources", "500", "--seed", "50", "--header", &host];
        Load::start(&binary(), &url, &arguments)
    };
    let loads = [start("/page", CROWD_RPS, "hot.example"), start("/other", OTHERS_RPS, "calm.example")];
    loads.map(|load| load.finish(Duration::from_secs(60)))
}

fn in_time(result: &Value) -> (f64, f64) {
    let count = |name: &str| result[name].as_f64().expect("a count");
    (count("goodput"), count("offered"))
}

#[test]
#[ignore = "real load: make test-load"]
fn a_cacheable_page_is_answered_and_its_server_hardly_asked_under_load() {
    let (upstream, fetches) = slow("Cache-Control: max-age=2\r\n");
    let gateway = gateway(&upstream, "always").start();
    let [crowd, others] = send(&gateway);
    let (good, offered) = in_time(&crowd);
    assert!(offered > 40.0 * CAPACITY_RPS * CROWD_S, "{offered}");
    assert!(good >= 0.99 * offered, "{good} of {offered} in time; refused: {}", crowd["refused_by_reason"]);
    // Every two seconds once.
    let fetches = fetches.load(Ordering::SeqCst) as f64;
    assert!(fetches <= 2.0 * CROWD_S, "{fetches} fetches in {CROWD_S} s");
    println!("{good} of {offered} in time, {fetches} fetches in {CROWD_S} s");
    let (good, offered) = in_time(&others);
    println!("others: {good} of {offered} in time");
    assert!(
        good >= 0.8 * offered,
        "{good} of {offered} others in time; refused: {}",
        others["refused_by_reason"]
    );
}

#[test]
#[ignore = "real load: make test-load"]
fn a_grace_serves_five_times_what_the_server_can_under_load() {
    check_grace("crowd");
}

/// No request is refused here, as copies answer from the beginning: the crowd is seen by those.
#[test]
#[ignore = "real load: make test-load"]
fn so_it_does_where_the_cache_is_always_in_use_under_load() {
    check_grace("always");
}

fn check_grace(mode: &str) {
    let (upstream, fetches) = slow("");
    let classes = "[{ name = \"hot\", grace = \"2s\", match = { path = \"/page\" } }, { name = \"others\" }]";
    let gateway = gateway(&upstream, mode).set("class", classes).start();
    let [crowd, others] = send(&gateway);
    let (good, offered) = in_time(&crowd);
    let fetches = fetches.load(Ordering::SeqCst) as f64;
    println!("with a grace {good} of {offered}, {:.1} times the capacity", good / CROWD_S / CAPACITY_RPS);
    println!("others: {:?} in time; {fetches} for the page at the server", in_time(&others));
    assert!(
        good >= 5.0 * CAPACITY_RPS * CROWD_S,
        "{good} of {offered} in time; refused: {}",
        crowd["refused_by_reason"]
    );
    // The page leaves the others their room; in the first seconds it is all over the server.
    assert!(fetches <= 0.4 * CAPACITY_RPS * CROWD_S, "{fetches} fetches in {CROWD_S} s");
}

//! Opened by a crowd, for the host to which it came, and closed when the crowd has gone.
//!
//! Twin in virtual time of the tests under load: `cache`,
//! `it_stays_open_while_the_cache_answers_the_crowd_and_closes_when_that_goes`.

use std::time::Duration;

use flashweir_testkit::{GatewayBuilder, Load, Message, Upstream, eventually, until};

use crate::cache::scene::{binary, cache_status, get};

/// Time of the server for an answer; with two connections it answers some 100 a second.
const TAKES: Duration = Duration::from_millis(20);

fn slow(fields: &'static str) -> Upstream {
    Upstream::start(move |connection| {
        while connection.read_request().is_some() {
            std::thread::park_timeout(TAKES);
            if !connection.answer(200, fields, "slow") {
                return;
            }
        }
    })
}

/// A gateway whose server takes two requests at a time; what is more is refused.
fn crowded(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&binary())
        .upstream(&upstream.url())
        .set("gateway.workers", "1")
        .set("upstream.max_connections", "2")
        .text("sentry.policing", "off")
        .text("cache.mode", "crowd")
}

fn ask(gateway: &flashweir_testkit::Gateway, host: &str) -> Message {
    gateway.connect().ask(&format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
#[ignore = "real load: make test-load"]
fn a_crowd_opens_it_for_its_host_alone_and_its_end_closes_it_under_load() {
    let upstream = slow("Cache-Control: max-age=60\r\n");
    let gateway = crowded(&upstream).start();
    for host in ["crowded.example", "calm.example"] {
        assert_eq!(ask(&gateway, host).field("cache-status"), None, "closed in calm");
    }
    let url = format!("http://{}/page", gateway.address());
    let arguments = [
        "--rate",
        "600",
        "--duration",
        "10s",
        "--sources",
        "500",
        "--seed",
        "1",
        "--header",
        "Host: crowded.example",
    ];
    let crowd = Load::start(&binary(), &url, &arguments);
    until("the cache to open", Duration::from_secs(20), || {
        (gateway.metrics().value("flashweir_cache_open_hosts") == 1.0).then_some(())
    });
    let answer = eventually("a copy", || {
        let answer = ask(&gateway, "crowded.example");
        (cache_status(&answer) == "flashweir; hit").then_some(answer)
    });
    assert_eq!((answer.status(), answer.text().as_str()), (200, "slow"));
    let before = upstream.request_count();
    let calm = ask(&gateway, "calm.example");
    assert_eq!((calm.status(), calm.field("cache-status")), (200, None), "the neighbour's stays closed");
    let status = gateway.status();
    let host = &status["cache"]["open_hosts"][0];
    assert!(host["demand_rps"].as_f64().is_some_and(|rate| rate > 100.0), "{status}");
    let result = crowd.finish(Duration::from_secs(60));
    let (offered, goodput) =
        (result["offered"].as_u64().expect("a count"), result["goodput"].as_u64().expect("a count"));
    assert!(offered > 3_000 && goodput * 10 >= offered * 7, "{result}");
    assert!(
        upstream.request_count() - before < 100,
        "the origin was asked {} times",
        upstream.request_count()
    );
    until("the cache to close", Duration::from_secs(60), || {
        (gateway.metrics().value("flashweir_cache_open_hosts") == 0.0).then_some(())
    });
    eventually("what was stored to go", || (gateway.status()["cache"]["used_bytes"] == 0).then_some(()));
    assert_eq!(ask(&gateway, "crowded.example").field("cache-status"), None);
}

#[test]
#[ignore = "real load: make test-load"]
fn in_a_crowd_a_grace_multiplies_what_an_origin_can_do_under_load() {
    let upstream = slow("");
    let gateway = crowded(&upstream).set("class", "[{ name = \"pages\", grace = \"2s\" }]").start();
    let url = format!("http://{}/page", gateway.address());
    let arguments = ["--rate", "600", "--duration", "10s", "--sources", "500", "--seed", "1"];
    let result = Load::start(&binary(), &url, &arguments).finish(Duration::from_secs(60));
    let (offered, goodput) =
        (result["offered"].as_u64().expect("a count"), result["goodput"].as_u64().expect("a count"));
    // The origin alone can do a sixth of it.
    assert!(offered > 3_000 && goodput * 10 >= offered * 7, "{result}");
    let metrics = gateway.metrics();
    let graced = metrics.value("flashweir_cache_answers_total{how=\"grace\"}");
    assert!(graced * 2.0 > offered as f64, "{graced} of {offered}");
    // Half of what it could do: once the crowd is noticed its room is left to others, but for a new copy a
    // second.
    let asked = upstream.request_count();
    println!("{asked} requests at the origin");
    assert!(asked < 500, "{asked} requests at the origin");
    assert!(gateway.status()["cache"]["refreshes"].as_u64() >= Some(1));
    let with_cookie = get(&mut gateway.connect(), "/page", "Cookie: id=1\r\n");
    assert_ne!(cache_status(&with_cookie), "flashweir; hit; detail=grace");
}

//! A crowd at one of two servers behind a narrow link: found by the responses it slows down, kept out in the
//! kernel, and forgotten when it is over.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `a_router_before_a_queue_that_is_first_come_first_served_keeps_it_useful`.

use std::time::{Duration, Instant};

use flashweir_testkit::{Signal, TokenBucket, until};
use serde_json::Value;

use crate::router::scene::Scene;

/// With their headers some 85 kbit: the link carries about 47 a second.
const PAGE_BYTES: usize = 10_000;
const LINK: TokenBucket = TokenBucket { rate_bits_per_s: 4_000_000, burst_bytes: 3_000, limit_bytes: 65_536 };
/// Fifteen a second; ten times as many from the fourth second to the tenth.
const CROWD: [&str; 8] = ["--rate", "15", "--step", "150@4s", "--step", "15@10s", "--duration", "40s"];
const BYSTANDERS: [&str; 4] = ["--rate", "4", "--duration", "40s"];
/// A busy machine may take longer than the crowd does; then nothing can be seen.
const WITHIN: Duration = Duration::from_secs(25);

#[test]
#[ignore = "real load: make test-load"]
fn a_crowd_is_kept_out_in_the_kernel_and_bystanders_are_let_in_under_load() {
    let Some(scene) = Scene::require("a crowd at a router", PAGE_BYTES) else { return };
    scene.narrow(LINK);
    let router = scene.start("refusal = 'answer'\n[log]\nlevel = 'info'");
    let begun = Instant::now();
    let (crowd, _bystanders) = (scene.load(8080, &CROWD), scene.load(8081, &BYSTANDERS));

    let wait_for = |what: &str, is_so: fn(&Value) -> bool| {
        until(what, WITHIN, || {
            let status = scene.status();
            check_sums(&status);
            is_so(&status).then_some((status, begun.elapsed()))
        })
    };
    let (_, alarmed) = wait_for("an alarm", |status| status["mode"] == "alarm");
    let (limited, _) = wait_for("refusals", |status| status["places"][0]["refused"].as_u64() > Some(100));
    let explained: Value = scene.ask("/explain").json();
    let (released, released_at) = wait_for("the release", |status| {
        status["mode"] == "normal" && status["plan"]["limit"]["kind"] == "open"
    });
    println!("alarm after {alarmed:.1?} (crowd at 4 s), release after {released_at:.1?} (end at 10 s)");

    // The crowd is at the first place; while it is there no client of the second is refused.
    assert!(alarmed >= Duration::from_secs(4), "an alarm before the crowd: {alarmed:?}\n{}", router.stderr());
    assert!(limited["ceiling_per_s"].as_f64() > Some(0.0), "{limited}");
    assert_eq!(limited["plan"]["limit"]["kind"], "hot_spots", "{limited}");
    assert_eq!(limited["places"][1]["refused"], 0, "{limited}");
    assert!(explained["text"].as_str().is_some_and(|text| text.contains("refused, because")), "{explained}");
    let refused = released["places"][0]["refused"].as_u64().expect("a count");
    let metrics = scene.metrics();
    let answered =
        metrics.value("flashweir_kernel_connections_refused_total{service=\"server_0\",how=\"answered\"}");
    assert!(answered >= refused as f64, "{answered} of {refused}");
    assert!(metrics.value("flashweir_kernel_flows_begun_total") > 100.0);
    let left_out =
        ["flows", "attempts"].map(|what| metrics.value(&format!("flashweir_kernel_{what}_left_out_total")));
    assert_eq!(left_out, [0.0, 0.0], "there is room for all of them");
    assert_eq!(
        (&released["flows"]["left_out"], &released["destinations"]["attempts_left_out"]),
        (&0.into(), &0.into()),
        "{released}"
    );

    crowd.signal(Signal::Interrupt);
    let crowd = crowd.finish(Duration::from_secs(20));
    let crowd: Value =
        serde_json::from_str(&crowd.stdout).unwrap_or_else(|error| panic!("{error}: {crowd:?}"));
    assert!(crowd["refused"].as_u64() > Some(0), "the kernel's 503 was not understood: {crowd}");

    let finished = router.end(Signal::Terminate);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains("a flash crowd: admission has a ceiling now"), "{}", finished.stderr);
    assert!(!scene.is_guarded());
    assert_eq!(scene.get(8080).status(), 200);
}

/// Every arrival was either admitted or refused.
fn check_sums(status: &Value) {
    let count =
        |what: &str| status["connections"][what].as_u64().unwrap_or_else(|| panic!("no {what}: {status}"));
    assert_eq!(count("offered"), count("admitted") + count("refused"), "{status}");
}

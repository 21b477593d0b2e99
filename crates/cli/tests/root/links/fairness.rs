//! Ten TCP flows and one that sends 9 Mb/s of UDP share 10 Mb/s.
//!
//! Twin in virtual time of the tests under load: `aqm`, `a_flow_over_its_share_is_cut_to_it`.

use std::time::Duration;

use flashweir_testkit::{Metrics, Signal, eventually};

use crate::links::scene::{RECEIVERS, ROUTER, Scene, Shares, Source};

const FLOOD: Source = Source::Udp(9_000_000);
const SETTLE: Duration = Duration::from_secs(6);
/// Long beside a timeout of TCP, which costs a flow a second.
const MEASURE: Duration = Duration::from_secs(30);

/// Goal: each flow gets its share, for any rate that it sends; without the classifier the flood takes nearly
/// all. Method: such flows through the same queue, as it is and divided.
#[test]
#[ignore = "real load: make test-load"]
fn a_flood_gets_its_share_and_no_more_under_load() {
    let test = "fair shares of a link";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let start = || -> Vec<_> {
        let mut flows: Vec<_> = [Source::Tcp; 10].into_iter().map(|source| scene.start(source)).collect();
        flows.insert(0, scene.start(FLOOD));
        flows
    };
    let flows = start();
    let before = Shares::measure(&flows, Duration::from_secs(2), Duration::from_secs(5));
    assert!(before.goodput[0] > 6e6, "the flood has no effect: {before:?}");
    assert!(before.jain() < 0.5, "{before:?}");

    // Others in their place: a connection that the flood has starved waits for many seconds before it tries
    // again.
    drop(flows);

    let Some(router) = scene.divide(test, &[]) else { return };
    let flows = start();
    let shares = Shares::measure(&flows, SETTLE, MEASURE);
    let link = scene.link();
    assert!(shares.jain() >= 0.95, "Jain's index {:.4}: {shares:?} {link}", shares.jain());
    let least = shares.goodput[1..].iter().copied().fold(f64::MAX, f64::min);
    assert!(least >= 0.8 * shares.fair(), "least {least:.0} of {:.0}: {shares:?} {link}", shares.fair());
    let sum: f64 = shares.goodput.iter().sum();
    assert!(sum > 8.5e6, "the link idles: {shares:?} {link}");

    let active = link["active_flows"].as_f64().expect("a number");
    assert!((11.0..14.0).contains(&active), "{link}");
    assert!(link["cut_flows"].as_u64() >= Some(1), "{link}");
    assert!(link["most_cut"][0]["drop_probability"].as_f64() > Some(0.5), "{link}");
    let metrics = Metrics::parse(&scene.ask("/metrics").expect("metrics").text()).expect("OpenMetrics");
    assert!(metrics.value("flashweir_link_packets_purged_total") > 1_000.0);
    assert_eq!(metrics.value("flashweir_link_attached"), 1.0);

    // The flood ends: its entry goes and the others have its part.
    drop(flows);
    eventually("the end of the cuts", || (scene.link()["cut_flows"] == 0).then_some(()));
    router.signal(Signal::Terminate);
    let finished = router.finish(flashweir_testkit::PATIENCE);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}

/// Goal: senders that understand marks are marked and lose nothing at the price. Method: ten of them alone at
/// a link whose queue has room for far more than the target.
#[test]
#[ignore = "real load: make test-load"]
fn flows_that_understand_marks_are_marked_under_load() {
    let test = "marks at a link";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    for namespace in ["senders", RECEIVERS] {
        scene.testbed.set(namespace, "net/ipv4/tcp_ecn", "1");
    }
    let Some(_router) = scene.divide(test, &[]) else { return };
    let flows: Vec<_> = [Source::Tcp; 10].into_iter().map(|source| scene.start(source)).collect();
    let shares = Shares::measure(&flows, SETTLE, Duration::from_secs(6));
    let link = scene.link();
    assert!(link["packets"]["marked"].as_u64() > Some(10), "{link}");
    assert!(shares.jain() >= 0.9, "{shares:?} {link}");
    let waiting = scene.testbed.queue(ROUTER, RECEIVERS).waiting;
    assert!(waiting < 100, "{waiting} packets wait: {link}");
}

/// Goal: one source with many flows gets one share where the flow is the source. Method: a flood of two UDP
/// flows from one address beside nothing is one flow; the count says so.
#[test]
fn a_source_is_one_flow_where_it_is_said_to_be() {
    let test = "sources as flows of a link";
    let Some(scene) = Scene::require(test, env!("CARGO_BIN_EXE_flashweir")) else { return };
    let Some(_router) = scene.divide(test, &["--link-flow", "source"]) else { return };
    // Together half of the share of one of two, so that a sender which was held up does not exceed it either:
    // the router itself is the other when it sends anything there.
    let _flows = [Source::Udp(800_000); 3].map(|source| scene.start(source));
    eventually("the count of sources", || {
        let link = scene.link();
        let is_busy = link["packets"]["offered"].as_u64() > Some(500);
        (is_busy && link["active_flows"].as_f64() <= Some(2.0)).then_some(())
    });
    assert_eq!(scene.link()["packets"]["purged"], 0);
}

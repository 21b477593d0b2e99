//! A replica that dies and returns, reports that lie, a cluster that is full.

use flashweir_testkit::{Client, eventually};

use crate::replication::scene::{Cluster, get, saying};

const USABLE: &str = "flashweir_replication_replicas_usable";

#[test]
fn a_replica_that_dies_costs_no_answer_and_one_that_flaps_is_used_again() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let mut cluster = Cluster::start(&origin, 4);
    cluster.make_hot("/hot");
    for _ in 0..2 {
        cluster.replicas[1].kill();
        let mut client = cluster.redirector.connect();
        eventually("three usable replicas", || {
            for document in 0..20 {
                assert_eq!(get(&mut client, "/hot", "").status(), 200);
                assert_eq!(get(&mut client, &format!("/{document}"), "").status(), 200);
            }
            (cluster.redirector.metrics().value(USABLE) == 3.0).then_some(())
        });
        cluster.replicas[1].restart();
        eventually("four usable replicas", || {
            (0..20).for_each(|_| assert_eq!(get(&mut client, "/hot", "").status(), 200));
            (cluster.redirector.metrics().value(USABLE) == 4.0).then_some(())
        });
    }
    let before = cluster.replicas[1].answered();
    eventually("requests at the replica that returned", || {
        let mut client = cluster.redirector.connect();
        (0..50).for_each(|_| drop(get(&mut client, "/hot", "")));
        (cluster.replicas[1].answered() > before).then_some(())
    });
}

#[test]
fn without_a_replica_the_origin_answers() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let mut cluster = Cluster::start(&origin, 1);
    cluster.replicas[0].kill();
    eventually("no usable replica", || (cluster.redirector.metrics().value(USABLE) == 0.0).then_some(()));
    assert_eq!(get(&mut cluster.redirector.connect(), "/page", "").status(), 200);
    assert_eq!(origin.request_count(), 1);
}

fn post(cluster: &Cluster, kind: &str, body: &str) -> u16 {
    let request = format!(
        "POST /replication/report HTTP/1.1\r\nHost: admin\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    Client::connect(cluster.redirector.admin()).ask(&request).status()
}

#[test]
fn reports_that_lie_are_bounded_and_strangers_are_refused() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let cluster = Cluster::start(&origin, 2);
    let json = "application/json";
    let report = |url: &str, load: &str| {
        format!(
            "{{\"url\":\"{url}\",\"orca\":{{\"rps_fractional\":{load},\"application_utilization\":0}},\"in_flight\":0,\"documents\":[]}}"
        )
    };
    assert_eq!(post(&cluster, json, &report("http://192.0.2.1:80", "1")), 403);
    assert_eq!(post(&cluster, json, "{}"), 400);
    assert_eq!(post(&cluster, json, &report("http://192.0.2.1:80", "-1")), 400);
    assert_eq!(post(&cluster, "text/plain", &report("http://192.0.2.1:80", "1")), 415);
    assert_eq!(post(&cluster, json, &"x".repeat(200 << 10)), 413);
    let liar = cluster.replicas[0].url();
    // The replica's own report may have come a moment ago.
    eventually("the lie to be taken", || (post(&cluster, json, &report(&liar, "1e9")) == 200).then_some(()));
    assert_eq!(
        cluster.redirector.metrics().value("flashweir_replication_reports_total{outcome=\"bounded\"}"),
        1.0
    );
    let mut client = cluster.redirector.connect();
    (0..50).for_each(|_| assert_eq!(get(&mut client, "/page", "").status(), 200));
    // A page on the web cannot report: a GET reports nothing.
    assert_eq!(cluster.redirector.ask_admin("/replication/report").status(), 405);
}

#[test]
fn when_all_replicas_are_full_the_origins_admission_decides() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    // One request a second is more than this cluster takes.
    let cluster = Cluster::start_with(&origin, 1, |builder| {
        builder.set("replication.high_watermark", "1.0").set("replication.low_watermark", "0.5")
    });
    let mut client = cluster.redirector.connect();
    eventually("requests at the origin because the cluster is full", || {
        (0..50).for_each(|_| drop(get(&mut client, "/hot", "")));
        let metrics = cluster.redirector.metrics();
        let full = metrics.value("flashweir_replication_requests_total{to=\"origin_full\"}");
        (full > 0.0 && metrics.value("flashweir_replication_full") == 1.0).then_some(())
    });
    assert_eq!(cluster.status()["full"], true);
}

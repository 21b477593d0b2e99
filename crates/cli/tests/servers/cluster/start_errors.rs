//! A missing requirement is one line that names it, before a port opens.

use crate::cluster::scene::{KEY, gateway, leader, origin, with_key};
use flashweir_testkit::reserve_address;
use std::net::TcpListener;

#[test]
fn a_port_for_reports_that_is_taken_is_named() {
    let origin = origin();
    let taken = TcpListener::bind(reserve_address()).expect("a free port");
    let address = taken.local_addr().expect("an address");
    let finished = leader(&origin, address).start_in_vain();
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    let expected = format!("cannot listen on {address} for reports of other gateways");
    assert!(finished.stderr.contains(&expected), "{}", finished.stderr);
}

#[test]
fn a_cluster_without_keys_or_with_a_file_that_is_none_is_refused() {
    let origin = origin();
    let finished = gateway(&origin, "shop").text("cluster.leader", "127.0.0.1:9920").start_in_vain();
    assert_eq!(finished.code(), Some(64));
    assert!(finished.stderr.contains("cluster.keys_file: is missing"), "{}", finished.stderr);
    let finished = with_key(gateway(&origin, "shop"), "1 short\n")
        .text("cluster.leader", "127.0.0.1:9920")
        .start_in_vain();
    assert_eq!(finished.code(), Some(64));
    assert!(
        finished.stderr.contains("cluster.keys_file: `") && finished.stderr.contains("line 1"),
        "{}",
        finished.stderr
    );
}

#[test]
fn nats_without_the_feature_is_refused_in_one_line() {
    if cfg!(feature = "nats") {
        return flashweir_testkit::skip("a gateway without NATS", "this build has NATS");
    }
    let origin = origin();
    let builder = with_key(gateway(&origin, "shop"), KEY).text("cluster.nats", "nats://127.0.0.1:4222");
    let finished = builder.start_in_vain();
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    assert!(finished.stderr.contains("built without NATS"), "{}", finished.stderr);
}

#[test]
fn kubernetes_without_the_feature_or_a_cluster_is_refused_in_one_line() {
    let origin = origin();
    let builder = with_key(gateway(&origin, "shop"), KEY)
        .text("cluster.kubernetes", "flashweir-gateways:reports")
        .text("cluster.listen", &reserve_address().to_string());
    let builder =
        if cfg!(feature = "kubernetes") { builder.argument("--kubeconfig=no-such-file") } else { builder };
    let finished = builder.start_in_vain();
    assert_eq!(finished.code(), Some(64), "{}", finished.stderr);
    let expected = if cfg!(feature = "kubernetes") {
        "expected a service account in a pod, $KUBECONFIG or --kubeconfig FILE"
    } else {
        "built without Kubernetes"
    };
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    assert_eq!(finished.stderr.lines().filter(|line| line.starts_with("flashweir: ")).count(), 1);
}

#[test]
fn a_file_that_names_the_api_server_without_use_is_refused() {
    let origin = origin();
    let finished = gateway(&origin, "shop").argument("--kubeconfig=config").start_in_vain();
    assert_eq!(finished.code(), Some(64));
    let expected = "--kubeconfig: has no use without --upstream-service or cluster.kubernetes";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
}

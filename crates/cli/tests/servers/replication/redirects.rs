//! Clients that are redirected to replicas, and requests that go in circles.

use flashweir_testkit::{Client, reserve_address};

use crate::replication::scene::{Cluster, get, number, redirector, saying};

#[test]
fn a_redirected_client_gets_the_copy_and_the_origin_sees_the_site() {
    for (answer, status) in [("302", 302), ("307", 307)] {
        let origin = saying("Cache-Control: max-age=600\r\n");
        let cluster = Cluster::start_with(&origin, 2, |builder| builder.text("replication.answer", answer));
        let mut client = cluster.redirector.connect();
        let redirected = get(&mut client, "/page?a=1", "");
        assert_eq!(redirected.status(), status);
        assert_eq!(redirected.field("cache-control"), Some("no-store"));
        let location = redirected.field("location").expect("a location").to_owned();
        let replica = cluster.replicas.iter().find(|replica| location.starts_with(&replica.url()));
        let replica = replica.unwrap_or_else(|| panic!("{location} is no replica"));
        let target = location.strip_prefix(&replica.url()).expect("a target");
        assert_eq!(target, "/page?a=1&flashweir-hops=1");
        // A client that follows the redirect asks by the replica's name.
        let follow = |target: &str| {
            let host = replica.address;
            Client::connect(host).ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        };
        let copies = [0, 1].map(|_| follow(target));
        assert_eq!(copies.each_ref().map(number), [1, 1]);
        assert!(copies[1].text().contains("host=shop.example"), "{}", copies[1].text());
        let asked = origin.last_request();
        assert!(asked.start.starts_with("GET /page?a=1 "), "the origin sees its own URL: {}", asked.start);
        // Its cookie would stay behind.
        assert_eq!(get(&mut client, "/page", "Cookie: id=a\r\n").status(), 200);
        // A browser that follows a link on the copy asks the replica without a parameter.
        assert_eq!(number(&follow("/page?a=1")), 1);
    }
}

#[test]
fn a_circle_of_redirectors_ends_with_503_after_two_hops() {
    let origin = saying("Cache-Control: max-age=600\r\n");
    let (one, other) = (reserve_address(), reserve_address());
    let at = |own: std::net::SocketAddr, target| {
        redirector(&origin, &[target])
            .set("listen.address", &format!("\"{own}\""))
            .text("replication.interval", "10s")
    };
    let (one_builder, other_builder) = (at(one, other), at(other, one));
    let (spawned_one, spawned_other) = (one_builder.start(), other_builder.start());
    let answer = get(&mut Client::connect(one), "/page", "");
    assert_eq!(answer.status(), 503, "{}", answer.text());
    assert!(answer.text().contains("went in a circle"), "{}", answer.text());
    assert_eq!(origin.request_count(), 0);
    let loops =
        |gateway: &flashweir_testkit::Gateway| gateway.metrics().value("flashweir_replication_loops_total");
    assert_eq!(loops(&spawned_one) + loops(&spawned_other), 1.0);
    for target in ["/page?flashweir-hops=2", "/page?flashweir-hops=x"] {
        let answer = get(&mut Client::connect(one), target, "");
        assert_eq!(
            (answer.status(), answer.field("flashweir-error")),
            (503, Some("replication_loop")),
            "{target}"
        );
    }
}

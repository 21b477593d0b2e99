//! Goal: a node gets what it asked for, by class, and the rest is refused here with the reason.

use crate::egress::scene::{Egress, ScriptedNode, asks, statuses};
use flashweir_testkit::eventually;
use std::time::{Duration, Instant};

/// Method: nine clients ask again at once for two seconds; the node asks for 20 a second from rank 1 on.
#[test]
fn a_limited_node_gets_what_it_asked_for_and_important_requests_pass() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "");
    node.ask(&asks(1, 20.0));
    assert_eq!(egress.get().status(), 200);
    egress.until_condition("limited");
    let (before, begun) = (node.count(), Instant::now());
    let (ordinary, important) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    while begun.elapsed() < Duration::from_secs(2) {
                        all.extend(statuses(&egress, 5, "X-Class: search\r\n"));
                    }
                    all
                })
            })
            .collect();
        let important = statuses(&egress, 100, "X-Class: checkout\r\n");
        (
            clients.into_iter().flat_map(|client| client.join().expect("a client")).collect::<Vec<_>>(),
            important,
        )
    });
    let took_s = begun.elapsed().as_secs_f64();
    assert!(important.iter().all(|&status| status == 200), "{important:?}");
    let sent = (node.count() - before - important.len()) as f64;
    let allowed = 2.0 + 20.0 * took_s;
    assert!(sent <= allowed + 1.0, "{sent} sent in {took_s} s");
    assert!(sent >= 0.3 * allowed, "{sent} of {allowed}: the rate is used");
    let refused = ordinary.iter().filter(|&&status| status == 503).count();
    assert_eq!(refused + sent as usize, ordinary.len());
    assert!(refused > 0);
}

#[test]
fn a_refusal_says_which_node_asked_for_less() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "queue = 0");
    node.ask(&asks(1, 0.5));
    assert_eq!(statuses(&egress, 3, ""), [200, 200, 200], "the first, and a burst of two");
    let refusal = egress.get();
    assert_eq!(refusal.status(), 503);
    let address = node.upstream.address();
    let field = refusal.field("flashweir-egress").expect("the reason").to_owned();
    let expected = format!("limit; target=\"api\"; node=\"api@{address}\"; rate=0.500; age_ms=");
    assert!(field.starts_with(&expected), "{field}");
    assert_eq!(refusal.field("retry-after"), Some("1"));
    assert!(refusal.text().contains("the node asked for less"), "{}", refusal.text());
    let report = egress.node();
    assert_eq!(report["asked"]["rate_rps"], 0.5);
    assert_eq!(report["refused"]["limit"], 1);
    assert!(report["feedback_age_s"].as_f64().is_some_and(|age| age < 60.0));
    let metrics = egress.metrics();
    assert_eq!(metrics.value("flashweir_egress_refused_total{target=\"api\",reason=\"limit\"}"), 1.0);
    assert_eq!(metrics.value("flashweir_egress_rate_requests_per_second{target=\"api\"}"), 0.5);
    assert_eq!(metrics.value("flashweir_egress_nodes{target=\"api\",condition=\"limited\"}"), 1.0);
    eventually("the limit in the log", || egress.stderr().contains("the node asks for less").then_some(()));
    let log = egress.stderr();
    assert_eq!(log.matches("the node asks for less").count(), 1, "{log}");
}

#[test]
fn a_release_ends_the_limit() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "queue = 0");
    node.ask(&asks(1, 0.5));
    assert!(statuses(&egress, 10, "").contains(&503));
    let mut release = asks(2, 1.0);
    release.rate = None;
    node.ask(&release);
    // An important request brings the news.
    assert_eq!(egress.get_with("X-Class: checkout\r\n").status(), 200);
    assert_eq!(statuses(&egress, 30, ""), [200; 30]);
    egress.until_condition("open");
    eventually("the end in the log", || {
        egress.stderr().contains("nothing holds requests back any more").then_some(())
    });
}

/// Two servers in one target are two nodes: what one asks for does not hold for the other.
#[test]
fn several_servers_have_limits_of_their_own() {
    let (limited, free) = (ScriptedNode::start(), ScriptedNode::start());
    let egress = Egress::start(&[limited.upstream.url(), free.upstream.url()], "");
    limited.ask(&asks(1, 0.1));
    eventually("the limit is heard", || {
        assert_eq!(egress.get().status(), 200);
        (limited.count() > 0).then_some(())
    });
    let (before, others) = (limited.count(), free.count());
    assert_eq!(statuses(&egress, 60, ""), [200; 60]);
    assert!(limited.count() - before <= 4, "the burst, and one in ten seconds");
    assert!(free.count() - others >= 56);
    let status = egress.status();
    let conditions: Vec<&str> = status["targets"][0]["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|node| node["condition"].as_str())
        .collect();
    assert!(conditions.contains(&"limited") && conditions.contains(&"open"), "{conditions:?}");
}

/// A name with several addresses is several nodes. `localhost` is 127.0.0.1 everywhere.
#[test]
fn a_name_is_resolved_and_its_addresses_are_nodes() {
    let node = ScriptedNode::start();
    let url = format!("http://localhost:{}", node.upstream.address().port());
    let egress = Egress::start(&[url], "");
    let nodes = egress.status()["targets"][0]["nodes"].as_array().expect("nodes").len();
    assert!(nodes >= 1);
    eventually("an answer", || (egress.get().status() == 200).then_some(()));
    let host = node.upstream.last_request();
    assert_eq!(host.field("host").map(|host| host.starts_with("localhost:")), Some(true));
}

#[test]
fn keys_are_read_again_on_a_signal() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "");
    let newer =
        flashweir_tower::client::Keys::parse("2 another horse battery staple", "test").expect("a key").ring();
    node.answer(
        200,
        &crate::egress::scene::line(&crate::egress::scene::written(
            &asks(1, 5.0),
            &newer,
            crate::egress::scene::CONTEXT,
        )),
    );
    assert_eq!(egress.get().status(), 200);
    assert_eq!(egress.feedback("unknown_key"), 1);
    egress.write_keys("# a wrong file changes nothing\n3 short\n");
    eventually("the complaint", || egress.stderr().contains("api.keys:2").then_some(()));
    assert!(!egress.stderr().contains("3 short"));
    egress.write_keys("2 another horse battery staple\n1 correct horse battery staple\n");
    eventually("the new keys", || egress.stderr().contains("keys read again").then_some(()));
    assert_eq!(egress.get().status(), 200);
    assert_eq!(egress.node()["condition"], "limited");
    assert_eq!(egress.stop().code(), Some(0));
}

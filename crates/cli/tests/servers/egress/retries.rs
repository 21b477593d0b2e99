//! Goal: further attempts help where they can and never exceed their budget.

use crate::egress::scene::{Egress, ScriptedNode, asks, get, line, signed, statuses};
use flashweir_testkit::{Client, Upstream, eventually, reserve_address};

#[test]
fn retries_end_with_their_budget() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "retry = { ratio = 0.1, reserve = 3, attempts = 3 }");
    node.answer(503, "");
    assert_eq!(statuses(&egress, 50, ""), [503; 50]);
    let retries = node.count() - 50;
    // The reserve, and a tenth of fifty.
    assert!((3..=8).contains(&retries), "{retries}");
    let status = egress.status();
    assert_eq!(status["targets"][0]["retries"]["made"], retries);
    assert!(status["targets"][0]["retries"]["denied"].as_u64() > Some(30), "{status}");
}

#[test]
fn only_what_may_be_repeated_is_repeated() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "retry = { reserve = 100 }");
    node.answer(503, "");
    let count = |request: &str| {
        let before = node.count();
        assert_eq!(Client::connect(egress.address).ask(request).status(), 503);
        node.count() - before
    };
    assert_eq!(count(&get("")), 2);
    assert_eq!(count("PUT /a HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc"), 2);
    let bytes = String::from_utf8_lossy(&node.upstream.received().bytes).into_owned();
    assert_eq!(bytes.matches("\r\n\r\nabc").count(), 2, "the whole body goes again");
    assert_eq!(count("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc"), 1);
    assert_eq!(
        count("PUT /a HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        1
    );
    node.answer(503, "Retry-After: 30\r\n");
    assert_eq!(count(&get("")), 1, "the process learns when to come back");
    node.answer(503, "grpc-retry-pushback-ms: -1\r\n");
    assert_eq!(count(&get("")), 1);
    node.answer(503, "grpc-retry-pushback-ms: 5\r\n");
    assert_eq!(count(&get("")), 2);
    node.answer(503, &line(&signed(&asks(1, 1_000.0))));
    assert_eq!(count(&get("X-Class: checkout\r\n")), 1, "an overloaded node gets no second attempts");
}

#[test]
fn what_was_never_sent_goes_to_another_server() {
    let (gone, node) = (reserve_address(), ScriptedNode::start());
    let urls = [format!("http://{gone}"), node.upstream.url()];
    let egress = Egress::start(&urls, "retry = { reserve = 1000 }");
    let mut client = Client::connect(egress.address);
    for _ in 0..30 {
        let request = "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(client.ask(request).status(), 200);
    }
    assert_eq!(node.count(), 30);
}

/// A process that retries by itself marks it, as gRPC does: such requests draw on the budget.
#[test]
fn marked_retries_of_the_process_draw_on_the_budget() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "retry = { ratio = 0.0, reserve = 2 }");
    let marked = "grpc-previous-rpc-attempts: 1\r\n";
    assert_eq!(statuses(&egress, 4, marked), [200, 200, 429, 429]);
    assert_eq!(statuses(&egress, 2, "grpc-previous-rpc-attempts: 0\r\n"), [200, 200]);
    let refusal = egress.get_with(marked);
    assert!(
        refusal
            .field("flashweir-egress")
            .is_some_and(|field| field.starts_with("retry_budget; target=\"api\""))
    );
    assert_eq!(node.count(), 4);
}

/// Hedging is off unless it is asked for; then a second server answers what the first is slow with.
#[test]
fn a_hedged_request_is_answered_by_the_faster_server() {
    let hanging = || Upstream::start(|connection| while connection.read_request().is_some() {});
    let (slow, node) = (hanging(), ScriptedNode::start());
    let urls = [slow.url(), node.upstream.url()];
    let egress = Egress::start(&urls, "hedge_after_ms = 50\nretry = { reserve = 1000 }");
    for _ in 0..20 {
        assert_eq!(egress.get().status(), 200);
    }
    assert_eq!(node.count(), 20);
    eventually("some went to the slow one first", || (slow.request_count() > 0).then_some(()));
    assert!(egress.status()["targets"][0]["hedges"].as_u64() > Some(0));
}

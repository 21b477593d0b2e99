//! Goal: a deadline travels with its request, shorter at each hop, and what is too late is not sent.

use crate::egress::scene::{Egress, ScriptedNode, asks};

#[test]
fn deadlines_travel_and_what_is_too_late_is_not_sent() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "deadline_ms = 9000");
    let deadline_ms = || -> u64 {
        let request = node.upstream.last_request();
        request.field("flashweir-deadline").expect("a deadline").parse().expect("milliseconds")
    };
    assert_eq!(egress.get().status(), 200);
    assert!((1..=9_000).contains(&deadline_ms()), "{}", deadline_ms());
    assert_eq!(
        node.upstream.last_request().field("flashweir-sender"),
        Some("shop"),
        "the node signs for this name"
    );
    assert_eq!(egress.get_with("Flashweir-Deadline: 60000\r\n").status(), 200);
    assert!((9_001..=60_000).contains(&deadline_ms()), "{}", deadline_ms());
    let late = egress.get_with("Flashweir-Deadline: 0\r\n");
    assert_eq!(late.status(), 504);
    assert!(
        late.field("flashweir-egress").is_some_and(|field| field.starts_with("deadline; target=\"api\""))
    );
    let wrong = egress.get_with("Flashweir-Deadline: soon\r\n");
    assert_eq!(wrong.status(), 400);
    assert_eq!(wrong.text(), "Flashweir-Deadline: expected whole milliseconds from 0 to 86400000\n");
    assert_eq!(node.count(), 2);
}

/// A request waits for its token no longer than its answer is of use; then the next one gets it.
#[test]
fn a_request_that_could_not_go_in_time_is_refused_at_once() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "wait_ms = 60000");
    node.ask(&asks(1, 0.1));
    for _ in 0..3 {
        assert_eq!(egress.get().status(), 200);
    }
    // The next token comes in ten seconds.
    let refusal = egress.get_with("Flashweir-Deadline: 2000\r\n");
    assert_eq!(refusal.status(), 503);
    assert!(refusal.field("flashweir-egress").is_some_and(|field| field.starts_with("limit")));
    assert_eq!((egress.node()["waiting"].as_u64(), node.count()), (Some(0), 3));
}

/// Goal: two hops, the second over HTTP/2, give the deadline on, each less than it got; a refusal deeper in
/// the chain comes back as it is.
#[test]
fn a_chain_hands_deadlines_on() {
    let node = ScriptedNode::start();
    let second = Egress::start(&[node.upstream.url()], "");
    let first = Egress::start(&[format!("http://{}", second.address)], "protocol = \"http2\"");
    let answer = first.get_with("Flashweir-Deadline: 60000\r\n");
    assert_eq!((answer.status(), answer.text().as_str()), (200, "from the node"));
    let request = node.upstream.last_request();
    let left: u64 = request.field("flashweir-deadline").expect("a deadline").parse().expect("milliseconds");
    assert!((1..60_000).contains(&left), "{left}");
    assert_eq!(request.fields.all("via"), ["1.1 flashweir", "2 flashweir"]);
    node.ask(&asks(1, 0.1));
    let statuses: Vec<u16> = (0..4).map(|_| first.get().status()).collect();
    assert_eq!(statuses, [200, 200, 200, 503]);
    assert_eq!(
        (first.node()["condition"].as_str(), second.node()["condition"].as_str()),
        (Some("open"), Some("limited"))
    );
}

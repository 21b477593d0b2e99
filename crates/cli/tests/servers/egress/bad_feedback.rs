//! Goal: what is forged, replayed, truncated or absurd changes nothing and is seen; no one can throttle a
//! caller below a probe.

use crate::egress::scene::{CONTEXT, Egress, KEY, ScriptedNode, asks, line, ring, signed, statuses, written};
use flashweir_feedback::KeyRing;
use flashweir_testkit::{Client, eventually};
use flashweir_tower::client::{HmacKey, Keys};

/// Each kind of bad field: counted by its kind, logged once, and the requests go on.
#[test]
fn fields_that_are_not_in_order_are_counted_and_ignored() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "queue = 0");
    let good = signed(&asks(7, 0.1));
    let other_key = Keys::parse("1 guessed horse battery staple", "test").expect("a key").ring();
    let mut flipped = good.clone().into_bytes();
    flipped[30] = if flipped[30] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).expect("base64");
    let cases = [
        ("forged", line(&written(&asks(7, 0.0), &other_key, CONTEXT))),
        ("forged", line(&written(&asks(7, 0.0), &ring(), "blog>api"))),
        ("forged", line(&flipped)),
        ("untagged", line(&written(&asks(7, 0.0), &KeyRing::<HmacKey>::empty(), ""))),
        ("length", line(&good[..40])),
        ("length", line("")),
        ("syntax", line(&good.replace(':', "\""))),
        ("lines", format!("{}{}", line(&good), line(&signed(&asks(8, 0.1))))),
    ];
    for (kind, fields) in cases {
        let before = egress.feedback(kind);
        node.answer(200, &fields);
        assert_eq!(statuses(&egress, 3, ""), [200; 3], "{kind}");
        assert_eq!(egress.feedback(kind), before + 3, "{kind}");
    }
    assert_eq!(egress.node()["condition"], "open");
    let ignored = || egress.stderr().matches("a field Flashweir-Overload is ignored").count();
    eventually("a line for each kind", || (ignored() >= 5).then_some(()));
    assert_eq!(ignored(), 5, "once for each kind: {}", egress.stderr());
}

#[test]
fn a_replay_and_an_earlier_epoch_change_nothing() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "queue = 0");
    node.ask(&asks(7, 1_000_000.0));
    assert_eq!(egress.get().status(), 200);
    for replayed in [asks(6, 0.0), asks(7, 0.0)] {
        node.ask(&replayed);
        assert_eq!(egress.get().status(), 200);
    }
    // A node whose clock is minutes behind after a restart: believed only after 20 s of silence.
    let mut behind = asks(1_000, 0.0);
    behind.epoch -= 300;
    node.ask(&behind);
    assert_eq!(egress.get().status(), 200);
    assert_eq!((egress.feedback("stale"), egress.feedback("new")), (3, 1));
    assert_eq!(egress.node()["asked"]["rate_rps"], 1_000_000.0);
    // One whose clock is minutes ahead is a later run.
    let mut ahead = asks(0, 500_000.0);
    ahead.epoch += 300;
    node.ask(&ahead);
    assert_eq!(egress.get().status(), 200);
    assert_eq!(egress.node()["asked"]["rate_rps"], 500_000.0);
}

/// Without keys, any party on the path can send what a node can send; a probe still goes to the node, and
/// brings the truth.
#[test]
fn a_rate_of_zero_leaves_a_probe() {
    let node = ScriptedNode::start();
    let egress = Egress::start_with(&[node.upstream.url()], "queue = 0", "");
    assert_eq!(statuses(&egress, 200, ""), [200; 200]);
    let zero = written(&asks(1, 0.0), &KeyRing::<HmacKey>::empty(), "");
    node.answer(200, &line(&zero));
    assert_eq!(egress.get().status(), 200);
    let report = egress.node();
    assert!(report["rate_rps"].as_f64().is_some_and(|rate| rate >= 0.1), "{report}");
    node.answer(200, "");
    let before = node.count();
    eventually("probes that go", || {
        egress.get();
        (node.count() >= before + 3).then_some(())
    });
}

/// A proxy on the way strips the field: the limit opens by itself, and the log says why it may be.
#[test]
fn stripped_fields_are_missed() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "");
    let mut short = asks(1, 200.0);
    short.ttl = std::time::Duration::from_millis(100);
    statuses(&egress, 100, "");
    node.ask(&short);
    assert_eq!(egress.get().status(), 200);
    node.answer(200, "");
    eventually("an answer without the field", || {
        egress.get();
        (egress.feedback("missing") > 0).then_some(())
    });
    egress.until_condition("open");
    assert_eq!(statuses(&egress, 50, ""), [200; 50]);
}

/// Callers of HTTP/1.0 are limited like others, and understand the refusal.
#[test]
fn http_1_0_callers_are_limited_too() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "queue = 0");
    node.ask(&asks(1, 0.1));
    let ask = || {
        let mut client = Client::connect(egress.address);
        client.send("GET /stock HTTP/1.0\r\n\r\n");
        let answer = client.response();
        client.expect_closed();
        answer
    };
    let answers: Vec<_> = (0..5).map(|_| ask()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status()).collect();
    assert_eq!(statuses, [200, 200, 200, 503, 503]);
    assert!(answers[4].fields.has("content-length") && !answers[4].fields.has("transfer-encoding"));
    assert_eq!(answers[4].field("retry-after"), Some("1"));
    assert!(KEY.starts_with("1 "));
}

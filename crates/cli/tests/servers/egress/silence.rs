//! Goal: a server that is gone is left alone but for trials, and gets its load back when it returns.

use crate::egress::scene::{Egress, ScriptedNode, statuses};
use flashweir_testkit::{Upstream, eventually, reserve_address};
use std::time::{Duration, Instant};

#[test]
fn a_dead_server_is_noticed_and_comes_back() {
    let address = reserve_address();
    let node = ScriptedNode::start_at(address);
    let egress = Egress::start(&[node.upstream.url()], "");
    assert_eq!(statuses(&egress, 20, ""), [200; 20]);
    drop(node);
    let begun = Instant::now();
    let refusal = eventually("silence", || Some(egress.get()).filter(|answer| answer.status() == 503));
    println!("a dead server was noticed after {:.2} s", begun.elapsed().as_secs_f64());
    // Ten times the bound of 2 s, for a machine ten times slower.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let field = refusal.field("flashweir-egress").expect("a reason").to_owned();
    assert!(field.starts_with("silent; target=\"api\""), "{field}");
    assert!(refusal.fields.has("retry-after"));
    assert_eq!(egress.node()["condition"], "silent");
    assert_eq!(egress.stderr().matches("the node answers nothing").count(), 1);
    let back = ScriptedNode::start_at(address);
    eventually("a trial that is answered", || (egress.get().status() == 200).then_some(()));
    egress.until_condition("open");
    assert_eq!(statuses(&egress, 20, ""), [200; 20]);
    assert!(back.count() >= 20);
}

/// Errors are answers: a server that fails every request is not cut off, and neither are those who call
/// something else there.
#[test]
fn errors_do_not_open_the_circuit() {
    let node = ScriptedNode::start();
    let egress = Egress::start(&[node.upstream.url()], "retry = { attempts = 1 }");
    node.answer(500, "");
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < Duration::from_millis(1_500) || count < 50 {
        assert_eq!(egress.get().status(), 500);
        count += 1;
    }
    assert_eq!(egress.node()["condition"], "open");
    assert_eq!(node.count(), count);
}

/// A server that accepts and never answers counts as silent once its callers' deadlines pass.
#[test]
fn a_server_that_hangs_is_silent() {
    let hanging = Upstream::start(|connection| while connection.read_request().is_some() {});
    let egress = Egress::start(&[hanging.url()], "deadline_ms = 300");
    let refusal = eventually("silence", || {
        let answer = egress.get();
        match answer.status() {
            504 => assert!(answer.text().contains("no answer came before its deadline"), "{}", answer.text()),
            status => assert_eq!(status, 503),
        }
        (answer.status() == 503).then_some(answer)
    });
    assert!(refusal.field("flashweir-egress").is_some_and(|field| field.starts_with("silent")));
}

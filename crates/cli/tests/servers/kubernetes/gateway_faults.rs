//! Goal: a gateway that leads stops to while the API server does not take its Lease, asks ever more seldom,
//! serves on, and leads again in a later term. Method: the real binary with a key, its Service and its Lease
//! in a scripted API server that refuses, stands still, or gives the Lease to another.

use crate::kubernetes::BINARY;
use crate::kubernetes::scripted_api::{ScriptedApi, spec};
use flashweir_testkit::{Flashweir, Gateway, GatewayBuilder, Upstream, reserve_address, until};
use serde_json::json;
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(60);
/// Time after the loss of the lead, and calls a second in it: 2 to 4 without back-off, and at most two in all
/// where the wait is 1 s by then.
const TROUBLE: Duration = Duration::from_secs(2);
const CALLS_PER_S_MAX: f64 = 1.6;
const LOST: &str = "the gateways' Lease cannot be had";

/// One gateway, which leads, with its server and API server.
struct Scene {
    gateway: Gateway,
    api: ScriptedApi,
    _server: Upstream,
}

fn start() -> Scene {
    let server = Upstream::saying("served");
    let api = ScriptedApi::start(spec());
    let reports = reserve_address();
    api.state().gateways = vec![reports];
    let kubeconfig = api.directory().join("kubeconfig");
    let builder = GatewayBuilder::new(&Flashweir::new(BINARY)).upstream(&server.url());
    std::fs::write(builder.directory().join("cluster.keys"), "1 correct-horse-battery-staple\n")
        .expect("a writable directory");
    let gateway = builder
        .text("cluster.keys_file", "cluster.keys")
        .text("cluster.listen", &reports.to_string())
        .text("cluster.kubernetes", "flashweir-gateways:admin")
        .argument(&format!("--kubeconfig={}", kubeconfig.display()))
        .start();
    let scene = Scene { gateway, api, _server: server };
    scene.wait_leading(0);
    scene
}

impl Scene {
    fn is_leader(&self) -> bool {
        self.gateway.status()["cluster"]["is_leader"] == true
    }

    fn term(&self) -> u64 {
        self.gateway.status()["cluster"]["term"].as_u64().unwrap_or(0)
    }

    fn wait_leading(&self, after: u64) -> u64 {
        until("it leads", WITHIN, || (self.is_leader() && self.term() > after).then(|| self.term()))
    }

    fn wait_not_leading(&self) {
        until("it leads no more", WITHIN, || (!self.is_leader()).then_some(()));
        assert_eq!(self.gateway.get("/").text(), "served");
    }
}

#[test]
fn a_gateway_whose_lease_the_api_server_refuses_leads_no_more_until_it_is_taken_again() {
    let scene = start();
    let mut term = scene.term();
    for (times, code) in [(1, 429), (2, 500)] {
        scene.api.state().refuses = Some(code);
        scene.wait_not_leading();
        if code == 429 {
            let (began, calls) = (Instant::now(), scene.api.state().requests);
            until("some seconds of trouble", WITHIN, || (began.elapsed() >= TROUBLE).then_some(()));
            let (calls, elapsed) = (scene.api.state().requests - calls, began.elapsed());
            let calls_max = CALLS_PER_S_MAX * elapsed.as_secs_f64();
            assert!(calls as f64 <= calls_max, "{calls} calls in {elapsed:?} of trouble");
        }
        scene.api.state().refuses = None;
        term = scene.wait_leading(term);
        assert_eq!(scene.gateway.stderr().matches(LOST).count(), times, "said once each time");
    }
    let lease = scene.api.state().lease.clone().expect("a Lease");
    assert_eq!(lease["spec"]["leaseTransitions"], json!(term), "the term is the Lease's");
}

#[test]
fn a_gateway_that_the_api_server_does_not_answer_leads_no_more() {
    let scene = start();
    let term = scene.term();
    scene.api.state().stands_still = true;
    scene.wait_not_leading();
    scene.api.state().stands_still = false;
    scene.wait_leading(term);
}

/// Another holder, by hand: nothing is written over it, and its term counts when it is silent.
#[test]
fn a_lease_that_another_has_taken_is_left_alone_until_its_end() {
    let scene = start();
    let term = scene.term();
    {
        let mut state = scene.api.state();
        let lease = state.lease.as_mut().expect("a Lease");
        lease["metadata"]["resourceVersion"] = json!("1000");
        lease["spec"] = json!({
            "holderIdentity": "10.0.0.9:9920_another", "leaseDurationSeconds": 3, "leaseTransitions": term + 10,
        });
    }
    scene.wait_not_leading();
    let since = Instant::now();
    let holder = || scene.api.state().lease.clone().expect("a Lease")["spec"]["holderIdentity"].clone();
    assert_eq!(holder(), "10.0.0.9:9920_another");
    let later = scene.wait_leading(term);
    assert!(since.elapsed() > Duration::from_secs(2), "before the other's end: {:?}", since.elapsed());
    assert_eq!(later, term + 11);
    // One that was deleted counts no transitions; the term grows all the same.
    scene.api.state().lease = None;
    scene.wait_leading(later);
}

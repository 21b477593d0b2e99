//! Goal: one owner of replicas, one leader, one clear event for each fault, and replicas that stay as they
//! are meanwhile. Method: the real binary against a scripted API server and a scripted gateway.

use crate::kubernetes::scripted_api::{ScriptedApi, gateway_without_pods, scripted_gateway, spec};
use flashweir_testkit::{Client, Process, Signal, reserve_address, until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Ten times what an idle machine takes.
const WITHIN: Duration = Duration::from_secs(60);
const STOPS_WITHIN: Duration = Duration::from_secs(30);
/// Plans that change nothing: what is done once is done again in none of them.
const FURTHER_PLANS: usize = 3;
/// Time for which an API server refuses, and calls a second in it: 4 without back-off, and at most seven in
/// all where both loops, that of the Lease and that of the policies, wait .5, 1 and 2 s (half of it at
/// random).
const TROUBLE: Duration = Duration::from_secs(3);
const CALLS_PER_S_MAX: f64 = 2.7;

fn with(key: &str, value: Value) -> Value {
    let mut spec = spec();
    spec[key] = value;
    spec
}

fn reasons(api: &ScriptedApi) -> Vec<String> {
    let text = |event: &Value| event["reason"].as_str().unwrap_or_default().to_owned();
    api.state().events.iter().map(text).collect()
}

fn stop(control: Process) -> String {
    control.signal(Signal::Terminate);
    let finished = control.finish(STOPS_WITHIN);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    finished.stderr
}

#[test]
fn replicas_are_set_once_and_the_policy_says_so() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(3)));
    api.state().gateways = vec![gateway.address()];
    // The workload's status changes its version at any time; that is no reason to give up.
    api.state().conflicts = 1;
    let control = api.control("a", &[]);
    until("the order", WITHIN, || (api.state().orders == [3]).then_some(()));
    until("the status", WITHIN, || (api.state().status["desiredReplicas"] == 3).then_some(()));
    let condition = until("the condition", WITHIN, || {
        let condition = api.state().status["conditions"][0].clone();
        (condition["reason"] == "ReplicasSet").then_some(condition)
    });
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Active"), &json!("True")));
    // An operator's own number holds until the plan changes, and is said once.
    api.state().replicas = 5;
    until("the event", WITHIN, || {
        reasons(&api).contains(&"ReplicasChangedElsewhere".to_owned()).then_some(())
    });
    api.wait_plans(1);
    let status_writes = api.state().status_writes;
    api.wait_plans(FURTHER_PLANS);
    assert_eq!(api.state().orders, [3]);
    let times = |reason: &str| reasons(&api).iter().filter(|it| *it == reason).count();
    assert_eq!((times("Scaled"), times("ReplicasChangedElsewhere")), (1, 1), "{:?}", reasons(&api));
    assert_eq!(api.state().status_writes, status_writes, "the status is written where it changes");
    let log = stop(control);
    assert!(log.contains("Deployment web scaled from 1 to 3"), "{log}");
    assert_eq!(
        api.state().lease.as_ref().expect("a Lease")["spec"]["holderIdentity"],
        "",
        "leadership is given up"
    );
}

#[test]
fn an_autoscaler_keeps_its_replicas_and_the_policy_only_publishes() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(3)));
    api.state().gateways = vec![gateway.address()];
    api.state().autoscalers = vec![json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "busy", "namespace": "default" },
        "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }, "maxReplicas": 4 },
    })];
    let listen = reserve_address();
    let control = api.control("a", &["--listen", &listen.to_string()]);
    until("the condition", WITHIN, || {
        (api.state().status["conditions"][0]["reason"] == "AutoscalerOwnsReplicas").then_some(())
    });
    until("the numbers", WITHIN, || {
        let metrics = Client::get(listen, "/metrics").text();
        let series = "flashweir_policy_replicas_desired{namespace=\"default\",policy=\"web\"} 3";
        (metrics.contains(series) && metrics.contains("flashweir_kubernetes_leading 1")).then_some(())
    });
    assert_eq!(Client::get(listen, "/readyz").status(), 200);
    api.wait_plans(FURTHER_PLANS);
    assert!(api.state().orders.is_empty(), "{:?}", api.state().orders);
    assert_eq!(
        reasons(&api).iter().filter(|it| *it == "AutoscalerOwnsReplicas").count(),
        1,
        "{:?}",
        reasons(&api)
    );
    assert_eq!(api.state().status["desiredReplicas"], 3);
    stop(control);
}

#[test]
fn a_wrong_policy_and_silent_gateways_are_said_once_and_change_nothing() {
    let api = ScriptedApi::start(with("maxReplicas", json!(0)));
    let control = api.control("a", &[]);
    let message = until("the condition", WITHIN, || {
        let condition = api.state().status["conditions"][0].clone();
        (condition["reason"] == "InvalidPolicy").then(|| condition["message"].clone())
    });
    assert_eq!(message, "spec.maxReplicas is 0: expected 1 to 1000000");
    api.state().spec = spec();
    until("the condition", WITHIN, || {
        (api.state().status["conditions"][0]["reason"] == "GatewaysSilent").then_some(())
    });
    api.wait_plans(FURTHER_PLANS);
    assert!(api.state().orders.is_empty());
    for reason in ["InvalidPolicy", "GatewaysSilent"] {
        assert_eq!(reasons(&api).iter().filter(|it| *it == reason).count(), 1, "{:?}", reasons(&api));
    }
    stop(control);
}

/// The server refuses (429), breaks (500) or stands still: one line each time, fewer and fewer calls, and it
/// goes on by itself.
#[test]
fn an_api_server_in_trouble_is_said_once_and_left_in_peace() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(2)));
    api.state().gateways = vec![gateway.address()];
    let control = api.control("a", &[]);
    until("the first order", WITHIN, || (api.state().orders == [2]).then_some(()));
    for code in [429, 500] {
        api.state().refuses = Some(code);
        let said = format!("API server is overloaded ({code})");
        until("the warning", WITHIN, || {
            let log = control.stderr();
            (log.matches(&format!("policies cannot be followed; replicas stay as they are error={said}"))
                .count()
                == 1)
                .then_some(())
        });
        if code == 429 {
            let (began, before) = (Instant::now(), api.state().requests);
            until("some seconds of trouble", WITHIN, || (began.elapsed() >= TROUBLE).then_some(()));
            let (calls, elapsed) = (api.state().requests - before, began.elapsed());
            let calls_max = CALLS_PER_S_MAX * elapsed.as_secs_f64();
            assert!(calls as f64 <= calls_max, "{calls} calls in {elapsed:?} of trouble");
        }
        api.state().refuses = None;
        let heard = control.stderr().matches("policies are followed").count();
        until("it is heard again", WITHIN, || {
            (control.stderr().matches("policies are followed").count() > heard).then_some(())
        });
    }
    assert_eq!(api.state().orders, [2]);
    let log = stop(control);
    assert_eq!(log.matches("policies cannot be followed").count(), 2, "{log}");
}

/// An API server that takes requests and answers none is as good as one that is gone: said once, replicas
/// stay, and it goes on by itself.
#[test]
fn an_api_server_that_stands_still_is_said_once() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(2)));
    api.state().gateways = vec![gateway.address()];
    let control = api.control("a", &[]);
    until("the first order", WITHIN, || (api.state().orders == [2]).then_some(()));
    api.state().stands_still = true;
    let lost = "policies cannot be followed; replicas stay as they are";
    until("the warning", WITHIN, || control.stderr().contains(lost).then_some(()));
    let requests = api.state().requests;
    until("further calls", WITHIN, || (api.state().requests > requests + 2).then_some(()));
    api.state().stands_still = false;
    until("it is heard again", WITHIN, || control.stderr().contains("policies are followed").then_some(()));
    api.state().spec["minReplicas"] = json!(3);
    until("the next order", WITHIN, || (api.state().orders == [2, 3]).then_some(()));
    let log = stop(control);
    assert_eq!(log.matches(lost).count(), 1, "{log}");
}

/// Two policies for one workload: the older one scales it, the other says whose it is.
#[test]
fn a_target_has_one_policy_and_the_other_is_told_which() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(3)));
    api.state().gateways = vec![gateway.address()];
    api.state().later.insert("again".to_owned(), with("minReplicas", json!(7)));
    let control = api.control("a", &[]);
    until("the older one's order", WITHIN, || (api.state().orders == [3]).then_some(()));
    let message = until("the condition of the other", WITHIN, || {
        let condition = api.state().later_status.get("again")?["conditions"][0].clone();
        (condition["reason"] == "TargetTaken").then(|| condition["message"].clone())
    });
    assert_eq!(message, "OverloadPolicy web scales the same target");
    api.wait_plans(FURTHER_PLANS);
    assert_eq!(api.state().orders, [3]);
    assert_eq!(reasons(&api).iter().filter(|it| *it == "TargetTaken").count(), 1, "{:?}", reasons(&api));
    stop(control);
}

/// A policy that asks for more than its pool has changes nothing and says why, once.
#[test]
fn a_policy_that_asks_for_more_than_the_pool_says_so_and_changes_nothing() {
    let gateway = scripted_gateway();
    let mut greedy = with("minReplicas", json!(5));
    greedy["pool"] = json!({ "name": "all", "servers": 4 });
    let api = ScriptedApi::start(greedy);
    api.state().gateways = vec![gateway.address()];
    let control = api.control("a", &[]);
    let message = until("the condition", WITHIN, || {
        let condition = api.state().status["conditions"][0].clone();
        (condition["reason"] == "InvalidPolicy").then(|| condition["message"].clone())
    });
    assert_eq!(message, "spec.pool.servers is 4: expected 5 to 1000000");
    api.wait_plans(FURTHER_PLANS);
    assert!(api.state().orders.is_empty(), "{:?}", api.state().orders);
    assert_eq!(reasons(&api), ["InvalidPolicy"]);
    api.state().spec["pool"]["servers"] = json!(6);
    until("an order once there is room", WITHIN, || (api.state().orders == [5]).then_some(()));
    stop(control);
}

/// A workload without pods, and nothing known of how long a request takes: demand brings one all the same.
#[test]
fn the_first_requests_at_a_workload_without_pods_order_one() {
    let gateway = gateway_without_pods();
    let api = ScriptedApi::start(with("minReplicas", json!(0)));
    {
        let mut state = api.state();
        (state.replicas, state.pods) = (0, Vec::new());
        state.gateways = vec![gateway.address()];
    }
    let control = api.control("a", &[]);
    until("a pod is ordered", WITHIN, || (api.state().orders == [1]).then_some(()));
    let log = stop(control);
    assert!(log.contains("Deployment web scaled from 0 to 1"), "{log}");
}

/// Goal: a leader that stands still is replaced, and writes nothing when it wakes up.
#[test]
fn a_leader_that_stands_still_is_replaced_and_writes_nothing_any_more() {
    let gateway = scripted_gateway();
    let api = ScriptedApi::start(with("minReplicas", json!(2)));
    api.state().gateways = vec![gateway.address()];
    let holder = || api.state().lease.as_ref().map(|lease| lease["spec"]["holderIdentity"].clone());
    let first = api.control("a", &[]);
    until("the first leader", WITHIN, || (api.state().orders == [2]).then_some(()));
    let second = api.control("b", &[]);
    until("the second candidate", WITHIN, || {
        second.stderr().contains("follows OverloadPolicies").then_some(())
    });
    first.signal(Signal::Pause);
    let since = Instant::now();
    until("the second leader", WITHIN, || (holder() == Some(json!("b"))).then_some(()));
    println!("the second leads {:?} after the first stood still", since.elapsed());
    assert_eq!(api.state().lease.as_ref().expect("a Lease")["spec"]["leaseTransitions"], 2);
    until("its term", WITHIN, || (api.state().status["term"] == 2).then_some(()));
    first.signal(Signal::Resume);
    api.state().spec["minReplicas"] = json!(4);
    until("the second leader's order", WITHIN, || (api.state().orders == [2, 4]).then_some(()));
    until("the first says so", WITHIN, || first.stderr().contains("leads no more").then_some(()));
    // Both read.
    api.wait_plans(2 * FURTHER_PLANS);
    assert_eq!(api.state().orders, [2, 4]);
    assert_eq!(api.state().status["term"], 2);
    assert_eq!(holder(), Some(json!("b")));
    stop(second);
    stop(first);
}

#[test]
fn without_a_cluster_one_line_says_what_is_expected() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let binary = flashweir_testkit::Flashweir::new(crate::kubernetes::BINARY);
    let arguments = ["control", "--kubernetes", "--kubeconfig", "none"];
    let finished = binary.run_in(directory.path(), STOPS_WITHIN, arguments);
    assert_eq!(finished.code(), Some(64));
    let line = finished.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with("flashweir: no access to a Kubernetes API server: "), "{}", finished.stderr);
    assert!(
        line.ends_with("expected a service account in a pod, $KUBECONFIG or --kubeconfig FILE"),
        "{line}"
    );
    let finished = binary.run(["control", "--kubernetes", "--interval-s", "0.1"]);
    assert_eq!(
        (finished.code(), finished.stderr.as_str()),
        (Some(64), "flashweir: --interval-s is 0.1: expected 0.5 to 3600\n")
    );
}

//! Goal: a gateway's upstreams are a Service's ready pods, from the API server's first answer on and without
//! it. Method: the real binary, servers on loopback, a scripted API server.

use crate::kubernetes::BINARY;
use crate::kubernetes::scripted_api::{ScriptedApi, spec};
use flashweir_testkit::{Client, Flashweir, GatewayBuilder, Upstream, reserve_address, until};
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(60);

#[test]
fn a_gateway_waits_for_the_first_pod_and_serves() {
    let server = Upstream::saying("from a pod");
    let api = ScriptedApi::start(spec());
    api.state().pods = Vec::new();
    let (listen, admin) = (reserve_address(), reserve_address());
    let arguments = [
        "run",
        "--upstream-service",
        "default/web:http",
        "--kubeconfig",
        "kubeconfig",
        "--listen",
        &listen.to_string(),
        "--admin",
        &admin.to_string(),
        "--state-file",
        "baseline.json",
    ];
    let gateway = Flashweir::new(BINARY).start(api.directory(), arguments);
    until("it waits", WITHIN, || gateway.stderr().contains("waits for the first pod").then_some(()));
    assert!(Client::try_connect(listen).is_err(), "no port opens before there is a server");
    api.state().pods = vec![server.address()];
    // The scripted watch never speaks: the pod is known when a gateway lists again, at its start.
    drop(gateway);
    let gateway = Flashweir::new(BINARY).start(api.directory(), arguments);
    until("it serves", WITHIN, || {
        Client::try_connect(listen).ok()?;
        (Client::get(listen, "/").text() == "from a pod").then_some(())
    });
    // Without an API server the last list stays in use.
    api.state().refuses = Some(503);
    assert_eq!(Client::get(listen, "/").status(), 200);
    drop(gateway);
}

/// Flags and file say where requests go until the API server has answered; one that is gone costs nothing but
/// that.
#[test]
fn without_an_api_server_the_other_upstreams_are_used() {
    let server = Upstream::saying("from the fallback");
    let api = ScriptedApi::start(spec());
    api.state().refuses = Some(500);
    let kubeconfig = api.directory().join("kubeconfig");
    let gateway = GatewayBuilder::new(&Flashweir::new(BINARY))
        .argument(&format!("--upstream={}", server.url()))
        .argument("--upstream-service=default/web:http")
        .argument(&format!("--kubeconfig={}", kubeconfig.display()))
        .start();
    assert_eq!(gateway.get("/").text(), "from the fallback");
    until("it is said", WITHIN, || {
        gateway.stderr().contains("EndpointSlices cannot be watched").then_some(())
    });
    let pod = Upstream::saying("from a pod");
    api.state().pods = vec![pod.address()];
    api.state().refuses = None;
    until("the pod is used", WITHIN, || (gateway.get("/").text() == "from a pod").then_some(()));
    assert_eq!(gateway.stderr().matches("EndpointSlices cannot be watched").count(), 1, "said once");
}

#[test]
fn a_wrong_reference_is_named() {
    let finished = Flashweir::new(BINARY).run(["run", "--upstream-service", "a/b/c"]);
    let expected =
        "flashweir: --upstream-service is `a/b/c`: expected [NAMESPACE/]NAME[:PORT], as shop/web:http\n";
    assert_eq!(finished.code(), Some(64));
    assert!(finished.stderr.ends_with(expected), "{}", finished.stderr);
}

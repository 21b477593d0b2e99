//! Goal: the chart is what its users get. Method: `helm lint`, and `helm install` as in docs/kubernetes.md
//! into a real control plane, where its pods run with the rights of the chart's own service accounts; then it
//! is uninstalled.

use crate::kubernetes::BINARY;
use crate::kubernetes::workload::{Cluster, DEPLOYMENTS, POLICIES, create_origin, ready, tools};
use flashweir_testkit::{Client, ControlPlane, Process, ProcessKubelet, skip, until};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Ten times what a busy machine takes.
const WITHIN: Duration = Duration::from_secs(120);
/// The values of the page's command.
const VALUES: [&str; 6] = [
    "--set",
    "policy.scaleTargetRef.name=web",
    "--set",
    "policy.service=web",
    "--set",
    "policy.maxReplicas=8",
];

/// Two gateways, which share the limit; each on its pod's address, because all addresses are this node's.
const SEVERAL: [&str; 4] = ["--set", "gateway.replicas=2", "--set", "gateway.bindAddress=$(POD_IP)"];

/// Path at which `make helm` puts it.
fn helm(test: &str) -> Option<PathBuf> {
    let helm = tools().join("helm");
    if helm.exists() {
        return Some(helm);
    }
    skip(test, "helm is not installed: `make helm CLUSTER_TESTS=1` builds it from its Go module");
    None
}

fn chart() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/flashweir").display().to_string()
}

#[test]
fn the_chart_is_without_reproach() {
    let Some(helm) = helm("the_chart_is_without_reproach") else { return };
    let directory = TempDir::new().expect("a directory");
    let chart = chart();
    for values in [&VALUES[..], &SEVERAL, &[]] {
        let words = ["lint", "--strict", &chart].into_iter().chain(values.iter().copied());
        let finished = Process::run(&helm, directory.path(), WITHIN, words);
        assert_eq!(finished.code(), Some(0), "{} {}", finished.stdout, finished.stderr);
    }
}

#[test]
fn the_chart_installs_serves_and_leaves() {
    const TEST: &str = "the_chart_installs_serves_and_leaves";
    let Some(helm) = helm(TEST) else { return };
    let cluster = Cluster { test: TEST, namespace: "chart", ..Cluster::default() };
    cluster.play(|plane| install(&plane, &helm));
}

fn install(plane: &ControlPlane, helm: &Path) {
    let api = plane.administrator();
    let directory = TempDir::new().expect("a directory");
    let programs = Path::new(BINARY).parent().expect("a folder");
    let _kubelet = ProcessKubelet::start_with_accounts(plane, "node", programs);
    // Pods of the chart listen on all addresses, which are all this node's, so the workload has its own port.
    create_origin(&api, 8070, &[]);
    let login = plane.kubeconfig("administrator").display().to_string();
    let run = |words: &[&str]| {
        let words = words.iter().copied().chain(["--kubeconfig", &login]);
        let finished = Process::run(helm, directory.path(), WITHIN, words);
        assert_eq!(finished.code(), Some(0), "{} {}", finished.stdout, finished.stderr);
    };
    let chart = chart();
    // One copy of the controller, for the same reason.
    let values = [&["flashweir", &chart, "--set", "control.replicas=1"], &VALUES[..], &SEVERAL].concat();
    run(&[&["install"], &values[..]].concat());
    let gateways = until("two gateways of the chart that share", WITHIN, || {
        let gateways = ready(&api, "flashweir-gateways");
        (gateways.len() == 2 && gateways.iter().all(|ip| shares(*ip))).then_some(gateways)
    });
    let gateway = gateways[0];
    until("an answer through it", WITHIN, || {
        let mut client = Client::try_connect(SocketAddr::new(gateway, 8080)).ok()?;
        client.try_send("GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").ok()?;
        (client.try_response().ok()?.status() == 200).then_some(())
    });
    until("the controller follows the chart's policy", WITHIN, || {
        let condition = api.get(&format!("{POLICIES}/flashweir")).body["status"]["conditions"][0].clone();
        (condition["reason"] == "ReplicasSet").then_some(())
    });
    // The key outlives an upgrade: gateways of the old and the new one understand each other.
    let key = || api.get("/api/v1/namespaces/default/secrets/flashweir-gateways").body["data"].clone();
    let drawn = key();
    assert!(drawn["cluster.keys"].as_str().is_some_and(|text| text.len() > 40), "{drawn}");
    run(&[&["upgrade"], &values[..]].concat());
    assert_eq!(key(), drawn);
    run(&["uninstall", "flashweir", "--wait"]);
    for (path, name) in
        [(DEPLOYMENTS, "flashweir"), (DEPLOYMENTS, "flashweir-control"), (POLICIES, "flashweir")]
    {
        until(&format!("{name} gone"), WITHIN, || {
            (api.get(&format!("{path}/{name}")).status == 404).then_some(())
        });
    }
}

/// Returns whether the gateway has a share of a limit that two divide.
fn shares(gateway: IpAddr) -> bool {
    let Ok(mut client) = Client::try_connect(SocketAddr::new(gateway, 9900)) else { return false };
    let asked = client.try_send("GET /status HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    let Some(answer) = asked.ok().and_then(|()| client.try_response().ok()) else { return false };
    let service = &answer.json()["cluster"]["services"][0];
    service["standing"] == "sharing" && service["gateways"] == 2
}

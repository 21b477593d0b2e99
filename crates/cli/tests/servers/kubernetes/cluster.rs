//! Goal: a crowd comes, pods come, requests are served; and gateways serve on without an API server. Method:
//! the released control plane, pods as real processes, the real binary, with the rights of
//! `deploy/kubernetes` and no others.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `a_crowd_of_four_times_is_served_nearly_as_by_one_who_knew_it`.

use crate::kubernetes::manifests::{document, read};
use crate::kubernetes::workload::{
    Cluster, POLICIES, Workload, create, create_origin, install, order, ready, scale,
};
use crate::kubernetes::{BINARY, PEOPLE};
use flashweir_testkit::{
    Client, ControlPlane, Flashweir, KubernetesApi, Load, Process, ProcessKubelet, Signal, until,
};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ten times what a busy machine takes.
const WITHIN: Duration = Duration::from_secs(120);
fn is_serving(ip: IpAddr) -> bool {
    let Ok(mut client) = Client::try_connect(SocketAddr::new(ip, 8080)) else { return false };
    let sent = client.try_send("GET / HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n");
    sent.is_ok() && client.try_response().is_ok_and(|answer| answer.status() == 200)
}

fn condition(api: &KubernetesApi) -> Value {
    api.get(&format!("{POLICIES}/web")).body["status"]["conditions"][0]["reason"].clone()
}

#[test]
#[ignore = "real load: make test-load"]
fn a_crowd_is_relieved_in_a_real_cluster_under_load() {
    let cluster = Cluster {
        test: "a_crowd_is_relieved_in_a_real_cluster_under_load",
        namespace: "cluster",
        users: &["control", "gateway"],
        ..Cluster::default()
    };
    cluster.play(|plane| Scene::begin(plane).play());
}

struct Scene {
    // Dropped in this order: programs, their node, then the API server that the node asks.
    control: Option<Process>,
    _kubelet: ProcessKubelet,
    plane: ControlPlane,
    directory: TempDir,
    api: KubernetesApi,
}

impl Scene {
    fn begin(plane: ControlPlane) -> Self {
        let api = plane.administrator();
        install(&api);
        let kubelet = ProcessKubelet::start(api.clone(), "node");
        until("the custom resource", WITHIN, || (api.get(POLICIES).status == 200).then_some(()));
        Self { control: None, _kubelet: kubelet, plane, directory: TempDir::new().expect("a directory"), api }
    }

    fn play(mut self) {
        let api = self.api.clone();
        // 25 requests/s and pod, without using the processor: pods share the machine's.
        create_origin(&api, 8080, &["--wait-ms", "40"]);
        let login = self.plane.kubeconfig("gateway").display().to_string();
        let gateway = [
            BINARY,
            "run",
            "--upstream-service=default/web:http",
            "--kubeconfig",
            &login,
            "--listen=$(POD_IP):8081",
            "--admin=$(POD_IP):9900",
            "--state-file=baseline.json",
            "--workers=1",
        ];
        let ports = [("http", 8081), ("admin", 9900)];
        Workload::one_pod("flashweir", "flashweir-gateways", &ports, &gateway).create(&api);
        let gateway = until("a gateway", WITHIN, || ready(&api, "flashweir-gateways").first().copied());
        let (door, admin) = (SocketAddr::new(gateway, 8081), SocketAddr::new(gateway, 9900));
        assert_eq!(Client::get(door, "/").status(), 200);
        self.time_orders();
        self.see_a_crowd(door, admin);
        self.see_an_autoscaler();
        self.lose_the_api_server(door);
    }

    /// From the PATCH of `scale` to a pod that serves.
    fn time_orders(&self) {
        for replicas in [3, 1, 2, 1] {
            let since = Instant::now();
            order(&self.api, "web", replicas);
            let pods = until("as many pods that serve", WITHIN, || {
                let pods = ready(&self.api, "web");
                (pods.len() == replicas as usize && pods.iter().all(|ip| is_serving(*ip))).then_some(pods)
            });
            println!("PATCH to {replicas} serving pods: {:?}", since.elapsed());
            assert_eq!(pods.len(), replicas as usize);
        }
    }

    fn see_a_crowd(&mut self, door: SocketAddr, admin: SocketAddr) {
        let mut policy = document(&read("policy.yaml"), "OverloadPolicy");
        policy["spec"]["maxReplicas"] = json!(4);
        policy["spec"]["startUpSeconds"] = json!(1.0);
        create(&self.api, POLICIES, &policy);
        let login = self.plane.kubeconfig("control").display().to_string();
        let arguments =
            ["control", "--kubernetes", "--kubeconfig", &login, "--interval-s", "0.5", "--identity", "test"];
        self.control = Some(Flashweir::new(BINARY).start(self.directory.path(), arguments));
        until("the policy is active", WITHIN, || (condition(&self.api) == "ReplicasSet").then_some(()));
        let url = format!("http://{door}/");
        let people = ["--sources", "400", "--source-network", PEOPLE];
        let options = [["--rate", "60", "--duration", "240s"], people].concat();
        let crowd = Load::start(&Flashweir::new(BINARY), &url, &options);
        let begun = Instant::now();
        let counts = || {
            let status = Client::get(admin, "/status").json();
            let count = |key: &str| status["requests"][key].as_u64().unwrap_or(0);
            (count("offered"), count("shed"))
        };
        until("pods for the crowd", WITHIN, || (scale(&self.api, "web") >= 3).then_some(()));
        println!("ordered {:?} after the crowd began, refused until then: {:?}", begun.elapsed(), counts());
        until("pods that are ready", WITHIN, || (ready(&self.api, "web").len() >= 3).then_some(()));
        until("the gateway uses them", WITHIN, || {
            let status = Client::get(admin, "/status").json();
            (status["upstreams"].as_array().map_or(0, Vec::len) >= 3).then_some(())
        });
        println!("in use {:?} after the crowd began", begun.elapsed());
        // The sentry learns what three pods carry.
        until("next to no request is refused", WITHIN, || {
            let before = counts();
            std::thread::park_timeout(Duration::from_secs(4));
            let now = counts();
            let (offered, shed) = (now.0 - before.0, now.1 - before.1);
            (offered > 100 && shed * 20 < offered).then_some(())
        });
        println!("served {:?} after the crowd began", begun.elapsed());
        drop(crowd);
        let events = self.api.get("/apis/events.k8s.io/v1/namespaces/default/events").body;
        let scaled = |event: &&Value| event["reason"] == "Scaled" && event["regarding"]["name"] == "web";
        assert!(
            events["items"].as_array().is_some_and(|items| items.iter().any(|event| scaled(&event))),
            "{events}"
        );
    }

    fn see_an_autoscaler(&self) {
        let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
        create(
            &self.api,
            path,
            &json!({
                "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "busy" },
                "spec": {
                    "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
                    "minReplicas": 1, "maxReplicas": 4,
                },
            }),
        );
        until("it is seen", WITHIN, || (condition(&self.api) == "AutoscalerOwnsReplicas").then_some(()));
        let _gone = self.api.delete(&format!("{path}/busy"));
        until("it is gone", WITHIN, || (condition(&self.api) == "ReplicasSet").then_some(()));
    }

    fn lose_the_api_server(&mut self, door: SocketAddr) {
        // On a busy machine it may have been missed before.
        let (lost, heard) = (
            "policies cannot be followed; replicas stay as they are",
            "API server heard again; policies are followed",
        );
        let said = |control: &Process, what: &str| control.stderr().matches(what).count();
        let control = self.control.take().expect("a controller");
        let (lost_before, terms_before) = (said(&control, lost), said(&control, "leads term="));
        self.plane.kill_api_server();
        let since = Instant::now();
        let mut answers = 0;
        while since.elapsed() < Duration::from_secs(16) {
            assert_eq!(
                Client::get(door, "/").status(),
                200,
                "after {:?} without an API server",
                since.elapsed()
            );
            answers += 1;
        }
        println!("{answers} answers in 16 s without an API server");
        assert_eq!(said(&control, lost), lost_before + 1, "{}", control.stderr());
        let heard_before = said(&control, heard);
        self.plane.start_api_server();
        until("the controller goes on", WITHIN, || (said(&control, heard) > heard_before).then_some(()));
        until("it leads again", WITHIN, || (said(&control, "leads term=") > terms_before).then_some(()));
        control.signal(Signal::Terminate);
        assert_eq!(control.finish(WITHIN).code(), Some(0));
    }
}

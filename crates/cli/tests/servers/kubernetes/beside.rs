//! A measurement, by `make bench-scale`: one crowd at three services of one real control plane at the same
//! time. Replicas of the first are set by `flashweir control`, of the second by a HorizontalPodAutoscaler on
//! processors at 70 %, of the third by one who knows the crowd.
//!
//! Times are divided by [`squeeze`]: the crowd of ten minutes, the pods' start of 30 s, and all times of the
//! autoscaler and its metrics. Of Flashweir's times only the interval between plans and the configured start
//! are: the gateway's and the planner's own are as they are.

use crate::kubernetes::manifests::{document, read};
use crate::kubernetes::workload::{Cluster, POLICIES, Workload, create, install, order, ready, scale};
use crate::kubernetes::{BINARY, PEOPLE};
use flashweir_testkit::{
    Client, ControlPlane, Flashweir, KubernetesApi, Load, Process, ProcessKubelet, ResourceMetrics, until,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TEST: &str = "a_crowd_beside_an_autoscaler_and_one_who_knew_it";
const WITHIN: Duration = Duration::from_secs(120);
/// Before the crowd; four times of it is the crowd.
const USUAL_RPS: f64 = 15.0;
const TIMES: f64 = 4.0;
/// A pod takes one request at a time, 80 ms each: 12.5 a second. It works 2.5 of them: with its share of HTTP
/// that is what it asks for.
const WORK_MS: &str = "2.5";
const WAIT_MS: &str = "77.5";
const POD_PROCESSOR: &str = "40m";
const USUAL_PODS: u32 = 2;
const PODS_MAX: u32 = 16;
/// Pods that keep the crowd below 0.95 of what they can do.
const CROWD_PODS: u32 = 6;
/// Of one who knows it and has servers to spare.
const KNOWN_PODS: u32 = 8;
const CROWD_S: f64 = 600.0;
const START_S: f64 = 30.0;
const INTERVAL_S: f64 = 10.0;
const SYNC_S: f64 = 15.0;
const STABILISATION_S: f64 = 300.0;
/// Not squeezed: sentries learn by requests, and servers are kept for a minute at least.
const BEFORE: Duration = Duration::from_secs(25);
const AFTER: Duration = Duration::from_secs(110);
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LANES: [&str; 3] = ["planned", "processors", "known"];

#[expect(clippy::disallowed_methods, reason = "a measurement's only option")]
fn squeeze() -> f64 {
    std::env::var("SQUEEZE").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0)
}

fn squeezed(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds / squeeze())
}

#[test]
#[ignore = "six minutes of measurements: make bench-scale"]
fn a_crowd_beside_an_autoscaler_and_one_who_knew_it() {
    let of = |seconds| format!("{:.2}s", squeezed(seconds).as_secs_f64());
    let options = [
        format!("--horizontal-pod-autoscaler-sync-period={}", of(SYNC_S)),
        format!("--horizontal-pod-autoscaler-downscale-stabilization={}", of(STABILISATION_S)),
        format!("--horizontal-pod-autoscaler-cpu-initialization-period={}", of(300.0)),
        format!("--horizontal-pod-autoscaler-initial-readiness-delay={}", of(30.0)),
    ];
    let controllers: Vec<&str> = options.iter().map(String::as_str).collect();
    let users = &["control", "gateway"];
    Cluster { test: TEST, namespace: "beside", users, controllers: &controllers }.play(measure);
}

fn measure(plane: ControlPlane) {
    let api = plane.administrator();
    install(&api);
    let kubelet = ProcessKubelet::start(api.clone(), "node");
    let metrics = ResourceMetrics::start(&api, &kubelet, squeezed(SYNC_S));
    until("the custom resource", WITHIN, || (api.get(POLICIES).status == 200).then_some(()));
    let login = plane.kubeconfig("gateway").display().to_string();
    LANES.iter().for_each(|name| begin(&api, name, &login));
    let lanes = LANES.map(|name| Lane::find(&api, name));
    create(&api, "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", &autoscaler());
    let directory = TempDir::new().expect("a directory");
    let control = control(&api, &plane, &directory);
    let rows = play(&api, &lanes);
    drop((control, metrics, kubelet));
    let found: Vec<Found> = lanes.iter().zip(rows).map(|(lane, rows)| lane.found(rows)).collect();
    tell(&found);
    let (planned, known) = (&found[0], found[2].served);
    assert!(planned.served / known > 0.8 && planned.reversals <= 2, "{planned:?}");
}

fn tell(found: &[Found]) {
    println!(
        "{TIMES} times {USUAL_RPS}/s for {:?}, pods start in {:?}: times of Kubernetes squeezed {} times",
        squeezed(CROWD_S),
        squeezed(START_S),
        squeeze()
    );
    let seconds = |at: Option<f64>| at.map_or("-".to_owned(), |at| format!("{at:.1} s"));
    for (name, it) in LANES.iter().zip(found) {
        println!(
            "{name}: {:.3} of the crowd in time, {:.3} of the oracle's; {} refused, the last after {}; more pods ordered after {}, enough of them \
             ready after {}, {} at most; {} reversals; {:.0} pod seconds",
            it.served,
            it.served / found[2].served,
            it.refused,
            seconds(it.last_refused_s),
            seconds(it.ordered_s),
            seconds(it.enough_s),
            it.pods_most,
            it.reversals,
            it.pod_seconds,
        );
    }
    println!(
        "wanted of `planned`: 0.9 of the oracle's; no request refused from {:?} after enough are ready on; 1 reversal",
        2 * squeezed(INTERVAL_S)
    );
}

/// Pods, and a gateway before them.
fn begin(api: &KubernetesApi, name: &str, login: &str) {
    let start = format!(
        "sleep {:.2}; exec {BINARY} origin --listen $(POD_IP):8080 --workers 1 --work-ms {WORK_MS} --wait-ms {WAIT_MS} --iterations-per-ms {}",
        squeezed(START_S).as_secs_f64(),
        flashweir_testbed::origin::calibrate(),
    );
    let (ports, command) = ([("http", 8080)], ["/bin/sh", "-c", &start]);
    let pods = Workload::one_pod(name, name, &ports, &command);
    Workload { replicas: USUAL_PODS, processor: Some(POD_PROCESSOR), ..pods }.create(api);
    let upstream = format!("--upstream-service=default/{name}:http");
    let state = format!("--state-file={name}.json");
    let gateway = [
        BINARY,
        "run",
        &upstream,
        "--kubeconfig",
        login,
        "--listen=$(POD_IP):8081",
        "--admin=$(POD_IP):9900",
        &state,
        "--workers=1",
    ];
    let gateways = gateways(name);
    Workload::one_pod(&gateways, &gateways, &[("http", 8081), ("admin", 9900)], &gateway).create(api);
}

fn gateways(name: &str) -> String {
    format!("{name}-gateways")
}

fn autoscaler() -> Value {
    // Whole seconds are what it takes.
    let period = squeezed(SYNC_S).as_secs_f64().round().max(1.0) as u64;
    let policy = |kind: &str, value: u32| json!({ "type": kind, "value": value, "periodSeconds": period });
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "processors" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "processors" },
            "minReplicas": 1, "maxReplicas": PODS_MAX,
            "metrics": [{ "type": "Resource", "resource": {
                "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 70 },
            }}],
            // Kubernetes' defaults, squeezed.
            "behavior": {
                "scaleUp": { "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [policy("Percent", 100), policy("Pods", 4)] },
                "scaleDown": {
                    "stabilizationWindowSeconds": squeezed(STABILISATION_S).as_secs(), "policies": [policy("Percent", 100)],
                },
            },
        },
    })
}

fn control(api: &KubernetesApi, plane: &ControlPlane, directory: &TempDir) -> Process {
    let mut policy = document(&read("policy.yaml"), "OverloadPolicy");
    let spec = &mut policy["spec"];
    spec["scaleTargetRef"]["name"] = json!("planned");
    spec["service"] = json!("planned");
    spec["gateways"]["service"] = json!(gateways("planned"));
    spec["maxReplicas"] = json!(PODS_MAX);
    spec["startUpSeconds"] = json!(squeezed(START_S).as_secs_f64());
    create(api, POLICIES, &policy);
    let login = plane.kubeconfig("control").display().to_string();
    let interval = format!("{:.2}", squeezed(INTERVAL_S).as_secs_f64());
    let arguments = ["control", "--kubernetes", "--kubeconfig", &login, "--interval-s", &interval];
    Flashweir::new(BINARY).start(directory.path(), arguments)
}

/// One service.
struct Lane {
    name: &'static str,
    door: SocketAddr,
    admin: SocketAddr,
}

/// One look.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Since the crowd came; negative before.
    at_s: f64,
    wanted: u32,
    ready: u32,
    shed: u64,
}

/// Outcome of a crowd.
#[derive(Debug)]
struct Found {
    /// Of the crowd's requests, those in time.
    served: f64,
    refused: u64,
    /// Times at which the first pods for it were ordered, and at which enough were ready.
    ordered_s: Option<f64>,
    enough_s: Option<f64>,
    /// The last refusal while it lasted.
    last_refused_s: Option<f64>,
    pods_most: u32,
    /// Number of changes from growing to shrinking or back.
    reversals: usize,
    pod_seconds: f64,
}

impl Lane {
    fn find(api: &KubernetesApi, name: &'static str) -> Self {
        let gateway = until("a gateway", WITHIN, || ready(api, &gateways(name)).first().copied());
        until("pods", WITHIN, || (ready(api, name).len() == USUAL_PODS as usize).then_some(()));
        let lane = Self { name, door: SocketAddr::new(gateway, 8081), admin: SocketAddr::new(gateway, 9900) };
        until("an answer", WITHIN, || (Client::get(lane.door, "/").status() == 200).then_some(()));
        lane
    }

    fn load(&self, rate_rps: f64, length: Duration, seed: &str) -> Load {
        let (rate, length) = (format!("{rate_rps}"), format!("{}ms", length.as_millis()));
        let options = [
            "--rate",
            &rate,
            "--duration",
            &length,
            "--seed",
            seed,
            "--sources",
            "400",
            "--source-network",
            PEOPLE,
        ];
        Load::start(&Flashweir::new(BINARY), &format!("http://{}/", self.door), &options)
    }

    fn look(&self, api: &KubernetesApi, at_s: f64) -> Row {
        let status = Client::get(self.admin, "/status").json();
        Row {
            at_s,
            wanted: scale(api, self.name),
            ready: ready(api, self.name).len() as u32,
            shed: status["requests"]["shed"].as_u64().unwrap_or(0),
        }
    }

    fn found(&self, (served, rows): (f64, Vec<Row>)) -> Found {
        let crowd_s = squeezed(CROWD_S).as_secs_f64();
        let crowd = || rows.iter().filter(|row| row.at_s >= 0.0);
        let shed = |pair: &[Row]| pair[1].shed.saturating_sub(pair[0].shed);
        let last = rows.windows(2).rfind(|pair| pair[1].at_s <= crowd_s && shed(pair) > 0);
        let directions =
            rows.windows(2).filter(|pair| pair[1].at_s >= 0.0 && pair[0].wanted != pair[1].wanted);
        let directions: Vec<bool> = directions.map(|pair| pair[1].wanted > pair[0].wanted).collect();
        let first_s = |is: &dyn Fn(&Row) -> bool| crowd().find(|row| is(row)).map(|row| row.at_s);
        Found {
            served,
            refused: rows.last().zip(rows.first()).map_or(0, |(last, first)| last.shed - first.shed),
            ordered_s: first_s(&|row| row.wanted > USUAL_PODS),
            enough_s: first_s(&|row| row.ready >= CROWD_PODS),
            last_refused_s: last.map(|pair| pair[1].at_s),
            pods_most: rows.iter().map(|row| row.ready).max().unwrap_or(0),
            reversals: directions.windows(2).filter(|pair| pair[0] != pair[1]).count(),
            pod_seconds: rows
                .windows(2)
                .map(|pair| (pair[1].at_s - pair[0].at_s) * f64::from(pair[0].ready))
                .sum(),
        }
    }
}

/// The usual demand, the crowd and the time after it, at all services at once: the share of the crowd's
/// requests that was in time, and what was looked at.
fn play(api: &KubernetesApi, lanes: &[Lane; 3]) -> Vec<(f64, Vec<Row>)> {
    let crowd = squeezed(CROWD_S);
    let usual: Vec<Load> =
        lanes.iter().map(|lane| lane.load(USUAL_RPS, BEFORE + crowd + AFTER, "1")).collect();
    let begun = Instant::now();
    let comes = begun + BEFORE;
    let mut rows = LANES.map(|_| Vec::new());
    let mut crowds = Vec::new();
    let (mut has_ordered, mut has_released) = (false, false);
    while begun.elapsed() < BEFORE + crowd + AFTER {
        let now = Instant::now();
        if !has_ordered && now + squeezed(START_S) + LOOK_EVERY >= comes {
            has_ordered = true;
            order(api, "known", KNOWN_PODS);
        }
        if crowds.is_empty() && now >= comes {
            let extra_rps = USUAL_RPS * (TIMES - 1.0);
            crowds = lanes.iter().map(|lane| lane.load(extra_rps, crowd, "2")).collect();
        }
        if !has_released && now >= comes + crowd {
            has_released = true;
            order(api, "known", USUAL_PODS);
        }
        for (lane, rows) in lanes.iter().zip(&mut rows) {
            let at_s = begun.elapsed().as_secs_f64() - BEFORE.as_secs_f64();
            let row = lane.look(api, at_s);
            let is_new =
                rows.last().is_none_or(|last: &Row| (last.wanted, last.ready) != (row.wanted, row.ready));
            if is_new {
                println!(
                    "{:>7.1} s {:<10} wanted {:>2}, ready {:>2}, refused {}",
                    at_s, lane.name, row.wanted, row.ready, row.shed
                );
            }
            rows.push(row);
        }
        park_timeout(LOOK_EVERY.saturating_sub(now.elapsed()));
    }
    drop(usual);
    let served = crowds.into_iter().map(|crowd| {
        let totals = crowd.finish(WITHIN);
        let count = |key: &str| totals[key].as_f64().unwrap_or_else(|| panic!("no {key} in {totals}"));
        count("goodput") / count("unique_offered")
    });
    served.zip(rows).collect()
}

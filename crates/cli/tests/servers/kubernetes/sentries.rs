//! A measurement, by `make bench-sentries`: gateways are added as their processors fill (figure 6 of the
//! Cataclysm paper, CAT-F6), in a real control plane. The load rises by equal steps, as in the paper and in
//! the simulator; times are divided by [`SQUEEZE`], and so is the interval between plans.
//!
//! A gateway is a pod with a tenth of a processor, kept by a control group: so three of them fill on a
//! machine with two processors that also has the clients, the origin and Kubernetes. What a request costs is
//! measured first; the steps are those parts of a full gateway that the paper's are of its 19,000 requests/s.

use crate::kubernetes::manifests::{document, read};
use crate::kubernetes::workload::{
    Cluster, POLICIES, Workload, create, create_origin, install, ready, scale,
};
use crate::kubernetes::{BINARY, PEOPLE};
use flashweir_testkit::{
    Client, ControlPlane, Flashweir, KubernetesApi, Load, Process, ProcessKubelet, until,
};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(120);
/// Processors of one gateway, and as Kubernetes writes them.
const PROCESSORS: f64 = 0.1;
const LIMIT: &str = "100m";
const SQUEEZE: f64 = 3.75;
/// The simulator's figure: as many minutes, each with this part of a full gateway's load more, a plan every 5
/// s.
const MINUTES: u32 = 9;
const STEP_PART: f64 = 4_000.0 / 19_000.0;
const INTERVAL_S: f64 = 5.0;
/// Times at which the simulator's repaired rule has the second gateway and the third.
const SIMULATED_S: [f64; 2] = [185.0, 425.0];
const HIGH: f64 = 0.8;
const GATEWAYS_MAX: u32 = 6;
/// Clients look for gateways this often: then all have the same part of the load, as by round robin of names.
const SLICE: Duration = Duration::from_secs(8);
const SLICES: u32 = 2;
const SERVICE: &str = "flashweir-gateways";

#[test]
#[ignore = "four minutes of measurements: make bench-sentries"]
fn gateways_are_added_as_their_processors_fill() {
    let cluster = Cluster {
        test: "gateways_are_added_as_their_processors_fill",
        namespace: "sentries",
        users: &["control", "gateway"],
        ..Cluster::default()
    };
    cluster.play(measure);
}

fn measure(plane: ControlPlane) {
    let api = plane.administrator();
    install(&api);
    let kubelet = ProcessKubelet::start(api.clone(), "node");
    let directory = TempDir::new().expect("a directory");
    begin(&api, &plane, &directory);
    let first = until("a gateway", WITHIN, || ready(&api, SERVICE).first().copied());
    until("an answer", WITHIN, || {
        (Client::get(SocketAddr::new(first, 8081), "/").status() == 200).then_some(())
    });
    let usable = status(first)["processors"].as_f64();
    assert!(usable.is_some_and(|processors| (processors - PROCESSORS).abs() < 1e-6), "{usable:?} processors");
    let full_rps = full_rps(first);
    println!("a gateway with {PROCESSORS} of a processor is full at {full_rps:.0} requests/s");
    let control = control(&api, &plane, &directory);
    let rows = play(&api, full_rps);
    drop((control, kubelet));
    judge(&rows);
}

/// Origins that wait, and the first gateway.
fn begin(api: &KubernetesApi, plane: &ControlPlane, directory: &TempDir) {
    create_origin(api, 8080, &["--workers", "200", "--wait-ms", "5"]);
    let file = directory.path().join("gateway.toml");
    std::fs::write(&file, "gateway.name = \"shop\"\ngateway.workers = 1\nflash_crowd.mode = \"off\"\n")
        .expect("a writable directory");
    let (file, login) = (file.display().to_string(), plane.kubeconfig("gateway").display().to_string());
    let gateway = [
        BINARY,
        "run",
        "--config",
        &file,
        "--upstream-service=default/web:http",
        "--kubeconfig",
        &login,
        "--listen=$(POD_IP):8081",
        "--admin=$(POD_IP):9900",
        "--state-file=$(POD_IP).json",
    ];
    let ports = [("http", 8081), ("admin", 9900)];
    Workload { processor_limit: Some(LIMIT), ..Workload::one_pod("flashweir", SERVICE, &ports, &gateway) }
        .create(api);
}

fn control(api: &KubernetesApi, plane: &ControlPlane, directory: &TempDir) -> Process {
    until("the custom resource", WITHIN, || (api.get(POLICIES).status == 200).then_some(()));
    let mut policy = document(&read("policy.yaml"), "OverloadPolicy");
    let spec = &mut policy["spec"];
    spec["maxReplicas"] = json!(1);
    spec["gateways"]["scaleTargetRef"] = json!({ "name": "flashweir" });
    spec["gateways"]["minReplicas"] = json!(1);
    spec["gateways"]["maxReplicas"] = json!(GATEWAYS_MAX);
    create(api, POLICIES, &policy);
    let login = plane.kubeconfig("control").display().to_string();
    let interval = format!("{:.2}", INTERVAL_S / SQUEEZE);
    let arguments = ["control", "--kubernetes", "--kubeconfig", &login, "--interval-s", &interval];
    Flashweir::new(BINARY).start(directory.path(), arguments)
}

fn status(ip: IpAddr) -> Value {
    Client::get(SocketAddr::new(ip, 9900), "/status").json()
}

/// Totals of a gateway.
#[derive(Clone, Copy, Debug)]
struct Totals {
    at: Instant,
    processor_s: f64,
    offered: u64,
    shed: u64,
}

impl Totals {
    fn of(ip: IpAddr) -> Self {
        let (at, status) = (Instant::now(), status(ip));
        let count = |key: &str| status["requests"][key].as_u64().unwrap_or(0);
        let processor_s = status["processor_s"].as_f64().expect("processor time");
        Self { at, processor_s, offered: count("offered"), shed: count("shed") }
    }
}

fn load(ip: IpAddr, rate_rps: f64, length: Duration, seed: u64) -> Load {
    let (rate, length, seed) =
        (format!("{rate_rps:.1}"), format!("{}ms", length.as_millis()), seed.to_string());
    let options = ["--rate", &rate, "--duration", &length, "--seed", &seed, "--sources", "40"];
    let options = [&options[..], &["--source-network", PEOPLE]].concat();
    Load::start(&Flashweir::new(BINARY), &format!("http://{ip}:8081/"), &options)
}

/// The rate that fills a gateway: by what a request costs when it is about three quarters full, and what the
/// gateway uses without any.
fn full_rps(ip: IpAddr) -> f64 {
    const LENGTH: Duration = Duration::from_secs(8);
    let used = || {
        let before = Totals::of(ip);
        park_timeout(LENGTH);
        let after = Totals::of(ip);
        let seconds = (after.at - before.at).as_secs_f64();
        (
            (after.processor_s - before.processor_s) / seconds,
            (after.offered - before.offered) as f64 / seconds,
        )
    };
    let (idle, _) = used();
    let mut full_rps = 100.0;
    for seed in 0..4 {
        let load = load(ip, 0.75 * full_rps, LENGTH + Duration::from_secs(1), seed);
        park_timeout(Duration::from_millis(500));
        let (busy, offered_rps) = used();
        drop(load.finish(WITHIN));
        // A first guess may be far off: it is not followed at once.
        full_rps = ((PROCESSORS - idle) / (busy - idle) * offered_rps).min(3.0 * full_rps);
        println!(
            "idle {idle:.4}, busy {busy:.4} of a processor at {offered_rps:.0}/s: full at {full_rps:.0}/s"
        );
    }
    full_rps
}

/// Measurements of one slice of time.
#[derive(Clone, Copy, Debug)]
struct Row {
    at_s: f64,
    ordered: u32,
    ready: u32,
    /// Utilisation of the busiest.
    busiest: f64,
    refused: u64,
}

fn play(api: &KubernetesApi, full_rps: f64) -> Vec<Row> {
    let begun = Instant::now();
    let mut rows: Vec<Row> = Vec::new();
    let mut ending = Vec::new();
    for slice in 0..MINUTES * SLICES {
        let rate_rps = f64::from(slice / SLICES + 1) * STEP_PART * full_rps;
        let gateways = ready(api, SERVICE);
        let before: Vec<Totals> = gateways.iter().map(|ip| Totals::of(*ip)).collect();
        let each_rps = rate_rps / gateways.len() as f64;
        let loads = gateways
            .iter()
            .zip(0..)
            .map(|(ip, place)| load(*ip, each_rps, SLICE, u64::from(slice) * 10 + place));
        let loads: Vec<Load> = loads.collect();
        // Orders are looked for while the load lasts.
        let until = SLICE * (slice + 1);
        let mut ordered = (0, 0.0);
        while begun.elapsed() < until {
            let now = scale(api, "flashweir");
            if now != ordered.0 {
                ordered = (now, begun.elapsed().as_secs_f64());
            }
            park_timeout(Duration::from_millis(250).min(until.saturating_sub(begun.elapsed())));
        }
        let after: Vec<Totals> = gateways.iter().map(|ip| Totals::of(*ip)).collect();
        let each = || before.iter().zip(&after);
        let busy = |(before, after): (&Totals, &Totals)| {
            (after.processor_s - before.processor_s) / (after.at - before.at).as_secs_f64() / PROCESSORS
        };
        let row = Row {
            at_s: if rows.last().is_some_and(|last| last.ordered == ordered.0) {
                until.as_secs_f64()
            } else {
                ordered.1
            },
            ordered: ordered.0,
            ready: gateways.len() as u32,
            busiest: each().map(busy).fold(0.0, f64::max),
            refused: each().map(|(before, after)| after.shed - before.shed).sum(),
        };
        let Row { at_s, ordered, ready, busiest, refused, .. } = row;
        println!(
            "{at_s:>6.1} s {rate_rps:>6.0}/s  gateways {ready} of {ordered} ordered, the busiest {:>4.0} %, refused {refused}",
            busiest * 100.0
        );
        rows.push(row);
        // Those of this slice end while the next one's begin: waiting for them would stretch the steps.
        let ended: Vec<Load> = std::mem::replace(&mut ending, loads);
        ended.into_iter().for_each(|load| drop(load.finish(WITHIN)));
    }
    ending.into_iter().for_each(|load| drop(load.finish(WITHIN)));
    rows
}

fn judge(rows: &[Row]) {
    let ordered_s = |count| rows.iter().find(|row| row.ordered >= count).map(|row| row.at_s);
    for (count, simulated_s) in (2..).zip(SIMULATED_S) {
        let seconds = |at: Option<f64>| {
            at.map_or("never".to_owned(), |at| format!("{at:.1} s, times {SQUEEZE} is {:.0} s", at * SQUEEZE))
        };
        println!(
            "gateway {count}: ordered after {} (simulated, repaired: {simulated_s} s)",
            seconds(ordered_s(count))
        );
    }
    let high = rows.iter().filter(|row| row.busiest > HIGH).count() as f64 * SLICE.as_secs_f64();
    let refused: u64 = rows.iter().map(|row| row.refused).sum();
    println!(
        "{high:.0} s with the busiest above {HIGH} (times {SQUEEZE}: {:.0} s; simulated: 10 s); {refused} refused; {} gateways at the end",
        high * SQUEEZE,
        rows.last().map_or(0, |row| row.ready)
    );
    let ordered: Vec<u32> = rows.iter().map(|row| row.ordered).collect();
    let (first, last) = (ordered.first().copied(), ordered.last().copied());
    // Times depend on what a request costs, which on a busy machine changes with the rate; what has to hold
    // is that the number follows the load.
    assert!(ordered.is_sorted() && first == Some(1) && last >= Some(3), "{ordered:?}");
    assert!(high <= 3.0 * SLICE.as_secs_f64(), "{high} s above {HIGH}");
}

//! A node whose pods are processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api::KubernetesApi;
use crate::process::{Process, Signal};

/// Between two looks at the pods of the node.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two signs of life of the node: the controller manager believes it gone after 40 s.
const BEAT_EVERY: Duration = Duration::from_secs(8);
/// A pod that was asked to stop is killed after this.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// A date for everything: conditions need one, and nothing here reads it.
const DATE: &str = "2026-01-01T00:00:00Z";

/// Starts, probes and stops the pods of one node until it is dropped.
#[derive(Debug)]
pub struct ProcessKubelet {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Pod {
    process: Process,
    address: SocketAddr,
    is_ready: bool,
    kill_at: Option<Instant>,
}

struct Node {
    api: KubernetesApi,
    name: String,
    directory: TempDir,
    pods: BTreeMap<String, Pod>,
    addresses: u16,
}

impl ProcessKubelet {
    /// A node of this name. Pods get addresses of 10.244.0.0/16, which must be the namespace's own; `$(POD_IP)` in a container's command is its
    /// pod's. To be dropped before the control plane.
    ///
    /// # Panics
    /// When the node cannot be registered.
    #[must_use]
    pub fn start(api: KubernetesApi, node: &str) -> Self {
        let stopping = Arc::<AtomicBool>::default();
        let mut node = Node {
            api,
            name: node.to_owned(),
            directory: TempDir::new().expect("a fresh directory"),
            pods: BTreeMap::new(),
            addresses: 1,
        };
        let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node.name } });
        let _node = node.api.create("/api/v1/nodes", &object).expect_ok("the node");
        let thread = {
            let stopping = stopping.clone();
            std::thread::spawn(move || node.run(&stopping))
        };
        Self { stopping, thread: Some(thread) }
    }
}

impl Drop for ProcessKubelet {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so; its pods are gone with it.
            let _panicked = thread.join();
        }
    }
}

impl Node {
    fn run(&mut self, stopping: &AtomicBool) {
        let mut beaten: Option<Instant> = None;
        while !stopping.load(Ordering::Relaxed) {
            // While the API server is away pods go on, as on a real node.
            if beaten.is_none_or(|at| at.elapsed() >= BEAT_EVERY) && self.beat() {
                beaten = Some(Instant::now());
            }
            self.look();
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    fn beat(&self) -> bool {
        let resources = json!({ "cpu": "64", "memory": "64Gi", "pods": "500" });
        let status = json!({ "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [{ "type": "InternalIP", "address": "10.244.255.2" }],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
                "lastHeartbeatTime": format!("{:.0}", Timestamp::now()), "lastTransitionTime": DATE,
            }],
        }});
        self.patch(&format!("/api/v1/nodes/{}/status", self.name), &status)
    }

    fn patch(&self, path: &str, patch: &Value) -> bool {
        let body = Some(("application/merge-patch+json", patch));
        self.api.try_call("PATCH", path, body).is_ok_and(|answer| answer.status < 300)
    }

    fn look(&mut self) {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", self.name);
        let Ok(answer) = self.api.try_call("GET", &path, None) else { return };
        let Some(items) = answer.body["items"].as_array() else { return };
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let known: Vec<String> = items.iter().map(uid).collect();
        self.pods.retain(|uid, _| known.contains(uid));
        for object in items {
            let uid = uid(object);
            if object["metadata"]["deletionTimestamp"].is_string() {
                self.stop(&uid, object);
            } else if let Some(pod) = self.pods.get(&uid) {
                let is_new = !pod.is_ready && TcpStream::connect(pod.address).is_ok();
                if is_new && self.patch(&format!("{}/status", path_of(object)), &running(object, pod.address))
                {
                    self.pods.entry(uid).and_modify(|pod| pod.is_ready = true);
                }
            } else {
                self.start(uid, object);
            }
        }
    }

    fn start(&mut self, uid: String, object: &Value) {
        self.addresses += 1;
        let [high, low] = self.addresses.to_be_bytes();
        let ip = Ipv4Addr::new(10, 244, high, low);
        let container = &object["spec"]["containers"][0];
        let words =
            ["command", "args"].iter().flat_map(|key| container[key].as_array().into_iter().flatten());
        let mut words =
            words.filter_map(Value::as_str).map(|word| word.replace("$(POD_IP)", &ip.to_string()));
        let (Some(program), Some(port)) = (words.next(), container["ports"][0]["containerPort"].as_u64())
        else {
            return;
        };
        let arguments = words.map(OsString::from);
        let process = Process::start(&PathBuf::from(program), self.directory.path(), arguments);
        let address = SocketAddr::from((ip, port as u16));
        self.pods.insert(uid, Pod { process, address, is_ready: false, kill_at: None });
    }

    /// Asks the process to stop, and removes the pod when it is gone.
    fn stop(&mut self, uid: &str, object: &Value) {
        if let Some(pod) = self.pods.get_mut(uid) {
            let now = Instant::now();
            match pod.kill_at {
                None => {
                    // It may have ended by itself.
                    let _gone = pod.process.try_signal(Signal::Terminate);
                    pod.kill_at = Some(now + STOPS_WITHIN);
                }
                Some(at) if now >= at => {
                    let _gone = pod.process.try_signal(Signal::Kill);
                }
                Some(_) => {}
            }
            if pod.process.ended().is_none() {
                return;
            }
        }
        let delete = format!("{}?gracePeriodSeconds=0", path_of(object));
        // One that fails is tried again at the next look.
        let _again = self.api.try_call("DELETE", &delete, None);
    }
}

fn path_of(pod: &Value) -> String {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
    format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"))
}

fn running(pod: &Value, address: SocketAddr) -> Value {
    let ip = address.ip().to_string();
    let container = &pod["spec"]["containers"][0];
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": DATE });
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({ "status": {
        "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "hostIP": "10.244.255.2", "startTime": DATE,
        "conditions": conditions,
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "process", "ready": true,
            "started": true, "restartCount": 0, "state": { "running": { "startedAt": DATE } },
        }],
    }})
}

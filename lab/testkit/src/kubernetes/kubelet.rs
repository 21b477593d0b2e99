//! A node whose pods are processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api::KubernetesApi;
use super::plane::{ControlPlane, Login};
use super::processor_limit::ProcessorLimit;
use crate::process::{Process, Signal, signal_process};

/// Between two looks at the pods of the node.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Between two signs of life of the node: the controller manager believes it gone after 40 s.
const BEAT_EVERY: Duration = Duration::from_secs(8);
/// A pod that was asked to stop is killed after this.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// A date for the node: its condition needs one, and nothing reads it.
const DATE: &str = "2026-01-01T00:00:00Z";

/// Starts, probes and stops the pods of one node until it is dropped.
#[derive(Debug)]
pub struct ProcessKubelet {
    stopping: Arc<AtomicBool>,
    running: Arc<Mutex<Vec<RunningPod>>>,
    thread: Option<JoinHandle<()>>,
}

/// A pod whose process runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunningPod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) container: String,
    pub(super) labels: Value,
    pub(super) ip: IpAddr,
    /// The process.
    pub(super) id: u32,
}

struct Pod {
    // Dropped in this order: a group goes after its processes.
    process: Process,
    _limit: Option<ProcessorLimit>,
    about: RunningPod,
    address: SocketAddr,
    /// Beginning, as Kubernetes writes times.
    began: String,
    is_ready: bool,
    kill_at: Option<Instant>,
}

struct Node {
    api: KubernetesApi,
    name: String,
    directory: TempDir,
    pods: BTreeMap<String, Pod>,
    running: Arc<Mutex<Vec<RunningPod>>>,
    addresses: u16,
    accounts: Option<Accounts>,
}

/// Access of pods with a service account.
struct Accounts {
    login: Login,
    /// Directory of their programs, beside the system's.
    programs: PathBuf,
}

impl ProcessKubelet {
    /// A node of this name. Pods get addresses of 10.244.0.0/16, which must be the namespace's own;
    /// `$(POD_IP)` in a container's command is its pod's. A limit of processor time is kept by a control
    /// group. To be dropped before the control plane.
    ///
    /// # Panics
    /// When the node cannot be registered.
    #[must_use]
    pub fn start(api: KubernetesApi, node: &str) -> Self {
        Self::begin(api, node, None)
    }

    /// As [`ProcessKubelet::start`]; a pod with a service account has `$KUBECONFIG` with a token of that
    /// account, and finds programs in `programs`, as in an image.
    ///
    /// # Panics
    /// When the node cannot be registered.
    #[must_use]
    pub fn start_with_accounts(plane: &ControlPlane, node: &str, programs: &Path) -> Self {
        let accounts = Accounts { login: plane.login(), programs: programs.to_owned() };
        Self::begin(plane.administrator(), node, Some(accounts))
    }

    fn begin(api: KubernetesApi, node: &str, accounts: Option<Accounts>) -> Self {
        let (stopping, running) = (Arc::<AtomicBool>::default(), Arc::<Mutex<_>>::default());
        let mut node = Node {
            api,
            name: node.to_owned(),
            directory: TempDir::new().expect("a fresh directory"),
            pods: BTreeMap::new(),
            running: running.clone(),
            addresses: 1,
            accounts,
        };
        let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node.name } });
        let _node = node.api.create("/api/v1/nodes", &object).expect_ok("the node");
        let thread = {
            let stopping = stopping.clone();
            std::thread::spawn(move || node.run(&stopping))
        };
        Self { stopping, running, thread: Some(thread) }
    }

    /// Sends a signal to the process of the pod with this address; false where there is none. The cluster
    /// does not hear of it, as when a machine fails.
    #[must_use]
    pub fn signal(&self, ip: IpAddr, signal: Signal) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().find(|pod| pod.ip == ip).is_some_and(|pod| signal_process(pod.id, signal))
    }

    /// Pods whose processes run, for [`ResourceMetrics`](super::ResourceMetrics).
    pub(super) fn running(&self) -> Arc<Mutex<Vec<RunningPod>>> {
        self.running.clone()
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
                "lastHeartbeatTime": date(), "lastTransitionTime": DATE,
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
                let status = || running(object, pod);
                if is_new && self.patch(&format!("{}/status", path_of(object)), &status()) {
                    self.pods.entry(uid).and_modify(|pod| pod.is_ready = true);
                }
            } else {
                self.start(uid, object);
            }
        }
        let running = self.pods.values().filter(|pod| pod.kill_at.is_none()).map(|pod| pod.about.clone());
        // A list is replaced as a whole.
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running.collect();
    }

    fn start(&mut self, uid: String, object: &Value) {
        self.addresses += 1;
        let [high, low] = self.addresses.to_be_bytes();
        let ip = Ipv4Addr::new(10, 244, high, low);
        let container = &object["spec"]["containers"][0];
        let words =
            ["command", "args"].iter().flat_map(|key| container[key].as_array().into_iter().flatten());
        let mounted = |word: &str| self.mounted(&uid, container, word);
        let words =
            words.filter_map(Value::as_str).map(|word| mounted(&word.replace("$(POD_IP)", &ip.to_string())));
        // One whose Secret or account is not there yet is tried again at the next look.
        if !self.write_secrets(&uid, object, container) {
            return;
        }
        let Some(environment) = self.environment(object) else { return };
        let limit = ProcessorLimit::of(container, &uid);
        let join = limit.iter().flat_map(ProcessorLimit::words);
        let mut words = join.chain(environment).chain(words);
        let (Some(program), Some(port)) = (words.next(), container["ports"][0]["containerPort"].as_u64())
        else {
            return;
        };
        let arguments = words.map(OsString::from);
        let process = Process::start(&PathBuf::from(program), self.directory.path(), arguments);
        let address = SocketAddr::from((ip, port as u16));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let about = RunningPod {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            container: text(&container["name"]),
            labels: metadata["labels"].clone(),
            ip: ip.into(),
            id: process.id(),
        };
        let pod =
            Pod { process, _limit: limit, about, address, began: date(), is_ready: false, kill_at: None };
        self.pods.insert(uid, pod);
    }

    /// The words that run a pod's command with its account; none where that has no token yet.
    fn environment(&self, object: &Value) -> Option<Vec<String>> {
        let account = object["spec"]["serviceAccountName"].as_str().filter(|name| *name != "default");
        let (Some(account), Some(accounts)) = (account, &self.accounts) else { return Some(Vec::new()) };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let answer = self.api.try_call("POST", &path, Some(("application/json", &request))).ok()?;
        let login = accounts.login.write(account, answer.body["status"]["token"].as_str()?);
        let path = format!("PATH={}:/usr/bin:/bin", accounts.programs.display());
        Some(vec!["/usr/bin/env".to_owned(), format!("KUBECONFIG={}", login.display()), path])
    }

    /// Writes what a container mounts of Secrets; false where one is not there yet.
    fn write_secrets(&self, uid: &str, object: &Value, container: &Value) -> bool {
        let mount_of = |volume: &Value| {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            let mut found = mounts.filter(|mount| mount["name"] == volume["name"]);
            found.next().and_then(|mount| mount["mountPath"].as_str())
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        object["spec"]["volumes"].as_array().into_iter().flatten().all(|volume| {
            let Some(secret) = volume["secret"]["secretName"].as_str() else { return true };
            let Some(mount) = mount_of(volume) else { return true };
            let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
            let Ok(answer) = self.api.try_call("GET", &path, None) else { return false };
            let folder = self.folder(uid, mount);
            for (name, value) in answer.body["data"].as_object().into_iter().flatten() {
                let content = STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64");
                std::fs::write(folder.join(name), content).expect("a writable directory");
            }
            answer.status == 200
        })
    }

    fn folder(&self, uid: &str, mount: &str) -> PathBuf {
        let folder = self.directory.path().join(format!("{uid}{}", mount.replace('/', "-")));
        std::fs::create_dir_all(&folder).expect("a writable directory");
        folder
    }

    /// A word of a command with the container's mounts in this node's folder: each is an empty one, or has a
    /// Secret in it.
    fn mounted(&self, uid: &str, container: &Value, word: &str) -> String {
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        let mounts = mounts.filter_map(|mount| mount["mountPath"].as_str());
        mounts.fold(word.to_owned(), |word, mount| {
            word.replace(&format!("{mount}/"), &format!("{}/", self.folder(uid, mount).display()))
        })
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

/// Now, as Kubernetes writes times: an autoscaler goes by when pods began and got ready.
pub(super) fn date() -> String {
    format!("{:.0}", Timestamp::now())
}

fn running(object: &Value, pod: &Pod) -> Value {
    let (ip, now) = (pod.address.ip().to_string(), date());
    let container = &object["spec"]["containers"][0];
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({ "status": {
        "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "hostIP": "10.244.255.2", "startTime": pod.began,
        "conditions": conditions,
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "process", "ready": true,
            "started": true, "restartCount": 0, "state": { "running": { "startedAt": pod.began } },
        }],
    }})
}

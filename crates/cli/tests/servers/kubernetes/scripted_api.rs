//! An API server with one policy, one workload and one Lease, and every fault that a test asks for.

use crate::kubernetes::BINARY;
use flashweir_testkit::{Connection, Flashweir, Message, Process, Upstream, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Ten times what an idle machine takes.
const PLANS_WITHIN: Duration = Duration::from_secs(60);
const POLICIES: &str = "/apis/flashweir.dev/v1alpha1/namespaces/default/overloadpolicies";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// Objects in the cluster, and the server's behaviour.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) spec: Value,
    pub(crate) status: Value,
    pub(crate) replicas: u64,
    pub(crate) scale_version: u64,
    pub(crate) autoscalers: Vec<Value>,
    pub(crate) lease: Option<Value>,
    pub(crate) events: Vec<Value>,
    /// Replicas that were written, in order.
    pub(crate) orders: Vec<u64>,
    pub(crate) status_writes: usize,
    /// Answers of this status to everything.
    pub(crate) refuses: Option<u16>,
    /// Takes every request and answers none.
    pub(crate) stands_still: bool,
    /// Policies that came after the first, and what was written of each.
    pub(crate) later: BTreeMap<String, Value>,
    pub(crate) later_status: BTreeMap<String, Value>,
    /// The next write of replicas meets a version that changed meanwhile.
    pub(crate) conflicts: usize,
    /// Addresses of the gateways' admin listeners, and of the workload's pods.
    pub(crate) gateways: Vec<SocketAddr>,
    pub(crate) pods: Vec<SocketAddr>,
    pub(crate) requests: usize,
    /// Readings of the policies: each plan begins with one, and a controller that follows makes them too.
    pub(crate) readings: usize,
}

/// The server, gone when dropped.
pub(crate) struct ScriptedApi {
    server: Upstream,
    state: Arc<Mutex<State>>,
    directory: TempDir,
}

impl ScriptedApi {
    pub(crate) fn start(spec: Value) -> Self {
        let state = Arc::new(Mutex::new(State {
            spec,
            status: json!({}),
            replicas: 1,
            scale_version: 1,
            autoscalers: Vec::new(),
            lease: None,
            events: Vec::new(),
            orders: Vec::new(),
            status_writes: 0,
            refuses: None,
            stands_still: false,
            later: BTreeMap::new(),
            later_status: BTreeMap::new(),
            conflicts: 0,
            gateways: Vec::new(),
            pods: vec!["10.0.0.1:8080".parse().expect("an address")],
            requests: 0,
            readings: 0,
        }));
        let shared = state.clone();
        let server = Upstream::start(move |connection| {
            while let Some(request) = connection.read_request() {
                if !answer(connection, &request, &shared) {
                    return;
                }
            }
        });
        let directory = TempDir::new().expect("a directory");
        let api = Self { server, state, directory };
        api.write_kubeconfig();
        api
    }

    fn write_kubeconfig(&self) {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": self.server.url() } }],
            "users": [{ "name": "it", "user": { "token": "secret" } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it", "namespace": "default" } }],
        });
        std::fs::write(self.directory.path().join("kubeconfig"), config.to_string())
            .expect("a writable directory");
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Waits for plans that begin from now on, and for the end of all but the last.
    pub(crate) fn wait_plans(&self, count: usize) {
        let readings = self.state().readings;
        until("further plans", PLANS_WITHIN, || (self.state().readings > readings + count).then_some(()));
    }

    /// A controller of this cluster that plans twice a second.
    pub(crate) fn control(&self, identity: &str, more: &[&str]) -> Process {
        let arguments = [
            "control",
            "--kubernetes",
            "--kubeconfig",
            "kubeconfig",
            "--interval-s",
            "0.5",
            "--identity",
            identity,
        ];
        let arguments = arguments.iter().chain(more).copied();
        Flashweir::new(BINARY).start(self.directory(), arguments)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a policy that tests do not change.
pub(crate) fn spec() -> Value {
    json!({
        "scaleTargetRef": { "name": "web" }, "service": "web",
        "gateways": { "service": "flashweir-gateways" }, "minReplicas": 1, "maxReplicas": 8,
    })
}

/// A gateway whose demand never changes.
pub(crate) fn scripted_gateway() -> Upstream {
    gateway_with(|| (100, 100))
}

/// A gateway with more demand each time, and no server for it.
pub(crate) fn gateway_without_pods() -> Upstream {
    let offered = AtomicU64::new(0);
    gateway_with(move || (offered.fetch_add(5, Ordering::Relaxed), 0))
}

/// A gateway by the requests that it was offered and has admitted.
fn gateway_with(counts: impl Fn() -> (u64, u64) + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |connection| {
        while connection.read_request().is_some() {
            let (offered, admitted) = counts();
            let status = json!({
                "workers": 1, "requests": { "offered": offered, "unique_offered": offered },
                "services": [{ "name": "default", "demand": [
                    { "name": "default", "offered": offered, "admitted": admitted, "refused": {} },
                ]}],
            });
            if !connection.answer(200, "Content-Type: application/json\r\n", status.to_string()) {
                return;
            }
        }
    })
}

fn answer(connection: &mut Connection, request: &Message, state: &Mutex<State>) -> bool {
    let mut words = request.start.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let mut state = lock(state);
    state.requests += 1;
    if state.stands_still {
        drop(state);
        // Until the client gives up.
        connection.stall();
        return false;
    }
    let (status, object) = match state.refuses {
        Some(code) => (code, failure(code, "on request of the test")),
        None if query.contains("watch=1") || query.contains("watch=true") => {
            drop(state);
            // A watch without changes; it ends with the test.
            return connection.send(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            ) && connection.stall();
        }
        None => reply(&mut state, method, path, query, &body),
    };
    drop(state);
    connection.answer(status, "Content-Type: application/json\r\n", object.to_string())
}

fn reply(state: &mut State, method: &str, path: &str, query: &str, body: &Value) -> (u16, Value) {
    match (method, path) {
        ("GET", POLICIES) => {
            state.readings += 1;
            let later = state.later.iter().map(|(name, spec)| {
                let status = state.later_status.get(name).cloned().unwrap_or_else(|| json!({}));
                policy(name, "2026-01-02T00:00:00Z", spec, &status)
            });
            let all = [first(state)].into_iter().chain(later).collect();
            (200, list("flashweir.dev/v1alpha1", "OverloadPolicy", all))
        }
        ("PATCH", path) if path.starts_with(POLICIES) && path.ends_with("/status") => {
            let status = body["status"].clone();
            match path.split('/').rev().nth(1) {
                Some(name) if state.later.contains_key(name) => {
                    state.later_status.insert(name.to_owned(), status);
                }
                _ => {
                    state.status_writes += 1;
                    state.status = status;
                }
            }
            (200, first(state))
        }
        ("GET", SCALE) => (200, scale(state)),
        ("PATCH", SCALE) => {
            if state.conflicts > 0 {
                state.conflicts -= 1;
                state.scale_version += 1;
            }
            let expected = body["metadata"]["resourceVersion"].as_str();
            if expected != Some(&state.scale_version.to_string()) {
                return (409, failure(409, "the object has been modified"));
            }
            state.replicas = body["spec"]["replicas"].as_u64().expect("a number of replicas");
            state.scale_version += 1;
            state.orders.push(state.replicas);
            (200, scale(state))
        }
        ("GET", SLICES) => (200, list("discovery.k8s.io/v1", "EndpointSlice", slices(state, query))),
        ("GET", AUTOSCALERS) => {
            (200, list("autoscaling/v2", "HorizontalPodAutoscaler", state.autoscalers.clone()))
        }
        ("POST", EVENTS) => {
            state.events.push(body.clone());
            (201, body.clone())
        }
        ("GET", LEASES) => {
            (200, list("coordination.k8s.io/v1", "Lease", state.lease.iter().cloned().collect()))
        }
        (_, path) if path.starts_with(LEASES) => lease(state, method, body),
        _ => (404, failure(404, &format!("{method} {path} is not scripted"))),
    }
}

fn lease(state: &mut State, method: &str, body: &Value) -> (u16, Value) {
    let version = |lease: &Value| lease["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    match (method, &state.lease) {
        ("GET", Some(lease)) => (200, lease.clone()),
        ("POST", None) => (201, keep(state, body, 1)),
        ("PUT", Some(lease)) if version(lease) == version(body) => {
            let next = version(lease).and_then(|it| it.parse::<u64>().ok()).unwrap_or(0) + 1;
            (200, keep(state, body, next))
        }
        ("GET", None) => (404, failure(404, "leases.coordination.k8s.io not found")),
        _ => (409, failure(409, "the object has been modified")),
    }
}

fn keep(state: &mut State, body: &Value, version: u64) -> Value {
    let mut lease = body.clone();
    lease["metadata"]["resourceVersion"] = json!(version.to_string());
    state.lease = Some(lease.clone());
    lease
}

fn first(state: &State) -> Value {
    policy("web", "2026-01-01T00:00:00Z", &state.spec, &state.status)
}

fn policy(name: &str, created: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "flashweir.dev/v1alpha1", "kind": "OverloadPolicy",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "generation": 1, "resourceVersion": "1",
            "creationTimestamp": created,
        },
        "spec": spec, "status": status,
    })
}

fn scale(state: &State) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "web", "namespace": "default", "resourceVersion": state.scale_version.to_string() },
        "spec": { "replicas": state.replicas }, "status": { "replicas": state.replicas },
    })
}

fn slices(state: &State, query: &str) -> Vec<Value> {
    let (port, addresses) =
        if query.contains("flashweir-gateways") { ("admin", &state.gateways) } else { ("http", &state.pods) };
    let slice = |(index, address): (usize, &SocketAddr)| {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "name": format!("{port}-{index}"), "namespace": "default", "resourceVersion": "1" },
            "ports": [{ "name": port, "port": address.port() }],
            "endpoints": [{ "addresses": [address.ip().to_string()], "conditions": { "ready": true } }],
        })
    };
    addresses.iter().enumerate().map(slice).collect()
}

fn list(api_version: &str, kind: &str, items: Vec<Value>) -> Value {
    json!({
        "apiVersion": api_version, "kind": format!("{kind}List"), "metadata": { "resourceVersion": "1" }, "items": items,
    })
}

fn failure(code: u16, message: &str) -> Value {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code, "message": message,
        "reason": reason,
    })
}

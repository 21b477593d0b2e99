//! Processor use of pods, as `metrics.k8s.io` reports it to an autoscaler: measured from the processes that
//! are the pods.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::api::KubernetesApi;
use super::kubelet::{ProcessKubelet, RunningPod, date};
use crate::deadline::until;

/// Between two readings of the processes' clocks.
const READ_EVERY: Duration = Duration::from_millis(250);
/// A connection that says nothing is closed after this.
const SILENCE: Duration = Duration::from_secs(5);
/// The API server looks for a new API at once; a busy one takes its time.
const AVAILABLE_WITHIN: Duration = Duration::from_secs(60);
/// An address that pods do not get.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 255, 3);
/// The kernel counts processor time in hundredths of a second (`USER_HZ`).
const TICK_S: f64 = 0.01;
const ROOT: &str = "/apis/metrics.k8s.io/v1beta1";

/// Readings of one pod within the window, oldest first: when, and processor seconds until then.
type Readings = VecDeque<(Instant, f64)>;

struct Shared {
    stopping: AtomicBool,
    window: Duration,
    /// By process.
    readings: Mutex<BTreeMap<u32, (RunningPod, Readings)>>,
    tls: Arc<ServerConfig>,
}

/// An API server for `metrics.k8s.io`, until it is dropped.
pub struct ResourceMetrics {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl ResourceMetrics {
    /// Reports the processor use of a node's pods, averaged over `window`, and registers itself. To be called
    /// in the namespace of the node's network, and dropped before the control plane.
    ///
    /// # Panics
    /// When it cannot be registered.
    #[must_use]
    pub fn start(api: &KubernetesApi, kubelet: &ProcessKubelet, window: Duration) -> Self {
        let listener = TcpListener::bind((ADDRESS, 0)).expect("an address of the node's network");
        let address = listener.local_addr().expect("an address");
        let readings = Mutex::default();
        let shared = Arc::new(Shared { stopping: AtomicBool::new(false), window, readings, tls: tls() });
        let running = kubelet.running();
        let reader = {
            let shared = shared.clone();
            std::thread::spawn(move || {
                while !shared.stopping.load(Ordering::Relaxed) {
                    let pods = running.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    shared.read(pods);
                    std::thread::park_timeout(READ_EVERY);
                }
            })
        };
        let server = {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    if shared.stopping.load(Ordering::Relaxed) {
                        return;
                    }
                    let shared = shared.clone();
                    // It ends with its connection, a few seconds later at most.
                    std::thread::spawn(move || shared.answer(stream));
                }
            })
        };
        register(api, address);
        Self { shared, address, threads: vec![reader, server] }
    }
}

impl Drop for ResourceMetrics {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // So that it looks.
        let _woken = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _panicked = thread.join();
        }
    }
}

impl Shared {
    fn read(&self, pods: Vec<RunningPod>) {
        let now = Instant::now();
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.retain(|id, _| pods.iter().any(|pod| pod.id == *id));
        for pod in pods {
            let Some(used_s) = processor_seconds(pod.id) else { continue };
            let (_, of_pod) = readings.entry(pod.id).or_insert_with(|| (pod, Readings::new()));
            of_pod.push_back((now, used_s));
            // One from before the window remains, so that all of it is covered.
            while of_pod.get(1).is_some_and(|&(at, _)| now.duration_since(at) >= self.window) {
                of_pod.pop_front();
            }
        }
    }

    /// One request.
    fn answer(&self, stream: TcpStream) {
        let timeouts = stream.set_read_timeout(Some(SILENCE)).and(stream.set_write_timeout(Some(SILENCE)));
        let (Ok(()), Ok(connection)) = (timeouts, ServerConnection::new(self.tls.clone())) else { return };
        let mut stream = BufReader::new(StreamOwned::new(connection, stream));
        let mut first = String::new();
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|length| length > 2) {
            if first.is_empty() {
                first.clone_from(&line);
            }
            line.clear();
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path.split_once('?').unwrap_or((path, "")) {
            (ROOT, _) => ("200 OK", resources()),
            (path, query) => match path.strip_prefix(ROOT).and_then(|rest| rest.strip_prefix("/namespaces/"))
            {
                Some(rest) => match rest.split_once('/') {
                    Some((namespace, "pods")) => ("200 OK", self.list(namespace, query)),
                    _ => ("404 Not Found", Value::Null),
                },
                None => ("404 Not Found", Value::Null),
            },
        };
        let body = body.to_string();
        // Who asked may be gone.
        let _sent = write!(
            stream.get_mut(),
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let stream = stream.get_mut();
        stream.conn.send_close_notify();
        let _flushed = stream.flush();
    }

    /// `PodMetricsList` of the pods that have the one label of the query, `labelSelector=KEY%3DVALUE`.
    fn list(&self, namespace: &str, query: &str) -> Value {
        let selector = query.split('&').find_map(|pair| pair.strip_prefix("labelSelector="));
        let selector = selector.and_then(|selector| selector.split_once("%3D"));
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_asked = |pod: &RunningPod| {
            pod.namespace == namespace && selector.is_none_or(|(key, value)| pod.labels[key] == value)
        };
        let items = readings.values().filter(|(pod, _)| is_asked(pod)).filter_map(|(pod, readings)| {
            let (&(from, before_s), &(to, after_s)) = (readings.front()?, readings.back()?);
            let passed = to.duration_since(from);
            // As Kubernetes' own server: nothing is said before there is half a window to say it of.
            let cores = (passed * 2 >= self.window).then(|| (after_s - before_s) / passed.as_secs_f64())?;
            Some(json!({
                "metadata": { "name": pod.name, "namespace": pod.namespace, "labels": pod.labels },
                "timestamp": date(), "window": format!("{:.3}s", passed.as_secs_f64()),
                "containers": [{
                    "name": pod.container, "usage": { "cpu": format!("{:.0}n", cores * 1e9), "memory": "16Mi" },
                }],
            }))
        });
        let items: Vec<Value> = items.collect();
        json!({ "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items })
    }
}

fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
        "resources": [{ "name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get", "list"] }],
    })
}

fn tls() -> Arc<ServerConfig> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![ADDRESS.to_string()]).expect("a good name");
    let certificate: CertificateDer<'static> = params.self_signed(&key).expect("a certificate").into();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    Arc::new(config.expect("a certificate and its key"))
}

/// A Service without pods, this server's address behind it, and the API that is there.
fn register(api: &KubernetesApi, address: SocketAddr) {
    let port = address.port();
    for (path, object) in [
        (
            "/api/v1/namespaces/default/services",
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": "resource-metrics" },
                "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": port }] },
            }),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "name": "resource-metrics", "labels": { "kubernetes.io/service-name": "resource-metrics" } },
                "endpoints": [{ "addresses": [address.ip().to_string()], "conditions": { "ready": true } }],
                "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
            }),
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": { "name": "v1beta1.metrics.k8s.io" },
                "spec": {
                    "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                    "insecureSkipTLSVerify": true,
                    "service": { "namespace": "default", "name": "resource-metrics", "port": 443 },
                },
            }),
        ),
    ] {
        let _created = api.create(path, &object).expect_ok(path);
    }
    let path = format!("{ROOT}/namespaces/default/pods");
    until("metrics.k8s.io", AVAILABLE_WITHIN, || (api.get(&path).status == 200).then_some(()));
}

/// Processor time that a process has used; none once it is gone.
fn processor_seconds(id: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Behind the name, which may have spaces: the state is field 3, user and system time are 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) * TICK_S)
}

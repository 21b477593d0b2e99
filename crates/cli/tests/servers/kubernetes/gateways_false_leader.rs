//! A leader in the test's hands: it has the key and the Lease, and says what it likes. Messages are written
//! down here by hand, after the bytes of docs/several-gateways.md's protocol, so that the gateway's own
//! encoder is not checked by itself.

use crate::kubernetes::gateways::KEY;
use crate::kubernetes::workload::create;
use flashweir_control::kubernetes::gateways::stream;
use flashweir_runtime::ClusterArrival;
use flashweir_testkit::KubernetesApi;
use ring::hmac;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

pub(crate) struct FalseLeader {
    term: Arc<AtomicU64>,
    repeats: Arc<AtomicBool>,
    /// Ends it when dropped.
    _stop: oneshot::Sender<()>,
}

impl FalseLeader {
    /// A Service without pods that has two gateways by a slice of the test's, and a Lease that the first one
    /// holds.
    pub(crate) fn announce(api: &KubernetesApi, service: &str, leader: &str, gateway: &str) {
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let labels = json!({ "kubernetes.io/service-name": service });
        let endpoints = [leader, gateway].map(|ip| json!({ "addresses": [ip] }));
        create(
            api,
            slices,
            &json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "name": service, "labels": labels },
                "ports": [{ "name": "reports", "port": 9920 }], "endpoints": endpoints,
            }),
        );
        create(
            api,
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            &json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": service },
                "spec": {
                    "holderIdentity": format!("{leader}:9920_false"), "leaseDurationSeconds": 3600, "leaseTransitions": 7,
                },
            }),
        );
    }

    /// Answers reports at an address.
    pub(crate) fn start(address: SocketAddr) -> Self {
        let (term, repeats) = (Arc::new(AtomicU64::new(7)), Arc::<AtomicBool>::default());
        let (stop, stopped) = oneshot::channel();
        let (term_now, repeats_now) = (term.clone(), repeats.clone());
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind(address).await.expect("a free port");
                let (arrivals, reports) = mpsc::channel(8);
                tokio::select! {
                    () = stream::serve(listener, arrivals) => {}
                    () = answer(reports, &term_now, &repeats_now) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { term, repeats, _stop: stop }
    }

    /// Speaks as in this term from now on.
    pub(crate) fn say(&self, term: u64) {
        self.term.store(term, Ordering::SeqCst);
    }

    /// Gives the answer to its first report again and again from now on.
    pub(crate) fn repeat(&self) {
        self.repeats.store(true, Ordering::SeqCst);
    }
}

async fn answer(mut reports: mpsc::Receiver<ClusterArrival>, term: &AtomicU64, repeats: &AtomicBool) {
    let mut first = None;
    while let Some(arrival) = reports.recv().await {
        let ClusterArrival::Report { sealed, answer } = arrival else { continue };
        // Behind the kind: which gateway, and the report's number.
        let asked: [u8; 16] = sealed[4..20].try_into().expect("a report");
        let asked = if repeats.load(Ordering::SeqCst) { first.unwrap_or(asked) } else { asked };
        first.get_or_insert(asked);
        let _gone = answer.send(Ok(broadcast(term.load(Ordering::SeqCst), asked)));
    }
}

/// A broadcast without services: the term, what it answers, the leader's name.
fn broadcast(term: u64, answers: [u8; 16]) -> Vec<u8> {
    let name = format!("false-{term}");
    let mut bytes = b"FWB\x02".to_vec();
    bytes.extend(term.to_be_bytes());
    bytes.extend(answers);
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend(0_u16.to_be_bytes());
    // The key's number, and the tag over all before.
    bytes.push(1);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes()), &bytes);
    bytes.extend(tag.as_ref());
    bytes
}

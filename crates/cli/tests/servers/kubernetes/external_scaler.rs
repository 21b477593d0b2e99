//! Goal: KEDA gets the number of replicas that a policy wants. Method: gRPC by curl against the real binary,
//! messages written and read byte by byte.

use crate::kubernetes::scripted_api::{ScriptedApi, scripted_gateway, spec};
use flashweir_testkit::{Curl, CurlOutput, reserve_address, until};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(60);

/// A field with a length: a text or a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("a short field");
    [&[number << 3 | 2, length], content].concat()
}

/// `ScaledObjectRef` of a trigger that names this policy.
fn object(policy: &str) -> Vec<u8> {
    let entry = [field(1, b"policy"), field(2, policy.as_bytes())].concat();
    [field(1, b"web"), field(2, b"default"), field(3, &entry)].concat()
}

struct Keda {
    curl: Curl,
    address: SocketAddr,
    question: std::path::PathBuf,
}

impl Keda {
    fn ask(&self, method: &str, message: &[u8]) -> CurlOutput {
        let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
        std::fs::write(&self.question, [&[0][..], &length, message].concat()).expect("a writable directory");
        let body = format!("@{}", self.question.display());
        let url = format!("http://{}/externalscaler.ExternalScaler/{method}", self.address);
        let arguments = [
            "--http2-prior-knowledge",
            "--data-binary",
            &body,
            "-H",
            "content-type: application/grpc",
            "-H",
            "te: trailers",
        ];
        self.curl.get(&url, &arguments)
    }
}

/// The message of an answer, after its head of five bytes.
fn message(answer: &CurlOutput) -> &[u8] {
    answer.body.get(5..).unwrap_or_default()
}

#[test]
fn keda_gets_the_number_that_a_policy_wants() {
    let Some(curl) = Curl::require("keda_gets_the_number_that_a_policy_wants") else { return };
    let gateway = scripted_gateway();
    let mut wanted = spec();
    wanted["minReplicas"] = json!(5);
    let api = ScriptedApi::start(wanted);
    api.state().gateways = vec![gateway.address()];
    // KEDA makes the autoscaler that owns the replicas.
    api.state().autoscalers = vec![json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "keda-hpa-web", "namespace": "default" },
        "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" } },
    })];
    let address = reserve_address();
    let _control = api.control("a", &["--external-scaler", &address.to_string()]);
    let keda = Keda { curl, address, question: api.directory().join("question") };
    let asked = field(1, &object("web"));
    let answer = until("a number", WITHIN, || {
        let answer = keda.ask("GetMetrics", &asked);
        (answer.fields.first("grpc-status") == Some("0")).then_some(answer)
    });
    // metricValues: name, 5 as an integer (field 2) and as a double (field 3).
    let value =
        [field(1, b"flashweir-replicas"), vec![2 << 3, 5], vec![3 << 3 | 1], 5.0_f64.to_le_bytes().to_vec()]
            .concat();
    assert_eq!(message(&answer), field(1, &value));
    let active = keda.ask("IsActive", &object("web"));
    assert_eq!((message(&active), active.fields.first("grpc-status")), (&[1 << 3, 1][..], Some("0")));
    let specification = keda.ask("GetMetricSpec", &object("web"));
    let target =
        [field(1, b"flashweir-replicas"), vec![2 << 3, 1], vec![3 << 3 | 1], 1.0_f64.to_le_bytes().to_vec()]
            .concat();
    assert_eq!(message(&specification), field(1, &target));
    let unknown = keda.ask("IsActive", &object("none"));
    assert_eq!(unknown.fields.first("grpc-status"), Some("5"), "NOT_FOUND");
    let nameless = keda.ask("IsActive", &field(1, b"web"));
    assert_eq!(nameless.fields.first("grpc-status"), Some("3"), "INVALID_ARGUMENT");
    assert!(api.state().orders.is_empty(), "KEDA's autoscaler owns the replicas");
}

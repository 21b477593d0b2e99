//! The Kubernetes API as this crate uses it: every call with a time limit, every failure of one of four
//! kinds.

use crate::kubernetes::lease::{LeaseRecord, LeaseStep};
use crate::kubernetes::objects::TargetReference;
use crate::kubernetes::policy::{OverloadPolicy, OverloadPolicyStatus};
use flashweir_core::Duration;
use flashweir_core::limits::KUBERNETES_POLICIES;
use jiff::Timestamp;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, discovery};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use tokio::time::timeout;

/// An API server that has not answered by then is treated as gone. Leadership outlasts a call that begins in
/// its first half.
pub(crate) const CALL_WITHIN: Duration = Duration::from_millis(900);
/// As what this program names itself to the API.
pub(crate) const FIELD_MANAGER: &str = "flashweir-control";

/// Reason for which a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// The server does not answer, or not in time.
    #[error("API server not heard: {0}")]
    Silent(String),
    /// It answers that it has too much to do.
    #[error("API server is overloaded ({code}): {message}")]
    Overloaded { code: u16, message: String },
    /// Another wrote first.
    #[error("the object was changed meanwhile")]
    Conflict,
    /// There is no such object.
    #[error("{0}")]
    Absent(String),
    /// It refuses.
    #[error("API server refuses ({code}): {message}")]
    Refused { code: u16, message: String },
}

impl ApiError {
    /// Returns whether the server itself is the trouble, so that other calls need not be tried either.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::Overloaded { .. })
    }
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let message = status.message.clone();
                match status.code {
                    404 => Self::Absent(message),
                    409 => Self::Conflict,
                    code @ (429 | 500..=599) => Self::Overloaded { code, message },
                    code => Self::Refused { code, message },
                }
            }
            other => Self::Silent(chain(&other)),
        }
    }
}

/// An error and its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        cause = next.source();
    }
    line
}

/// Replicas of a workload, as its subresource `scale` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) replicas: u32,
    pub(crate) version: String,
}

/// The API server, and the namespaces that are looked at.
pub(crate) struct Cluster {
    client: Client,
    /// The namespace whose policies are followed; none: all.
    namespace: Option<String>,
    /// Plural names of the kinds of targets, asked once each.
    kinds: RefCell<BTreeMap<(String, String), ApiResource>>,
}

/// A client by a file, or by what the environment has: `$KUBECONFIG`, then the pod's service account.
///
/// # Errors
/// Why there is none; in words for the operator.
pub(crate) async fn connect(kubeconfig: Option<&Path>) -> Result<(Client, String), String> {
    let mut config = match kubeconfig {
        Some(file) => {
            let read = Kubeconfig::read_from(file).map_err(|error| chain(&error))?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(read, &options).await.map_err(|error| chain(&error))?
        }
        None => Config::infer().await.map_err(|error| chain(&error))?,
    };
    config.connect_timeout = Some(CALL_WITHIN);
    // Each loop here has its own back-off, and a server in trouble is not helped by both.
    config.default_retry = false;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|error| chain(&error))?;
    Ok((client, namespace))
}

async fn within<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiError> {
    match timeout(CALL_WITHIN, call).await {
        Ok(result) => result.map_err(ApiError::from),
        Err(_) => Err(ApiError::Silent(format!("no answer within {CALL_WITHIN:?}"))),
    }
}

fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

fn values(objects: Vec<DynamicObject>) -> Vec<Value> {
    // Objects that came as JSON are JSON.
    objects.iter().filter_map(|object| serde_json::to_value(object).ok()).collect()
}

impl Cluster {
    pub(crate) fn new(client: Client, namespace: Option<String>) -> Self {
        Self { client, namespace, kinds: RefCell::default() }
    }

    fn api(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }

    /// All objects of a kind in the namespaces that are looked at.
    async fn all(&self, resource: &ApiResource) -> Result<Vec<Value>, ApiError> {
        let api = match &self.namespace {
            Some(namespace) => self.api(namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        Ok(values(within(api.list(&ListParams::default())).await?.items))
    }

    /// Policies, the oldest first; at most [`KUBERNETES_POLICIES`], and how many there are beyond.
    pub(crate) async fn policies(&self) -> Result<(Vec<Value>, usize), ApiError> {
        let mut found = self.all(&ApiResource::erase::<OverloadPolicy>(&())).await?;
        let text = |value: &Value, pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        found.sort_by_cached_key(|policy| {
            ["/metadata/creationTimestamp", "/metadata/namespace", "/metadata/name"]
                .map(|it| text(policy, it))
        });
        let beyond = found.len().saturating_sub(KUBERNETES_POLICIES);
        found.truncate(KUBERNETES_POLICIES);
        Ok((found, beyond))
    }

    /// HorizontalPodAutoscalers with their namespaces.
    pub(crate) async fn autoscalers(&self) -> Result<Vec<Value>, ApiError> {
        self.all(&kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")).await
    }

    /// EndpointSlices of a Service.
    pub(crate) async fn slices(&self, namespace: &str, service: &str) -> Result<Vec<Value>, ApiError> {
        let api = self.api(namespace, &endpoint_slices());
        let wanted = ListParams::default().labels(&of_service(service));
        Ok(values(within(api.list(&wanted)).await?.items))
    }

    /// The kind of a target with its plural, asked once.
    async fn resource(&self, target: &TargetReference) -> Result<ApiResource, ApiError> {
        let key = (target.api_version.clone(), target.kind.clone());
        if let Some(known) = self.kinds.borrow().get(&key) {
            return Ok(known.clone());
        }
        let wanted = GroupVersionKind::gvk(target.group(), target.version(), &target.kind);
        let found = match (target.group(), target.kind.as_str()) {
            // Discovery is a call that these need not.
            ("apps", "Deployment") => kind("apps", target.version(), "Deployment", "deployments"),
            ("apps", "StatefulSet") => kind("apps", target.version(), "StatefulSet", "statefulsets"),
            _ => within(discovery::pinned_kind(&self.client, &wanted)).await?.0,
        };
        self.kinds.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    /// Replicas of a target.
    pub(crate) async fn scale(&self, namespace: &str, target: &TargetReference) -> Result<Scale, ApiError> {
        let api = self.api(namespace, &self.resource(target).await?);
        let scale = within(api.get_scale(&target.name)).await?;
        let replicas = scale.spec.and_then(|spec| spec.replicas).unwrap_or(0);
        Ok(Scale {
            replicas: u32::try_from(replicas).unwrap_or(0),
            version: scale.metadata.resource_version.unwrap_or_default(),
        })
    }

    /// Sets a target's replicas, if it still has the version that was read.
    pub(crate) async fn set_scale(
        &self,
        namespace: &str,
        target: &TargetReference,
        read: &Scale,
        replicas: u32,
    ) -> Result<(), ApiError> {
        let api = self.api(namespace, &self.resource(target).await?);
        let patch =
            json!({ "metadata": { "resourceVersion": read.version }, "spec": { "replicas": replicas } });
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        within(api.patch_scale(&target.name, &parameters, &Patch::Merge(patch))).await.map(drop)
    }

    /// Writes a policy's status.
    pub(crate) async fn write_status(
        &self,
        namespace: &str,
        name: &str,
        status: &OverloadPolicyStatus,
    ) -> Result<(), ApiError> {
        let api = self.api(namespace, &ApiResource::erase::<OverloadPolicy>(&()));
        let patch = json!({ "status": status });
        within(api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch))).await.map(drop)
    }

    /// Publishes an event about a policy.
    pub(crate) async fn tell(
        &self,
        policy: &Value,
        event: &Event<'_>,
        reporter: &str,
    ) -> Result<(), ApiError> {
        /// The API takes notes of 1,024 bytes.
        const NOTE_CHARACTERS: usize = 250;
        let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace");
        let resource = kind("events.k8s.io", "v1", "Event", "events");
        let mut object = DynamicObject::new("", &resource).within(namespace).data(json!({
            "eventTime": format!("{:.6}", Timestamp::now()),
            "reportingController": "flashweir.dev/control",
            "reportingInstance": reporter,
            "action": event.action,
            "reason": event.reason,
            "type": if event.is_warning { "Warning" } else { "Normal" },
            "note": event.note.chars().take(NOTE_CHARACTERS).collect::<String>(),
            "regarding": {
                "apiVersion": text("/apiVersion"), "kind": "OverloadPolicy", "namespace": namespace,
                "name": text("/metadata/name"), "uid": text("/metadata/uid"),
            },
        }));
        object.metadata.name = None;
        object.metadata.generate_name = Some(format!("{}-", text("/metadata/name")));
        within(self.api(namespace, &resource).create(&PostParams::default(), &object)).await.map(drop)
    }

    /// A Lease, if it exists.
    pub(crate) async fn lease(&self, namespace: &str, name: &str) -> Result<Option<LeaseRecord>, ApiError> {
        let object = within(self.api(namespace, &leases()).get_opt(name)).await?;
        Ok(object.as_ref().map(lease_record))
    }

    /// Does what an election says; the version that the Lease has then, or [`ApiError::Conflict`] when
    /// another was first.
    pub(crate) async fn write_lease(
        &self,
        namespace: &str,
        name: &str,
        holder: &str,
        duration: Duration,
        step: &LeaseStep,
    ) -> Result<String, ApiError> {
        let resource = leases();
        let (version, transitions) = match step {
            LeaseStep::Create { transitions } => (None, *transitions),
            LeaseStep::Replace { version, transitions } => (Some(version.clone()), *transitions),
            LeaseStep::Wait => return Ok(String::new()),
        };
        let now = format!("{:.6}", Timestamp::now());
        let mut object = DynamicObject::new(name, &resource).within(namespace).data(json!({ "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": duration.as_secs().max(1),
            "leaseTransitions": transitions, "renewTime": now,
        }}));
        object.metadata.resource_version = version.clone();
        let api = self.api(namespace, &resource);
        let parameters = PostParams::default();
        let written = match version {
            None => within(api.create(&parameters, &object)).await?,
            Some(_) => within(api.replace(name, &parameters, &object)).await?,
        };
        Ok(written.metadata.resource_version.unwrap_or_default())
    }
}

/// Reads the record in a Lease.
pub(crate) fn lease_record(object: &DynamicObject) -> LeaseRecord {
    let spec = |key: &str| object.data.pointer("/spec")?.get(key);
    LeaseRecord {
        holder: spec("holderIdentity").and_then(Value::as_str).map(str::to_owned),
        duration: Duration::from_secs(spec("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or(1)),
        transitions: spec("leaseTransitions").and_then(Value::as_u64).unwrap_or(0),
        version: object.metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// Event of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Event<'a> {
    /// The action that was done or tried.
    pub(crate) action: &'a str,
    /// Reason, in one word.
    pub(crate) reason: &'a str,
    /// In a sentence.
    pub(crate) note: String,
    /// True if an operator has to act or to know.
    pub(crate) is_warning: bool,
}

/// The kind by which candidates agree who leads.
pub(crate) fn leases() -> ApiResource {
    kind("coordination.k8s.io", "v1", "Lease", "leases")
}

/// The kind that lists a Service's endpoints.
pub(crate) fn endpoint_slices() -> ApiResource {
    kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
}

/// The label by which EndpointSlices name their Service.
pub(crate) fn of_service(service: &str) -> String {
    format!("kubernetes.io/service-name={service}")
}

/// An error of a watch with its causes, in one line.
pub(crate) struct ApiErrorText<'a>(pub(crate) &'a (dyn std::error::Error + 'static));

impl std::fmt::Display for ApiErrorText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&chain(self.0))
    }
}

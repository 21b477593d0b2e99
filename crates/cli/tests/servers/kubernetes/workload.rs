//! Deployments of processes in a real cluster, and what the API server says of them.

use crate::kubernetes::BINARY;
use crate::kubernetes::manifests::{document, read};
use flashweir_testkit::{ControlPlane, KubernetesApi, Testbed};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

pub(crate) const POLICIES: &str = "/apis/flashweir.dev/v1alpha1/namespaces/default/overloadpolicies";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

/// Path at which `make testplane` puts the control plane, beside the profile's own folder.
pub(crate) fn tools() -> PathBuf {
    Path::new(BINARY).ancestors().nth(2).expect("a target directory").join("tools/bin")
}

/// Parts of a real cluster that a test needs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cluster<'a> {
    pub(crate) test: &'a str,
    /// Namespace of the machine's network in which it runs.
    pub(crate) namespace: &'a str,
    /// Users that may log in.
    pub(crate) users: &'a [&'a str],
    /// Further options of the controller manager.
    pub(crate) controllers: &'a [&'a str],
}

impl Cluster<'_> {
    /// Starts a control plane and plays a test in it; where one cannot be had, the test is skipped with a
    /// loud line.
    pub(crate) fn play(&self, play: impl FnOnce(ControlPlane) + Send) {
        let Self { test, namespace, users, controllers } = *self;
        let require = || ControlPlane::require_with(test, &tools(), users, controllers);
        if !tools().join("testplane").exists() {
            // Said there, with how to get it.
            assert!(require().is_none());
            return;
        }
        let Some(testbed) = Testbed::require(test, &[namespace]) else { return };
        testbed.own(namespace, "10.244.0.0/16");
        testbed.inside(namespace, || play(require().expect("a control plane")));
    }
}

pub(crate) fn create(api: &KubernetesApi, path: &str, object: &Value) {
    let _created = api.create(path, object).expect_ok(path);
}

/// A Deployment of processes with a Service of the same ports.
pub(crate) struct Workload<'a> {
    pub(crate) name: &'a str,
    pub(crate) service: &'a str,
    pub(crate) ports: &'a [(&'a str, u16)],
    pub(crate) command: &'a [&'a str],
    pub(crate) replicas: u32,
    /// Processor time that a pod asks for, of which an autoscaler takes its parts.
    pub(crate) processor: Option<&'a str>,
    /// Processor time that a pod may use.
    pub(crate) processor_limit: Option<&'a str>,
}

/// One pod of `flashweir origin` with these options behind the Service `web`, whose port `http` this is.
pub(crate) fn create_origin(api: &KubernetesApi, port: u16, options: &[&str]) {
    let address = format!("$(POD_IP):{port}");
    let origin = [BINARY, "origin", "--listen", &address, "--work-ms", "0", "--iterations-per-ms", "1000"];
    Workload::one_pod("web", "web", &[("http", port)], &[&origin, options].concat()).create(api);
}

impl<'a> Workload<'a> {
    /// One pod, which may use any processor time.
    pub(crate) fn one_pod(
        name: &'a str,
        service: &'a str,
        ports: &'a [(&'a str, u16)],
        command: &'a [&'a str],
    ) -> Self {
        Self { name, service, ports, command, replicas: 1, processor: None, processor_limit: None }
    }

    pub(crate) fn create(&self, api: &KubernetesApi) {
        let Self { name, service, ports, command, replicas, processor, processor_limit } = *self;
        let labels = json!({ "app": name });
        let container_ports: Vec<Value> =
            ports.iter().map(|(name, port)| json!({ "name": name, "containerPort": port })).collect();
        let service_ports: Vec<Value> = ports
            .iter()
            .map(|(name, port)| json!({ "name": name, "port": port, "targetPort": port }))
            .collect();
        let of = |processor: Option<&str>| processor.map_or(json!({}), |cpu| json!({ "cpu": cpu }));
        let resources = json!({ "requests": of(processor), "limits": of(processor_limit) });
        create(
            api,
            "/api/v1/namespaces/default/services",
            &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": service },
                "spec": { "clusterIP": "None", "selector": labels, "ports": service_ports },
            }),
        );
        create(
            api,
            DEPLOYMENTS,
            &json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
                "spec": {
                    "replicas": replicas, "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels }, "spec": {
                        "terminationGracePeriodSeconds": 3,
                        "containers": [{
                            "name": "it", "image": "process", "command": command, "ports": container_ports,
                            "resources": resources,
                        }],
                    }},
                },
            }),
        );
    }
}

/// Addresses of a Service's ready pods.
pub(crate) fn ready(api: &KubernetesApi, service: &str) -> Vec<IpAddr> {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
    );
    let slices = api.get(&path).body;
    let endpoints = slices["items"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|slice| slice["endpoints"].as_array().cloned());
    let ready = endpoints.flatten().filter(|endpoint| endpoint["conditions"]["ready"] == true);
    ready.filter_map(|endpoint| endpoint["addresses"][0].as_str()?.parse().ok()).collect()
}

fn scale_of(name: &str) -> String {
    format!("{DEPLOYMENTS}/{name}/scale")
}

/// Replicas that are wanted.
pub(crate) fn scale(api: &KubernetesApi, name: &str) -> u32 {
    api.get(&scale_of(name)).body["spec"]["replicas"].as_u64().unwrap_or(0) as u32
}

pub(crate) fn order(api: &KubernetesApi, name: &str, replicas: u32) {
    let patch = json!({ "spec": { "replicas": replicas } });
    let _scale = api.merge(&scale_of(name), &patch).expect_ok("scale");
}

/// Gives a user the rights of a Role in a manifest.
pub(crate) fn grant(api: &KubernetesApi, file: &str, user: &str) {
    let role = document(&read(file), "Role");
    create(api, ROLES, &role);
    create(
        api,
        BINDINGS,
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"] },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }),
    );
}

/// The custom resource, and the rights of controllers and gateways.
pub(crate) fn install(api: &KubernetesApi) {
    let definition = document(&read("overloadpolicies.yaml"), "CustomResourceDefinition");
    create(api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    grant(api, "control.yaml", "control");
    grant(api, "gateway.yaml", "gateway");
}

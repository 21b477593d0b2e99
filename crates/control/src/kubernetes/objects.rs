//! Content of API objects, as plain values. Fields are read by name from JSON, so that a field that a newer
//! API server adds or leaves out changes nothing here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Names an object with the subresource `scale`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetReference {
    /// Group and version of its kind.
    #[serde(default = "apps_v1")]
    pub api_version: String,
    /// Its kind.
    #[serde(default = "deployment")]
    pub kind: String,
    /// Its name.
    pub name: String,
}

fn apps_v1() -> String {
    "apps/v1".to_owned()
}
fn deployment() -> String {
    "Deployment".to_owned()
}

impl TargetReference {
    /// The group of its kind; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version within the group.
    #[must_use]
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }
}

/// Selection of the endpoints of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port<'a> {
    /// The port of this name.
    Named(&'a str),
    /// The port of this number.
    Number(u16),
    /// The first port of each slice.
    First,
}

impl<'a> Port<'a> {
    /// A number, a name, or (empty) the first.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        match text.parse() {
            _ if text.is_empty() => Self::First,
            Ok(number) => Self::Number(number),
            Err(_) => Self::Named(text),
        }
    }
}

/// Addresses of the endpoints of EndpointSlices that take requests: ready and not terminating. An absent
/// condition `ready` counts as ready, as the API documents it. Sorted, each once.
#[must_use]
pub fn ready_endpoints<'a>(slices: impl IntoIterator<Item = &'a Value>, port: Port<'_>) -> Vec<SocketAddr> {
    let is_ready = |endpoint: &Value| {
        let condition = |name: &str| endpoint.pointer("/conditions")?.get(name)?.as_bool();
        condition("ready").unwrap_or(true) && !condition("terminating").unwrap_or(false)
    };
    endpoints(slices, port, is_ready).into_iter().collect()
}

/// Addresses of all endpoints of EndpointSlices, ready or not.
#[must_use]
pub fn all_endpoints<'a>(
    slices: impl IntoIterator<Item = &'a Value>,
    port: Port<'_>,
) -> BTreeSet<SocketAddr> {
    endpoints(slices, port, |_| true)
}

fn endpoints<'a>(
    slices: impl IntoIterator<Item = &'a Value>,
    port: Port<'_>,
    is_wanted: impl Fn(&Value) -> bool,
) -> BTreeSet<SocketAddr> {
    let mut found = BTreeSet::new();
    for slice in slices {
        let Some(port) = port_of(slice, port) else { continue };
        for endpoint in items(slice.get("endpoints")).filter(|endpoint| is_wanted(endpoint)) {
            // The API says: the addresses of one endpoint are interchangeable, and clients take the first.
            let address = items(endpoint.get("addresses")).next().and_then(Value::as_str);
            found.extend(
                address.and_then(|text| text.parse::<IpAddr>().ok()).map(|ip| SocketAddr::new(ip, port)),
            );
        }
    }
    found
}

fn port_of(slice: &Value, wanted: Port<'_>) -> Option<u16> {
    let number = |port: &Value| port.get("port")?.as_u64().and_then(|number| u16::try_from(number).ok());
    items(slice.get("ports")).find_map(|port| {
        let is_wanted = match wanted {
            Port::First => true,
            Port::Named(name) => port.get("name").and_then(Value::as_str) == Some(name),
            Port::Number(wanted) => number(port) == Some(wanted),
        };
        is_wanted.then(|| number(port)).flatten()
    })
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The name of a HorizontalPodAutoscaler that owns a target's replicas, if there is one.
#[must_use]
pub fn autoscaler_of<'a>(
    target: &TargetReference,
    autoscalers: impl IntoIterator<Item = &'a Value>,
) -> Option<String> {
    let owns = |autoscaler: &&Value| {
        let Some(theirs) = autoscaler.pointer("/spec/scaleTargetRef") else { return false };
        let text = |key: &str| theirs.get(key).and_then(Value::as_str).unwrap_or_default();
        // The version is not compared: any version of a group names the same object.
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        text("kind") == target.kind && text("name") == target.name && group == target.group()
    };
    let owner = autoscalers.into_iter().find(owns)?;
    Some(owner.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("(unnamed)").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slice() -> Value {
        json!({
            "addressType": "IPv4",
            "ports": [{ "name": "http", "port": 8080 }, { "name": "admin", "port": 9900 }],
            "endpoints": [
                { "addresses": ["10.244.0.3"], "conditions": { "ready": true, "serving": true, "terminating": false } },
                { "addresses": ["10.244.0.2"] },
                { "addresses": ["10.244.0.4"], "conditions": { "ready": false, "serving": false, "terminating": false } },
                { "addresses": ["10.244.0.5"], "conditions": { "ready": false, "serving": true, "terminating": true } },
                { "addresses": ["no address"] },
            ],
        })
    }

    #[test]
    fn only_ready_endpoints_take_requests() {
        let texts = |port| {
            let slices = [slice(), slice(), json!({ "endpoints": null, "ports": null })];
            ready_endpoints(&slices, port).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(Port::Named("http")), ["10.244.0.2:8080", "10.244.0.3:8080"]);
        assert_eq!(texts(Port::of("admin")), ["10.244.0.2:9900", "10.244.0.3:9900"]);
        assert_eq!(texts(Port::of("8080")), texts(Port::of("")));
        assert!(texts(Port::of("https")).is_empty());
    }

    #[test]
    fn gateways_that_are_not_ready_are_there_all_the_same() {
        let found: Vec<String> =
            all_endpoints(&[slice()], Port::Named("admin")).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.244.0.2:9900", "10.244.0.3:9900", "10.244.0.4:9900", "10.244.0.5:9900"]);
    }

    #[test]
    fn an_autoscaler_owns_its_target_whatever_the_version() {
        let autoscaler = |api_version: &str, kind: &str, name: &str| {
            json!({
                "metadata": { "name": "busy" },
                "spec": { "scaleTargetRef": { "apiVersion": api_version, "kind": kind, "name": name } },
            })
        };
        let target: TargetReference = serde_json::from_value(json!({ "name": "shop" })).unwrap();
        let owner = |autoscaler: Value| autoscaler_of(&target, [&autoscaler]);
        assert_eq!(owner(autoscaler("apps/v1", "Deployment", "shop")).as_deref(), Some("busy"));
        assert_eq!(owner(autoscaler("apps/v1beta1", "Deployment", "shop")).as_deref(), Some("busy"));
        assert_eq!(owner(autoscaler("apps/v1", "StatefulSet", "shop")), None);
        assert_eq!(owner(autoscaler("other.io/v1", "Deployment", "shop")), None);
        assert_eq!(owner(autoscaler("apps/v1", "Deployment", "cart")), None);
        assert_eq!(owner(json!({})), None);
    }
}

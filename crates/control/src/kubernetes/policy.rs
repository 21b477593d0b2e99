//! The custom resource `OverloadPolicy`: which application is scaled, by which gateways' demand, to which
//! targets.
//!
//! [`OverloadPolicySpec`] is what an operator writes, and the schema of the custom resource definition is
//! generated from it; [`CheckedPolicy`] cannot be wrong.

use crate::kubernetes::objects::TargetReference;
use flashweir_admission::sentry::LadderStep;
use flashweir_core::Duration;
use flashweir_core::limits::{CLASSES, GATEWAYS, LADDER_STEPS, PROVISIONED_SERVERS};
use flashweir_provisioning::{ApplicationPolicy, ClassValue};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The group of the custom resource.
pub const GROUP: &str = "flashweir.dev";

/// Number of replicas of an application, by the demand that its gateways see, refused requests included.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "flashweir.dev",
    version = "v1alpha1",
    kind = "OverloadPolicy",
    plural = "overloadpolicies",
    shortname = "olp",
    namespaced,
    status = "OverloadPolicyStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.scaleTargetRef.name"}"#,
    printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".status.desiredReplicas"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Rule","type":"string","jsonPath":".status.rule"}"#,
    printcolumn = r#"{"name":"Active","type":"string","jsonPath":".status.conditions[?(@.type=='Active')].reason"}"#
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OverloadPolicySpec {
    /// The workload that is scaled, in the policy's namespace: anything with the subresource `scale`.
    pub scale_target_ref: TargetReference,
    /// The Service whose EndpointSlices say which of the workload's pods are ready.
    pub service: String,
    /// Gateways from which the demand is read.
    pub gateways: GatewaysSpec,
    /// Replicas that the workload keeps in any case.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// Replicas that it gets at most.
    pub max_replicas: u32,
    /// Targets for the 95th percentile of response times: each is permitted below its rate. None: one
    /// second at any rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_targets: Vec<ResponseTarget>,
    /// Classes of the gateway's configuration and what their requests are worth; the most important first.
    /// None: one class of all requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassSpec>,
    /// How long a pod takes from the order until it is ready, seconds, until that was measured.
    #[serde(default = "thirty")]
    pub start_up_seconds: f64,
    /// The pool whose servers this workload shares with other policies of the namespace; none: it is
    /// limited by `maxReplicas` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolSpec>,
}

/// Where the demand is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GatewaysSpec {
    /// The Service, best headless, whose EndpointSlices list the gateways.
    pub service: String,
    /// The name of the port of the gateways' admin listener in that Service.
    #[serde(default = "admin")]
    pub admin_port: String,
    /// The service of the gateways' configuration whose demand counts; none: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_service: Option<String>,
    /// The workload of the gateways, to be scaled by how busy their processors are; none: it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_target_ref: Option<TargetReference>,
    /// Gateways that are kept in any case.
    #[serde(default = "one")]
    pub min_replicas: u32,
    /// Gateways at most.
    #[serde(default = "ten")]
    pub max_replicas: u32,
}

/// One step of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResponseTarget {
    /// Requests a second below which this target is permitted; none: at any rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_requests_per_second: Option<f64>,
    /// 95th percentile of response times, seconds.
    pub seconds: f64,
}

/// Value of a class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClassSpec {
    /// As the gateway's configuration calls it.
    pub name: String,
    /// Earned with one request; more than 0.
    #[serde(default = "unit")]
    pub revenue: f64,
    /// Requests a second that are promised.
    #[serde(default)]
    pub guaranteed_requests_per_second: f64,
    /// 95th percentile of its response times, seconds; none: that of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_target_seconds: Option<f64>,
}

/// Servers that several workloads share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolSpec {
    /// All policies of the namespace with this name share the pool.
    pub name: String,
    /// Replicas of all of them together; where policies disagree, the fewest.
    pub servers: u32,
}

/// Findings and decisions of the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverloadPolicyStatus {
    /// The generation of the policy that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Replicas that the demand needs, within the policy's bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<u32>,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<u32>,
    /// Gateways that are wanted, where the policy has them scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_gateways: Option<u32>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The term of the leader that wrote this. A leader that reads a later term than its own stops leading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// `Active`: replicas are set by this policy; its reason says why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A condition, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when, RFC 3339.
    pub last_transition_time: String,
}

/// A policy that can be followed.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedPolicy {
    /// Goals of the planner.
    pub application: ApplicationPolicy,
    /// Names of the classes, in the planner's order; empty: all requests are one class.
    pub classes: Vec<String>,
    /// The pool, if it is shared.
    pub pool: Option<PoolSpec>,
}

fn one() -> u32 {
    1
}
fn ten() -> u32 {
    10
}
fn unit() -> f64 {
    1.0
}
fn thirty() -> f64 {
    30.0
}
fn admin() -> String {
    "admin".to_owned()
}

/// The longest time that a policy may speak of, seconds.
const SECONDS_MAX: f64 = 86_400.0;
/// The target where a policy has none, seconds: what people take for immediate, with a network between.
const TARGET_DEFAULT_S: f64 = 1.0;

impl OverloadPolicySpec {
    /// The policy, if it can be followed.
    ///
    /// # Errors
    /// The first field that is wrong, and what is accepted.
    pub fn checked(&self) -> Result<CheckedPolicy, String> {
        let count = |field: &str, value: u32, min: u32, max: u32| {
            let is_right = (min..=max).contains(&value);
            if is_right { Ok(()) } else { Err(format!("spec.{field} is {value}: expected {min} to {max}")) }
        };
        count("maxReplicas", self.max_replicas, 1, PROVISIONED_SERVERS)?;
        count("minReplicas", self.min_replicas, 0, self.max_replicas)?;
        count("gateways.maxReplicas", self.gateways.max_replicas, 1, GATEWAYS as u32)?;
        count("gateways.minReplicas", self.gateways.min_replicas, 1, self.gateways.max_replicas)?;
        if let Some(pool) = &self.pool {
            count("pool.servers", pool.servers, self.min_replicas.max(1), PROVISIONED_SERVERS)?;
        }
        if self.classes.len() > CLASSES {
            return Err(format!("spec.classes has {}: expected at most {CLASSES}", self.classes.len()));
        }
        if self.response_targets.len() > LADDER_STEPS {
            let steps = self.response_targets.len();
            return Err(format!("spec.responseTargets has {steps}: expected at most {LADDER_STEPS}"));
        }
        let application = ApplicationPolicy {
            classes: self.class_values()?,
            ladder: self.ladder()?,
            servers_min: self.min_replicas,
            servers_max: self.max_replicas,
            start_up: seconds("startUpSeconds", self.start_up_seconds)?,
            ..ApplicationPolicy::single(Duration::from_secs_f64(TARGET_DEFAULT_S))
        };
        let classes = self.classes.iter().map(|class| class.name.clone()).collect();
        Ok(CheckedPolicy { application, classes, pool: self.pool.clone() })
    }

    fn class_values(&self) -> Result<Vec<ClassValue>, String> {
        if self.classes.is_empty() {
            return Ok(vec![ClassValue::default()]);
        }
        let values = self.classes.iter().map(|class| {
            let field = |name: &str| format!("classes[{}].{name}", class.name);
            let is_price = class.revenue > 0.0 && class.revenue.is_finite();
            if !is_price {
                return Err(format!("spec.{} is {}: expected more than 0", field("revenue"), class.revenue));
            }
            let guaranteed_rps = class.guaranteed_requests_per_second;
            if !(guaranteed_rps >= 0.0 && guaranteed_rps.is_finite()) {
                let field = field("guaranteedRequestsPerSecond");
                return Err(format!("spec.{field} is {guaranteed_rps}: expected 0 or more"));
            }
            let target = class.response_target_seconds;
            let target = target.map(|value| target_seconds(&field("responseTargetSeconds"), value));
            Ok(ClassValue { revenue: class.revenue, guaranteed_rps, target: target.transpose()? })
        });
        values.collect()
    }

    fn ladder(&self) -> Result<Vec<LadderStep>, String> {
        let single = [ResponseTarget { below_requests_per_second: None, seconds: TARGET_DEFAULT_S }];
        let steps = if self.response_targets.is_empty() { &single[..] } else { &self.response_targets };
        let (mut below_rps, mut before) = (0.0, Duration::ZERO);
        let mut ladder = Vec::with_capacity(steps.len());
        for (place, step) in steps.iter().enumerate() {
            let field = format!("responseTargets[{place}]");
            let target = target_seconds(&format!("{field}.seconds"), step.seconds)?;
            if target <= before {
                return Err(format!(
                    "spec.{field}.seconds is {}: expected more than the step before",
                    step.seconds
                ));
            }
            let next_rps = step.below_requests_per_second.unwrap_or(f64::INFINITY);
            let is_higher = next_rps > below_rps;
            if !is_higher {
                let field = format!("{field}.belowRequestsPerSecond");
                return Err(format!("spec.{field} is {next_rps}: expected more than the step before"));
            }
            ladder.push(LadderStep { below_rps: next_rps, target });
            (below_rps, before) = (next_rps, target);
        }
        // The longest target is permitted at any rate beyond: there is no longer one.
        if let Some(last) = ladder.last_mut() {
            last.below_rps = f64::INFINITY;
        }
        Ok(ladder)
    }
}

fn seconds(field: &str, value: f64) -> Result<Duration, String> {
    if (0.0..SECONDS_MAX).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(format!("spec.{field} is {value}: expected 0 to less than {SECONDS_MAX}"))
}

/// A target of no time is met by no server.
fn target_seconds(field: &str, value: f64) -> Result<Duration, String> {
    const MIN_S: f64 = 0.001;
    if (MIN_S..SECONDS_MAX).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(format!("spec.{field} is {value}: expected {MIN_S} to less than {SECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written() -> Value {
        json!({
            "scaleTargetRef": { "name": "shop" },
            "service": "shop",
            "gateways": { "service": "flashweir" },
            "maxReplicas": 8,
        })
    }

    fn with(pointer: &str, value: Value) -> OverloadPolicySpec {
        let mut spec = written();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        spec.pointer_mut(parent).expect("a parent")[key] = value;
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn a_short_policy_has_defaults() {
        let spec: OverloadPolicySpec = serde_json::from_value(written()).unwrap();
        assert_eq!(
            (spec.scale_target_ref.kind.as_str(), spec.gateways.admin_port.as_str()),
            ("Deployment", "admin")
        );
        let checked = spec.checked().unwrap();
        let application = &checked.application;
        assert_eq!((application.servers_min, application.servers_max, application.classes.len()), (1, 8, 1));
        assert_eq!(application.ladder[0].target, Duration::from_secs(1));
    }

    #[test]
    fn a_wrong_policy_names_the_field_and_what_is_accepted() {
        let error = |pointer: &str, value: Value| with(pointer, value).checked().unwrap_err();
        assert_eq!(error("/maxReplicas", json!(0)), "spec.maxReplicas is 0: expected 1 to 1000000");
        assert_eq!(error("/minReplicas", json!(9)), "spec.minReplicas is 9: expected 0 to 8");
        assert_eq!(
            error("/gateways/maxReplicas", json!(0)),
            "spec.gateways.maxReplicas is 0: expected 1 to 4096"
        );
        assert_eq!(
            error("/pool", json!({ "name": "all", "servers": 0 })),
            "spec.pool.servers is 0: expected 1 to 1000000"
        );
        assert_eq!(
            error("/startUpSeconds", json!(-1.0)),
            "spec.startUpSeconds is -1: expected 0 to less than 86400"
        );
        assert_eq!(
            error(
                "/responseTargets",
                json!([{ "seconds": 2.0, "belowRequestsPerSecond": 9.0 }, { "seconds": 1.0 }])
            ),
            "spec.responseTargets[1].seconds is 1: expected more than the step before"
        );
        assert_eq!(
            error("/classes", json!([{ "name": "gold", "revenue": 0.0 }])),
            "spec.classes[gold].revenue is 0: expected more than 0"
        );
    }

    #[test]
    fn unknown_fields_are_errors() {
        let mut spec = written();
        spec["maxReplica"] = json!(3);
        let error = serde_json::from_value::<OverloadPolicySpec>(spec).unwrap_err().to_string();
        assert!(error.contains("unknown field `maxReplica`"), "{error}");
    }
}

//! The files in `deploy/`: they are YAML, the code accepts their policies, their commands parse, and the
//! chart grants what they grant.

use crate::kubernetes::BINARY;
use flashweir_control::kubernetes::policy::OverloadPolicySpec;
use flashweir_testkit::Flashweir;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// All objects of a file of `deploy/kubernetes`.
pub(crate) fn read(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(deploy().join("kubernetes").join(file)).expect("a manifest");
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The only object of a kind.
pub(crate) fn document(objects: &[Value], kind: &str) -> Value {
    let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "objects of kind {kind}");
    found[0].clone()
}

#[test]
fn commands_of_the_manifests_parse() {
    for file in ["control.yaml", "gateway.yaml"] {
        let deployment = document(&read(file), "Deployment");
        let command = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
            .as_array()
            .expect("a command")
            .clone();
        let words: Vec<&str> = command.iter().filter_map(Value::as_str).collect();
        assert_eq!(words[0], "flashweir", "{file}");
        // With `--help` last, everything before it is parsed and nothing is done.
        let finished = Flashweir::new(BINARY).run(words[1..].iter().copied().chain(["--help"]));
        assert_eq!(finished.code(), Some(0), "{file}: {}", finished.stderr);
    }
}

#[test]
fn the_policy_is_accepted_and_names_the_services_of_the_gateways() {
    let policy = document(&read("policy.yaml"), "OverloadPolicy");
    let spec: OverloadPolicySpec = serde_json::from_value(policy["spec"].clone()).expect("a spec");
    spec.checked().expect("a policy that can be followed");
    let gateways = read("gateway.yaml");
    let is_named = |object: &Value| {
        object["kind"] == "Service" && object["metadata"]["name"] == spec.gateways.service.as_str()
    };
    let service = gateways.iter().find(|object| is_named(object)).expect("the gateways' Service");
    assert_eq!(service["spec"]["ports"][0]["name"], spec.gateways.admin_port.as_str());
}

/// Goal: the chart asks for no more rights than the manifests. Method: the rules in its templates, which hold
/// but few expressions.
#[test]
fn the_chart_grants_what_the_manifests_grant() {
    for (file, ends) in [("control.yaml", "---"), ("gateway.yaml", "---")] {
        let text = std::fs::read_to_string(deploy().join("helm/flashweir/templates").join(file))
            .expect("a template");
        let rules = text.split_once("\nrules:\n").expect("rules").1.split_once(ends).expect("an end").0;
        // As a release of the manifests' name.
        let rules = rules.replace("{{ .Release.Name }}", "flashweir");
        let lines: Vec<&str> = rules.lines().filter(|line| !line.contains("{{")).collect();
        let rules: Value = serde_saphyr::from_str(&lines.join("\n")).expect("YAML");
        assert_eq!(rules, document(&read(file), "Role")["rules"], "{file}");
    }
}

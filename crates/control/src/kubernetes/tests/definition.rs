//! The custom resource definition in `deploy/` is that of the code.

use crate::kubernetes::policy::OverloadPolicy;
use kube::CustomResourceExt as _;
use std::path::Path;

const HEAD: &str = "# Generated from crates/control/src/kubernetes/policy.rs; FLASHWEIR_BLESS=1 cargo test -p flashweir-control --features kubernetes writes it again.\n";

/// Goal: what an operator installs accepts what the code reads. The chart has the same file, since Helm
/// reads none outside of a chart.
#[test]
fn the_definition_is_that_of_the_code() {
    let definition = serde_json::to_value(OverloadPolicy::crd()).expect("JSON");
    let text = HEAD.to_owned() + &serde_saphyr::to_string(&definition).expect("YAML");
    let again: serde_json::Value = serde_saphyr::from_str(&text).expect("what was written is read");
    assert_eq!(again, definition);
    for file in ["kubernetes/overloadpolicies.yaml", "helm/flashweir/crds/overloadpolicies.yaml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
        if std::env::var_os("FLASHWEIR_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, &text).expect("a writable tree");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "deploy/{file} is stale: FLASHWEIR_BLESS=1 cargo test -p flashweir-control --features kubernetes writes it"
        );
    }
}

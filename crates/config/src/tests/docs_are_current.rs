//! The committed schema and reference are what the doc comments generate. `FLASHWEIR_BLESS=1 cargo test`
//! rewrites them.

use std::path::Path;

fn check(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("FLASHWEIR_BLESS").is_some() {
        std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/{name} is stale: run `FLASHWEIR_BLESS=1 cargo test -p flashweir-config`"
    );
}

#[test]
fn the_schema_is_current() {
    check("config.schema.json", &crate::schema::json_text());
}

#[test]
fn the_reference_is_current() {
    check("config.md", &crate::reference::markdown());
}

//! `docs/metrics.md` says what the shells register. `FLASHWEIR_BLESS=1 cargo test` rewrites it.

use std::path::Path;

#[test]
fn the_metrics_page_is_what_is_registered() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let generated = crate::reference::markdown();
    if std::env::var_os("FLASHWEIR_BLESS").is_some() {
        std::fs::write(&page, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/metrics.md is stale: run `FLASHWEIR_BLESS=1 cargo test -p flashweir-telemetry`"
    );
}

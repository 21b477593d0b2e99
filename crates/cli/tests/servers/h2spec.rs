//! h2spec, the published conformance tests of HTTP/2 and HPACK, against the real binary, over TLS and in the
//! clear.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flashweir_testkit::{
    Authority, Flashweir, Gateway, GatewayBuilder, Process, Upstream, record_result, skip,
};

const BINARY: &str = env!("CARGO_BIN_EXE_flashweir");
/// Summary of h2spec 2.2.1 when all is well.
const ALL: &str = "145 tests, 145 passed, 0 skipped, 0 failed";
/// In the clear one port serves both versions: what is no preface of HTTP/2 is a request of HTTP/1.1, and is
/// answered 400 as such.
const ALL_BUT_THE_PREFACE: &str = "145 tests, 144 passed, 0 skipped, 1 failed";
const PREFACE: &str = "Sends invalid connection preface";
/// Time that h2spec waits for each answer, seconds; some cases are passed by silence.
const PATIENCE_S: &str = "5";
/// All cases together; each takes a second at most.
const ENDS_WITHIN: Duration = Duration::from_secs(400);

/// Path at which `make h2spec` puts it, beside the profile's own folder.
fn require(test: &str) -> Option<PathBuf> {
    let installed = Path::new(BINARY).ancestors().nth(2)?.join("tools/bin/h2spec");
    if installed.exists() {
        return Some(installed);
    }
    skip(test, "h2spec is not installed: `make h2spec` needs Go and its module proxy");
    None
}

fn before(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&Flashweir::new(BINARY)).upstream(&upstream.url())
}

/// Output of h2spec, whose summary is recorded under this name.
fn run(name: &str, h2spec: &Path, gateway: &Gateway, arguments: &[&str]) -> String {
    let port = gateway.address().port().to_string();
    let usual = ["--host", "127.0.0.1", "--port", &port, "--timeout", PATIENCE_S];
    let arguments = usual.iter().chain(arguments);
    let finished = Process::run(h2spec, gateway.directory(), ENDS_WITHIN, arguments);
    assert_eq!(gateway.ask_admin("/healthz").status(), 200, "it lives on");
    let summary = finished.stdout.lines().find(|line| line.contains(" tests, ")).unwrap_or_default();
    record_result(name, number_before(summary, "passed"), number_before(summary, "tests"));
    finished.stdout
}

/// The number before the word in `145 tests, 144 passed, 0 skipped, 1 failed`, or 0.
fn number_before(summary: &str, word: &str) -> usize {
    let found = summary.split(", ").find_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    found.unwrap_or(0)
}

#[test]
fn http2_over_tls_conforms() {
    let Some(h2spec) = require("http2_over_tls_conforms") else { return };
    let upstream = Upstream::saying("served to h2spec");
    let builder = before(&upstream);
    let _files = Authority::new().issue(builder.directory(), "h2spec");
    let gateway =
        builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key").start();
    let said = run("h2spec over TLS", &h2spec, &gateway, &["--tls", "--insecure"]);
    assert!(said.contains(ALL), "{said}");
}

#[test]
fn http2_in_the_clear_conforms() {
    let Some(h2spec) = require("http2_in_the_clear_conforms") else { return };
    let upstream = Upstream::saying("served to h2spec");
    let gateway = before(&upstream).start();
    let said = run("h2spec in the clear", &h2spec, &gateway, &[]);
    let failures = said.split("Failures:").nth(1).unwrap_or_default();
    assert!(said.contains(ALL_BUT_THE_PREFACE) && failures.contains(PREFACE), "{said}");
}

//! Goal: `flashweir load` speaks what real servers speak. Method: the real binary against a real nginx with
//! TLS, over HTTP/1.1 and HTTP/2, on loopback.

use crate::binary;
use flashweir_testkit::{Authority, Nginx};
use serde_json::Value;
use std::process::Output;

const ANSWER: &str = "location / { return 200 'ok, quite well'; }";

#[test]
fn tls_and_http2_against_nginx() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let files = authority.issue(directory.path(), "a server to load");
    let believed = authority.write(directory.path());
    let believed = believed.to_str().unwrap();
    let Some(nginx) = Nginx::require_tls("tls_and_http2_against_nginx", "http2", &files, ANSWER) else {
        return;
    };
    let url = format!("https://{}/", nginx.address());

    let http1 = completed(&url, &["--ca", believed]);
    assert_eq!(http1["connections"], http1["completed"], "each request has a separate connection");
    let kept = completed(&url, &["--ca", believed, "--connections", "keep-alive"]);
    assert!(kept["connections"].as_u64() < kept["completed"].as_u64(), "{kept}");
    let http2 = completed(&url, &["--ca", believed, "--http2"]);
    assert_eq!(http2["connections"], 1, "requests share a connection");
    completed(&url, &["--insecure", "--http2", "--sources", "10"]);

    // A certificate without a trusted issuer.
    let result = json(&load(&url, &[]));
    assert_eq!(result["errors_by_kind"]["tls"], result["offered"], "{result}");
    assert_eq!(result["sent"], 0, "{result}");
}

#[test]
fn http2_by_prior_knowledge() {
    let Some(nginx) = Nginx::require("http2_by_prior_knowledge", "http2", ANSWER) else { return };
    let url = format!("http://{}/", nginx.address());
    let result = completed(&url, &["--http2"]);
    assert_eq!(result["body_bytes"].as_u64(), result["completed"].as_u64().map(|count| 14 * count));
}

/// A server that speaks something else is a server that fails, not a run that does.
#[test]
fn a_server_without_http2_is_told() {
    let Some(nginx) = Nginx::require("a_server_without_http2_is_told", "", ANSWER) else { return };
    let result = json(&load(&format!("http://{}/", nginx.address()), &["--http2"]));
    assert_eq!((&result["completed"], &result["errors"]), (&Value::from(0), &result["offered"]), "{result}");
}

/// A run in which every request was served.
fn completed(url: &str, options: &[&str]) -> Value {
    let result = json(&load(url, options));
    assert!(result["offered"].as_u64() > Some(10), "{options:?}: {result}");
    assert_eq!(result["completed"], result["offered"], "{options:?}: {result}");
    result
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn load(url: &str, options: &[&str]) -> Output {
    let run = [url, "--rate", "40", "--duration", "1s", "--timeout", "60s", "--target", "60s", "--json"];
    binary::load(&[&run[..], options].concat())
}

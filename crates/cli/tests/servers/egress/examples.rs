//! Goal: the reference clients in other languages keep to the protocol. Method: each against a server that
//! signs what it asks for.

use crate::egress::scene::{CONTEXT, KEY, ScriptedNode, asks, line, signed};
use flashweir_testkit::{Process, require_program};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Compiling the Go client on a busy machine included.
const WITHIN: Duration = Duration::from_secs(240);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace").join("examples")
}

/// Runs a client that sends 150 requests at 100 a second, and gives what it counted.
fn run(program: &Path, before: &[OsString], node: &ScriptedNode, rank: u8) -> Value {
    let directory = TempDir::new().expect("a directory");
    let url = node.upstream.url();
    let rank = rank.to_string();
    let options = ["--context", CONTEXT, "--key", KEY, "--rank", &rank, "--rate", "100", "--requests", "150"];
    let arguments: Vec<OsString> = before
        .iter()
        .cloned()
        .chain(options.iter().map(OsString::from))
        .chain([OsString::from(url)])
        .collect();
    let finished = Process::run(program, directory.path(), WITHIN, arguments);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
}

fn check(program: &Path, before: &[OsString]) {
    let node = ScriptedNode::start();
    let counts = run(program, before, &node, 15);
    assert_eq!((counts["sent"].as_u64(), node.count()), (Some(150), 150), "without a limit all go: {counts}");
    assert_eq!(node.upstream.last_request().field("flashweir-sender"), Some("shop"));
    // Ten a second over a second and a half, for any speed of the machine.
    node.ask(&asks(1, 10.0));
    let counts = run(program, before, &node, 15);
    let (sent, refused) =
        (counts["sent"].as_u64().expect("a count"), counts["refused"].as_u64().expect("a count"));
    assert_eq!((sent + refused, counts["failed"].as_u64()), (150, Some(0)), "{counts}");
    assert!(sent >= 3 && refused > 0, "{counts}");
    assert!(sent <= 150 / 2, "five times what it was asked for, for a machine that is slow: {counts}");
    assert_eq!(run(program, before, &node, 0)["sent"], 150, "more important requests pass");
    // A forged field and one for another caller change nothing.
    let forged = signed(&asks(2, 0.0)).replace("A", "B");
    node.answer(200, &line(&forged));
    let counts = run(program, before, &node, 15);
    assert_eq!((counts["sent"].as_u64(), counts["ignored"].as_u64()), (Some(150), Some(150)), "{counts}");
}

#[test]
fn the_python_client_keeps_to_the_protocol() {
    let Some(python) = require_program("python3", "the Python client") else { return };
    check(&python, &[examples().join("python/flashweir_overload.py").into()]);
}

#[test]
fn the_go_client_keeps_to_the_protocol() {
    let Some(go) = require_program("go", "the Go client") else { return };
    let directory = TempDir::new().expect("a directory");
    let client = directory.path().join("client");
    let build =
        ["build", "-o"].map(OsString::from).into_iter().chain([client.clone().into(), OsString::from(".")]);
    let finished = Process::run(&go, &examples().join("go"), WITHIN, build);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    check(&client, &[]);
}

//! The learned baseline survives a restart, and a file that cannot be trusted does no harm.

use std::path::{Path, PathBuf};

use flashweir_testkit::{Gateway, GatewayBuilder, Upstream, eventually};
use serde_json::Value;

use crate::end_to_end::support::{before, binary, get};

fn file(directory: &Path) -> PathBuf {
    directory.join("baseline.json")
}

fn read(directory: &Path) -> Value {
    let text = std::fs::read_to_string(file(directory)).expect("a state file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON: {error}: {text}"))
}

fn some_traffic(gateway: &Gateway) {
    let mut client = gateway.connect();
    for _ in 0..50 {
        assert_eq!(client.ask(&get("/")).status(), 200);
    }
}

fn stop(gateway: Gateway) -> GatewayBuilder {
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    builder
}

/// A gateway that found `content` as its state file must warn once, serve, and write a good file at its end.
fn check_ignored(content: impl FnOnce(&Value) -> Vec<u8>) {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    some_traffic(&gateway);
    let builder = stop(gateway);
    let good = read(builder.directory());
    std::fs::write(file(builder.directory()), content(&good)).expect("a writable directory");

    let gateway = builder.start();
    let warnings = || gateway.stderr().lines().filter(|line| line.contains("baseline.json")).count();
    eventually("a warning that names the file", || (warnings() > 0).then_some(()));
    some_traffic(&gateway);
    assert_eq!(warnings(), 1, "one warning: {}", gateway.stderr());
    let builder = stop(gateway);
    let rewritten = read(builder.directory());
    assert_eq!(rewritten["version"], good["version"], "rewritten: {rewritten}");
    let left: Vec<_> = std::fs::read_dir(builder.directory())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().contains("baseline"))
        .collect();
    assert_eq!(left, ["baseline.json"], "no temporary file is left");
}

#[test]
fn a_truncated_file_is_ignored_with_a_warning_and_rewritten() {
    check_ignored(|good| {
        let text = good.to_string().into_bytes();
        text[..text.len() / 2].to_vec()
    });
}

#[test]
fn an_empty_file_is_ignored_with_a_warning_and_rewritten() {
    check_ignored(|_| Vec::new());
}

#[test]
fn a_file_of_another_version_is_ignored_with_a_warning_and_rewritten() {
    check_ignored(|good| {
        let mut other = good.clone();
        other["version"] = 999_999.into();
        other.to_string().into_bytes()
    });
}

#[test]
fn rubbish_and_absurd_numbers_are_ignored_with_a_warning_and_rewritten() {
    check_ignored(|_| b"\0\xff\xfe rubbish".to_vec());
    check_ignored(|good| {
        let mut absurd = good.clone();
        absurd["baseline"]["unique_offered_rps"] = (-1.0).into();
        absurd.to_string().into_bytes()
    });
}

#[test]
fn the_baseline_of_another_service_is_not_ours() {
    check_ignored(|good| {
        let mut other = good.clone();
        other["service"] = "another".into();
        other.to_string().into_bytes()
    });
}

#[test]
fn what_was_learned_is_there_after_a_restart() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    // Learned means: the status has a usual rate of offered requests.
    let mut client = gateway.connect();
    let learned = flashweir_testkit::until("a learned baseline", std::time::Duration::from_secs(30), || {
        for _ in 0..20 {
            assert_eq!(client.ask(&get("/")).status(), 200);
        }
        let classes = gateway.status()["baseline"]["latency_classes_known"].as_u64()?;
        (classes > 0).then_some(classes)
    });
    let builder = stop(gateway);
    let saved = read(builder.directory());
    let gateway = builder.start();
    let again = gateway.status();
    assert_eq!(again["baseline"]["latency_classes_known"].as_u64(), Some(learned), "{saved}: {again}");
    assert!(!gateway.stderr().contains("baseline.json"), "no warning: {}", gateway.stderr());
}

#[test]
fn after_a_crash_it_starts_again_on_the_same_ports() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    some_traffic(&gateway);
    let builder = stop(gateway);
    let saved = read(builder.directory());
    let gateway = builder.start();
    some_traffic(&gateway);
    let (crashed, builder) = gateway.crash(&binary());
    assert_eq!(crashed.code(), None, "killed by a signal");
    assert_eq!(read(builder.directory())["version"], saved["version"], "the file is whole");
    let gateway = builder.start();
    some_traffic(&gateway);
}

#[test]
fn a_state_file_that_cannot_be_written_does_not_stop_the_service() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).text("state.file", "no/such/directory/baseline.json").start();
    some_traffic(&gateway);
    gateway.terminate();
    let finished = gateway.finish();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}

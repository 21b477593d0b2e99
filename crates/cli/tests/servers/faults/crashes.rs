//! SIGKILL before each system call that touches the state file, and before each that a reload makes on its
//! files: the next start finds the old state or the new one whole, serves, and leaves nothing behind.
//!
//! strace delivers the signal at the call that is asked for, so that no step is left to chance.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flashweir_testkit::{
    Authority, Client, Gateway, GatewayBuilder, Process, Signal, Upstream, eventually, require_program,
};
use serde_json::Value;

use crate::faults::{before, binary, some_traffic};

/// System calls that write a file, and those that read one.
const WRITING: [&str; 6] = ["openat", "write", "fsync", "close", "rename", "unlink"];
const READING: [&str; 4] = ["openat", "statx", "read", "close"];
/// More calls of one kind than any of these steps makes; a test that gets there shows nothing.
const CALLS_MAX: usize = 20;

/// Attaches strace to a gateway, to kill it before the `nth` call of this name on any of `files`.
fn kill_at(strace: &Path, gateway: &Gateway, (call, nth): (&str, usize), files: &[PathBuf]) -> Process {
    let id = gateway.process().id().to_string();
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    let mut arguments: Vec<OsString> = ["-f", "-p", &id, "-e", &inject].map(OsString::from).to_vec();
    for file in files {
        arguments.extend(["-P".into(), file.clone().into_os_string()]);
    }
    let tracer = Process::start(strace, gateway.directory(), arguments);
    eventually("strace at the gateway", || tracer.stderr().contains("attached").then_some(()));
    tracer
}

fn state(directory: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(directory.join("baseline.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("half a state file: {error}: {text}")))
}

fn leftovers(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("baseline") && name != "baseline.json").collect()
}

/// Starts it again; the state must be taken without a complaint.
fn check_next_start(builder: GatewayBuilder, at: &str) -> GatewayBuilder {
    let gateway = builder.start();
    some_traffic(&gateway);
    assert!(!gateway.stderr().contains("is ignored"), "{at}: {}", gateway.stderr());
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "{at}: {}", finished.stderr);
    assert!(state(builder.directory()).is_some(), "{at}: no state was written");
    assert_eq!(leftovers(builder.directory()), [] as [&str; 0], "{at}");
    builder
}

#[test]
fn a_crash_at_any_step_of_a_state_write_loses_at_most_what_was_learned_last() {
    const TEST: &str = "a_crash_at_any_step_of_a_state_write";
    let Some(strace) = require_program("strace", TEST) else { return };
    let upstream = Upstream::saying("served");
    // strace compares paths as the calls have them.
    let builder = before(&upstream);
    let directory = std::fs::canonicalize(builder.directory()).expect("a directory");
    let builder = builder.text("state.file", &directory.join("baseline.json").display().to_string());
    let mut builder = check_next_start(builder, "before any crash");
    let mut crashes = Vec::new();
    for call in WRITING {
        for nth in 1.. {
            assert!(nth < CALLS_MAX, "the gateway never got to its end");
            let gateway = builder.start();
            some_traffic(&gateway);
            let temporary = format!("baseline.json.{}.tmp", gateway.process().id());
            let files = [directory.join("baseline.json"), directory.join(temporary)];
            let tracer = kill_at(&strace, &gateway, (call, nth), &files);
            let (finished, stopped) = gateway.stop(&binary());
            drop(tracer);
            let at = format!("killed at {call} {nth}");
            assert!(state(stopped.directory()).is_some(), "{at}: the old state is gone");
            builder = check_next_start(stopped, &at);
            if finished.code().is_some() {
                break;
            }
            crashes.push(at);
        }
    }
    println!("a state write: {crashes:?}");
    for call in ["openat", "write", "fsync", "close", "rename"] {
        assert!(crashes.iter().any(|at| at.contains(call)), "no {call}: {crashes:?}");
    }
}

#[test]
fn a_crash_at_any_step_of_a_reload_leaves_a_gateway_that_starts() {
    const TEST: &str = "a_crash_at_any_step_of_a_reload";
    let Some(strace) = require_program("strace", TEST) else { return };
    let upstream = Upstream::saying("served");
    let authority = Authority::new();
    let mut builder = before(&upstream);
    let _files = authority.issue(builder.directory(), "first");
    let directory = std::fs::canonicalize(builder.directory()).expect("a directory");
    let files = ["flashweir.toml", "server.pem", "server.key"].map(|name| directory.join(name));
    let [_, certificate, key] = files.each_ref().map(|file| file.display().to_string());
    builder = builder.text("listen.tls.certificate", &certificate).text("listen.tls.key", &key);
    let mut crashes = Vec::new();
    for call in READING {
        for nth in 1.. {
            assert!(nth < CALLS_MAX, "the reload never got to its end");
            let mut gateway = builder.start();
            let tracer = kill_at(&strace, &gateway, (call, nth), &files);
            let _renewed = authority.issue(&directory, &format!("renewed for {call} {nth}"));
            let most = (40 + nth % 2).to_string();
            gateway.configure(&[("bounds.max_fields", Some(&most))]);
            gateway.reload();
            let reloaded = eventually("a crash or a reload", || outcome(&gateway));
            drop(tracer);
            let (finished, stopped) =
                if reloaded { gateway.stop(&binary()) } else { gateway.gone(&binary()) };
            assert_eq!(finished.code(), reloaded.then_some(0), "killed at {call} {nth}: {}", finished.stderr);
            builder = stopped;
            if reloaded {
                break;
            }
            crashes.push(format!("{call} {nth}"));
        }
    }
    println!("a reload: {crashes:?}");
    assert!(
        ["openat", "read"].iter().all(|call| crashes.iter().any(|at| at.starts_with(call))),
        "{crashes:?}"
    );
    let gateway = builder.start();
    assert_eq!(gateway.ask_admin("/readyz").status(), 200);
}

/// Returns whether a gateway that was asked to reload has done so; false when it is gone, nothing while it is
/// at it.
fn outcome(gateway: &Gateway) -> Option<bool> {
    let Ok(mut client) = Client::try_connect(gateway.admin()) else { return Some(false) };
    let asked = client.try_send("GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    match asked.ok().and_then(|()| client.try_response().ok()) {
        None => Some(false),
        Some(metrics) => metrics.text().contains("reloads_total{outcome=\"ok\"} 1").then_some(true),
    }
}

/// Without strace: crashes at random moments of many writes, which a test run without it has at least.
#[test]
fn crashes_at_random_moments_never_damage_the_state() {
    const CRASHES: u64 = 12;
    let upstream = Upstream::saying("served");
    let mut builder = check_next_start(before(&upstream), "before any crash");
    for crash in 0..CRASHES {
        let gateway = builder.start();
        some_traffic(&gateway);
        gateway.terminate();
        // The write comes some milliseconds after the signal.
        std::thread::park_timeout(Duration::from_micros(700 * crash));
        gateway.process().try_signal(Signal::Kill);
        let (_finished, stopped) = gateway.gone(&binary());
        assert!(state(stopped.directory()).is_some(), "crash {crash}: the old state is gone");
        builder = stopped;
    }
    let _builder = check_next_start(builder, "after all crashes");
}

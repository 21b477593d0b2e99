//! Goal: the example keeps to what a real server asks for. Method: a scripted server that signs its field;
//! `cargo test` builds the example beside this test.

use crate::client::{HmacKey, Keys};
use flashweir_core::{Duration, Rate};
use flashweir_feedback::{Feedback, Field, KeyRing};
use flashweir_testkit::{Connection, Process, Upstream, skip};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

const KEY: &str = "1 correct horse battery staple\n";
/// Two seconds of requests, on a machine ten times slower.
const WITHIN: Duration = Duration::from_secs(120);

fn example() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("this test's own path");
    let example = test.parent()?.parent()?.join("examples/caller");
    let is_there = example.exists();
    if !is_there {
        skip(
            "the library's example",
            "it is not built; `cargo test -p flashweir-tower --features client` builds it",
        );
    }
    is_there.then_some(example)
}

fn field(ring: &KeyRing<HmacKey>) -> String {
    let (rate, ttl) = (Some(Rate::from_per_second(10.0)), Duration::from_secs(10));
    let asks = Feedback { epoch: 1, sequence: 1, from_rank: 1, severity: 1, rate, ttl };
    let field = Field::new(&asks, ring, b"shop>api").expect("a message that makes sense");
    format!("Flashweir-Overload: {}\r\n", String::from_utf8_lossy(field.as_bytes()))
}

#[test]
fn the_example_keeps_to_what_the_server_asks_for() {
    let Some(example) = example() else { return };
    let directory = TempDir::new().expect("a directory");
    std::fs::write(directory.path().join("api.keys"), KEY).expect("a writable directory");
    let fields = Arc::new(Mutex::new(String::new()));
    let script = Arc::clone(&fields);
    let server = Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            let fields = script.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if !connection.answer(200, &fields, "") {
                return;
            }
        }
    });
    let run = || {
        let arguments = [format!("{}/", server.url()), "api.keys".to_owned()];
        let finished = Process::run(&example, directory.path(), WITHIN, arguments);
        assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
        (finished.stdout, finished.stderr)
    };
    assert_eq!(run().0, "sent 200 of 200, condition open\n");
    let ring = Keys::parse(KEY, "api.keys").expect("a key").ring();
    *fields.lock().unwrap_or_else(PoisonError::into_inner) = field(&ring);
    let before = server.request_count();
    let (printed, refusals) = run();
    let sent = server.request_count() - before;
    assert!(sent >= 20, "all twenty that are more important: {printed}");
    assert!(sent <= 150 && printed.ends_with("condition limited\n"), "{printed}");
    assert!(refusals.contains("not sent to api: the node asked for less"), "{refusals}");
}

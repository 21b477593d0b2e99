//! The control thread stalls: the limits it left behind open step by step, and it takes them over again
//! afterwards.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flashweir_testkit::{Connection, Gateway, Latch, Upstream, eventually};

use crate::end_to_end::support::{before, get};

fn config_file(gateway: &Gateway) -> PathBuf {
    let entries = std::fs::read_dir(gateway.directory()).expect("a directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "toml")).expect("a configuration")
}

/// Goal: a sentry whose planner does not run any more does not hold requests back for good. Method: the
/// configuration file is replaced by a pipe, so a reload blocks the control thread until the pipe is written.
/// The sentry of an origin that is not known yet lets eight requests in; three times as many must arrive
/// there.
#[test]
fn limits_open_while_the_control_thread_stalls() {
    let latch = Latch::new();
    let arrived = Arc::new(AtomicUsize::new(0));
    let (held, count) = (latch.clone(), arrived.clone());
    let upstream = Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            count.fetch_add(1, Ordering::Relaxed);
            held.wait();
            if !connection.answer(200, "", "held") {
                return;
            }
        }
    });
    let mut gateway = before(&upstream).start();
    let path = config_file(&gateway);
    std::fs::remove_file(&path).expect("removed");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    gateway.reload();
    eventually("the stall to be noticed", || gateway.stderr().contains("has stalled").then_some(()));

    let mut clients = Vec::new();
    eventually("requests beyond the limit of an unknown origin", || {
        // Requests that wait too long are refused; others come.
        if clients.len() < 500 {
            let mut client = gateway.connect();
            client.send(get("/"));
            clients.push(client);
        }
        (arrived.load(Ordering::Relaxed) >= 24).then_some(())
    });

    // The pipe is written: the reload goes on.
    gateway.configure(&[]);
    eventually("the end of the stall", || gateway.stderr().contains("runs again").then_some(()));
    latch.open();
    eventually("an answer", || (gateway.get("/").status() == 200).then_some(()));
    gateway.wait_metric("flashweir_warnings_total{event=\"planner_stalled\"}", 1.0);
}

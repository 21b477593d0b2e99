//! Lines of the log, and its rotation.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use flashweir_testkit::{Signal, Upstream, eventually};

use crate::end_to_end::support::before;

/// xmrig/xmrig-proxy#370 and logrotate/logrotate#99: `kill -USR1` from a script that rotates logs ended the
/// server.
#[test]
fn signals_of_log_rotation_end_nothing() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    for signal in [Signal::Rotate, Signal::User2] {
        gateway.process().signal(signal);
    }
    eventually("a line for each signal", || {
        (gateway.stderr().matches("nothing to do: the log goes to standard error").count() == 2).then_some(())
    });
    assert_eq!(gateway.get("/").text(), "served");
    gateway.process().signal(Signal::Terminate);
    assert_eq!(gateway.finish().code(), Some(0));
}

/// Method: a shell says of its standard error that it is the journal, as systemd does, and names an upstream
/// that is not there.
#[test]
fn lines_for_the_journal_have_a_priority_and_no_time() {
    const UNDER_SYSTEMD: &str =
        "JOURNAL_STREAM=$(stat --dereference --format %d:%i /proc/$$/fd/2) exec \"$0\" \"$@\"";
    let state = tempfile::tempdir().expect("a directory");
    let mut child = Command::new("/bin/sh")
        .args([
            "-c",
            UNDER_SYSTEMD,
            env!("CARGO_BIN_EXE_flashweir"),
            "run",
            "--upstream",
            "http://127.0.0.1:1",
        ])
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "1"])
        .env("STATE_DIRECTORY", state.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut expected = vec!["<6> INFO flashweir", "<4> WARN flashweir"];
    for line in lines.map(|line| line.expect("text")) {
        assert!(line.starts_with("<6> INFO flashweir") || line.starts_with("<4> WARN flashweir"), "{line}");
        expected.retain(|start| !line.starts_with(start));
        if expected.is_empty() {
            break;
        }
    }
    child.kill().expect("a living process");
    child.wait().expect("a child");
    assert!(expected.is_empty(), "{expected:?}");
}

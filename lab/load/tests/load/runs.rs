//! Goal: `flashweir load` does what its help says. Method: the real binary, loopback only.

use crate::binary::{Origin, command, load, text};
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// A server thread or child answers within this; far more than needed, so that only a hang fails.
const PATIENT: Duration = Duration::from_secs(20);

#[test]
fn a_run_against_the_origin_adds_up() {
    let origin = Origin::start(1.0);
    let output = load(&[&origin.url, "--rate", "100", "--duration", "1s", "--sources", "20", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |key: &str| result[key].as_u64().unwrap();
    assert!((60..150).contains(&count("offered")), "{result}");
    let given_up = count("timed_out") + count("abandoned");
    let settled = count("completed") + count("refused") + given_up + count("errors");
    assert_eq!((count("offered"), count("in_flight")), (settled, 0), "{result}");
    assert!(count("completed") > 0, "{result}");
    assert!(text(&output.stderr).contains("about 100 people in 1.0 s, seed 1"), "{output:?}");
}

#[test]
fn the_table_is_on_stdout_and_progress_on_stderr() {
    let origin = Origin::start(0.0);
    let output = load(&[&origin.url, "--rate", "40", "--duration", "2s", "--connections", "keep-alive"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stdout.starts_with("offered") && stdout.contains("lag of the generator, us"), "{stdout}");
    assert!(stderr.contains("last second: offered"), "{stderr}");
}

#[test]
fn interrupting_gives_a_full_report() {
    let origin = Origin::start(0.0);
    let mut child = command(&[&origin.url, "--rate", "50", "--duration", "1h", "--json"]).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("last second") {
        line.clear();
        assert!(progress.read_line(&mut line).unwrap() > 0, "no progress was printed");
    }
    let interrupted = Instant::now();
    let status = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(status.success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && interrupted.elapsed() < PATIENT, "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["offered"].as_u64().unwrap() >= 10 && result["in_flight"] == 0, "{result}");
}

#[test]
fn wrong_usage_exits_with_64_and_one_clear_message() {
    let table = tempfile::NamedTempFile::new().unwrap();
    writeln!(&table, "minute,requests\n1,5\n2,many").unwrap();
    let table = table.path().to_str().unwrap();
    let check = |options: &[&str], wanted: &str| {
        let output = load(options);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{options:?}: {said}");
        assert!(said.contains(wanted), "{options:?}: {said:?} lacks {wanted:?}");
    };
    let url = "http://127.0.0.1:1/";
    check(&[url], "--rate");
    check(&[url, "--rate", "0"], "above zero");
    check(&[url, "--rate", "5", "--timeout", "2"], "500ms");
    check(&[url, "--rate", "5", "--patience", "2"], "is not a wait");
    check(&[url, "--rate", "5", "--sources", "70000"], "sources must be");
    check(&["ftp://127.0.0.1/", "--rate", "5"], "http://");
    check(&[url, "--profile", table, "--column", "requests"], "line 3: \"many\" is not a count");
    check(&[url, "--profile", table, "--column", "hits"], "no column is called \"hits\"");
    check(&[url, "--profile", "not-there.csv", "--column", "1"], "not-there.csv cannot be opened");
}

#[test]
fn nobody_listening_is_told_at_once() {
    let address = flashweir_testkit::reserve_address();
    let begun = Instant::now();
    let output = load(&[&format!("http://{address}/"), "--rate", "5", "--duration", "1h"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("{address} cannot be reached")), "{output:?}");
    assert!(begun.elapsed() < PATIENT);
}

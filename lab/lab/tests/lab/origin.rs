//! Goal: `flashweir origin` says what is wrong, and ends when it is asked to. Method: the real binary,
//! loopback only.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// It answers within this; far more than needed, so that only a hang fails.
const PATIENT: Duration = Duration::from_secs(20);

fn origin(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashweir-lab"));
    command.arg("origin").args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn an_origin_on_a_taken_port_says_so() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = origin(&["--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("cannot start on {address}")), "{output:?}");
}

#[test]
fn an_origin_ends_when_it_is_asked_to() {
    let mut origin = origin(&["--listen", "127.0.0.1:0", "--work-ms", "60000"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(origin.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("origin on http://127.0.0.1:"), "{line}");
    let asked = Instant::now();
    let status = Command::new("sh").args(["-c", &format!("kill -TERM {}", origin.id())]).status().unwrap();
    assert!(status.success() && origin.wait().unwrap().success());
    assert!(asked.elapsed() < PATIENT);
}

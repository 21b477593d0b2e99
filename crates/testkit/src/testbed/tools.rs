//! The programs that make networks.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

/// What a testbed starts.
const PROGRAMS: [&str; 3] = ["ip", "tc", "ethtool"];
/// Where they live when they are not on the PATH.
const ADMINISTRATION: &str = "/usr/sbin";

/// What this machine or user lacks, for a reader.
pub(super) fn missing() -> Option<String> {
    if !geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    let missing = PROGRAMS.iter().find(|program| !starts(program))?;
    Some(format!("the program `{missing}` is missing"))
}

/// Runs a program to its end; what it wrote.
///
/// # Panics
/// When it fails, with its whole command line and its own message.
pub(super) fn run(program: &str, arguments: &[&str]) -> String {
    try_run(program, arguments)
        .unwrap_or_else(|message| panic!("{program} {}: {}", arguments.join(" "), message.trim()))
}

/// As [`run`], for where failing is nothing out of the ordinary.
pub(super) fn try_run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = command(program).args(arguments).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn starts(program: &str) -> bool {
    // Each knows one of the two; that it starts at all is what counts.
    command(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn command(program: &str) -> Command {
    let path = Path::new(ADMINISTRATION).join(program);
    let mut command = if path.exists() { Command::new(path) } else { Command::new(program) };
    command.stdin(Stdio::null());
    command
}

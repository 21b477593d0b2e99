//! The programs that make networks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::TestbedError;

/// Programs that a testbed starts, and the Debian package of each.
const PROGRAMS: [(&str, &str); 3] = [("ip", "iproute2"), ("tc", "iproute2"), ("ethtool", "ethtool")];
/// Directory of the programs that are not on the PATH.
const ADMINISTRATION: &str = "/usr/sbin";

/// The first requirement that this machine or user lacks, for a reader.
pub(crate) fn missing() -> Option<String> {
    if !geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    let (program, package) = PROGRAMS.iter().find(|(name, _)| program(name).is_none())?;
    Some(format!("the program `{program}` is missing (Debian package {package})"))
}

/// Path of a program that daemons and administrators have; `None` where it is not installed.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(ADMINISTRATION).join(name);
    let path = if path.exists() { path } else { PathBuf::from(name) };
    // Each knows one of its options; that it starts at all is what counts.
    let starts = Command::new(&path)
        .arg("-V")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    starts.then_some(path)
}

/// Runs a program to its end; what it wrote.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, TestbedError> {
    let failed = |said: &str| TestbedError::Program {
        command: command_line(program, arguments),
        said: said.trim().to_owned(),
    };
    let path = Path::new(ADMINISTRATION).join(program);
    let mut command = if path.exists() { Command::new(path) } else { Command::new(program) };
    let output =
        command.args(arguments).stdin(Stdio::null()).output().map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(&String::from_utf8_lossy(&output.stderr)))
    }
}

fn command_line(program: &str, arguments: &[&str]) -> String {
    format!("{program} {}", arguments.join(" "))
}

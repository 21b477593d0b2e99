//! The machine: its cores, its name, what the environment says.

use flashweir_testkit::require_program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Moves this process, and so all that it starts, to every core but the first. A sentence that says who is
/// where.
pub(crate) fn leave_core_0_to_the_origin() -> String {
    let cores = cores();
    let others = if cores > 2 { format!("1-{}", cores - 1) } else { "1".to_owned() };
    if cores < 2 || !pin(std::process::id(), &others) {
        return "Origin, protection and load generator shared all cores.".to_owned();
    }
    format!("The origin had core 0 to itself; protection and load generator shared core {others}.")
}

/// Moves a process with all its threads to core 0, where there are others for the rest.
pub(crate) fn give_core_0(process: u32) {
    if cores() > 1 {
        pin(process, "0");
    }
}

fn pin(process: u32, cores: &str) -> bool {
    let Some(taskset) = require_program("taskset", "pinning processes to cores") else { return false };
    let output = Command::new(taskset).args(["-a", "-c", "-p", cores, &process.to_string()]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The machine's, not this process's: it changes its own.
fn cores() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count()
}

pub(crate) fn description() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("processor of unknown name", |(_, name)| name.trim());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} cores of {model}, Linux {}", cores(), release.trim())
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

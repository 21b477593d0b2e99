//! Namespaces whose makers were killed before they could clear up.

use std::io::ErrorKind;

use rustix::process::{Pid, Signal, kill_process};

use crate::tools::run;

/// Directory in which `ip netns` keeps namespaces by name.
pub(crate) const DIRECTORY: &str = "/run/netns";
/// Prefix of this testbed's names; the process id follows.
pub(crate) const PREFIX: &str = "flashweir-";

/// Deletes those of processes that are gone, and ends what still runs in them. Two who do so at once find
/// nothing left to delete, which is fine.
pub(crate) fn remove() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if maker(name).is_some_and(is_gone) {
            end_programs(name);
            let _ = run("ip", &["netns", "delete", name]);
        }
    }
}

/// A namespace lives as long as a program in it does, even under a changed name.
fn end_programs(name: &str) {
    let ids = run("ip", &["netns", "pids", name]).unwrap_or_default();
    for id in ids.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
        // Fails only when it is gone already.
        let _ = kill_process(id, Signal::KILL);
    }
}

/// Returns whether nothing of a process runs any more. One that ended and whose parent never asked still has
/// a number, but no program.
fn is_gone(id: u32) -> bool {
    std::fs::read_link(format!("/proc/{id}/exe")).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The process that made a namespace, if it is one of ours.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_is_gone_before_its_parent_asks() {
        let mut child = Command::new("true").spawn().expect("a program that ends");
        let patience = Instant::now() + Duration::from_secs(10);
        while !is_gone(child.id()) {
            assert!(Instant::now() < patience, "`true` does not end");
            std::thread::yield_now();
        }
        child.wait().expect("a child");
        assert!(is_gone(child.id()) && !is_gone(std::process::id()));
    }

    #[test]
    fn only_our_own_names_have_a_maker() {
        assert_eq!(maker("flashweir-123-0-client"), Some(123));
        assert_eq!(maker("flashweir-client"), None);
        assert_eq!(maker("123-0-client"), None);
    }
}

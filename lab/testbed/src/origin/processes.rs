//! The processes of an application server: the one that was started, and the workers that it starts.

use std::fs;

/// Processes of one origin at most: application servers have some tens.
pub const PROCESSES_MAX: usize = 4_096;

/// `roots` and all their descendants now, each once, parents first. A process that ends meanwhile may be
/// among them or not. At most [`PROCESSES_MAX`]; two files are read for each thread.
#[must_use]
pub fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(&process) = found.get(next).filter(|_| found.len() < PROCESSES_MAX) {
        let new: Vec<u32> = children(process).into_iter().filter(|child| !found.contains(child)).collect();
        found.extend(new);
        next += 1;
    }
    found.truncate(PROCESSES_MAX);
    found
}

/// Each thread has separate children.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// The children of PHP-FPM's manager are named as roots beside it: counted twice, an origin would be busy
    /// twice.
    #[test]
    fn a_root_that_another_root_started_is_there_once() {
        let mut shell = Command::new("sh").args(["-c", "read line"]).stdin(Stdio::piped()).spawn().unwrap();
        let found = with_descendants(&[std::process::id(), shell.id()]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(found.iter().filter(|id| **id == shell.id()).count(), 1, "{found:?}");
    }
}

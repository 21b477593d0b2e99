//! CPU time of a process and its children, from the scheduler's account (nanoseconds on a core).

use std::fs;
use std::time::Duration;

/// CPU time used so far by `pid` and all its descendants.
pub(crate) fn used(pid: u32) -> Duration {
    let own: u64 = entries(&format!("/proc/{pid}/task"))
        .filter_map(|thread| {
            let account = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
            account.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    children(pid).into_iter().map(used).sum::<Duration>() + Duration::from_nanos(own)
}

fn children(pid: u32) -> Vec<u32> {
    entries(&format!("/proc/{pid}/task"))
        .filter_map(|thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

fn entries(folder: &str) -> impl Iterator<Item = String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
}

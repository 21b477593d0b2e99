//! Namespaces whose makers were killed before they could clear up.

use std::io::ErrorKind;

use super::tools::try_run;

/// Where `ip netns` keeps namespaces by name.
pub(super) const DIRECTORY: &str = "/run/netns";
/// What names of ours begin with; the process id follows.
pub(super) const PREFIX: &str = "flashweir-";

/// Deletes those of processes that are gone. Two who do so at once find nothing left to delete, which is fine.
pub(super) fn remove() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if maker(name).is_some_and(is_gone) {
            let _ = try_run("ip", &["netns", "delete", name]);
        }
    }
}

/// Whether nothing of a process runs any more. One that ended and whose parent never asked still has a number, but no
/// program.
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

    #[test]
    fn a_process_is_gone_before_its_parent_asks() {
        let mut child = Command::new("true").spawn().expect("a program that ends");
        crate::eventually("its end", || is_gone(child.id()).then_some(()));
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

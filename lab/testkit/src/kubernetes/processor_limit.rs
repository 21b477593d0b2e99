//! The processor time that a pod's container may use, kept by a control group as on a real node.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Directories of the kernel's groups for processor time: version 1, then version 2.
const VERSION_1: &str = "/sys/fs/cgroup/cpu";
const VERSION_2: &str = "/sys/fs/cgroup";
/// Within which a quota is counted, microseconds: the kernel's usual one.
const PERIOD_US: f64 = 100_000.0;

/// A control group of one pod. Its processes have to be gone before it is dropped.
#[derive(Debug)]
pub(super) struct ProcessorLimit {
    folder: PathBuf,
}

impl ProcessorLimit {
    /// The group of a container that has a limit; none where it has none.
    ///
    /// # Panics
    /// When there is no such group to be had: it needs root and a kernel with quotas.
    pub(super) fn of(container: &Value, uid: &str) -> Option<Self> {
        let text = container["resources"]["limits"]["cpu"].as_str()?;
        let processors = processors(text).unwrap_or_else(|| panic!("a limit of {text}"));
        let quota_us = (processors * PERIOD_US).round();
        let is_version_1 = Path::new(VERSION_1).join("cpu.cfs_quota_us").exists();
        let root = Path::new(if is_version_1 { VERSION_1 } else { VERSION_2 });
        let folder = root.join(format!("flashweir-test-{}-{uid}", std::process::id()));
        std::fs::create_dir(&folder).expect("a control group: root may make one");
        let limit = Self { folder };
        if is_version_1 {
            limit.write("cpu.cfs_period_us", &format!("{PERIOD_US:.0}"));
            limit.write("cpu.cfs_quota_us", &format!("{quota_us:.0}"));
        } else {
            limit.write("cpu.max", &format!("{quota_us:.0} {PERIOD_US:.0}"));
        }
        Some(limit)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Words before a command that put it into the group.
    pub(super) fn words(&self) -> [String; 4] {
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.folder.display());
        ["/bin/sh".to_owned(), "-c".to_owned(), join, "/usr/bin/env".to_owned()]
    }
}

impl Drop for ProcessorLimit {
    fn drop(&mut self) {
        // The kernel lets go of a group a moment after its last process.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }
}

/// A quantity of Kubernetes, as `100m` or `0.5`.
fn processors(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<f64>().ok().map(|it| it / 1e3),
        None => text.parse().ok(),
    }
}

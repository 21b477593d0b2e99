//! A control group with little memory and a slow disk.

use anyhow::{Context as _, bail};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the first version of control groups has its controllers.
const CONTROLLERS: &str = "/sys/fs/cgroup";

/// One group of each controller, removed when dropped.
pub(super) struct ControlGroup {
    memory: PathBuf,
    disk: PathBuf,
}

impl ControlGroup {
    /// One whose members share `memory_bytes`, page cache included, and read `disk_bytes_per_s` from the disk that has
    /// `directory`.
    pub(super) fn new(memory_bytes: u64, disk_bytes_per_s: u64, directory: &Path) -> anyhow::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("flashweir-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let place = |controller: &str| Path::new(CONTROLLERS).join(controller).join(&name);
        let (memory, disk) = (place("memory"), place("blkio"));
        for group in [&memory, &disk] {
            if !group.parent().is_some_and(Path::exists) {
                bail!(
                    "a server short of memory needs control groups of version 1 with the controllers memory and blkio; {} is \
                     missing",
                    group.parent().unwrap_or(group).display()
                );
            }
        }
        let group = Self { memory, disk };
        for path in [&group.memory, &group.disk] {
            std::fs::create_dir(path).with_context(|| format!("{}: cannot be made", path.display()))?;
        }
        let device = std::fs::metadata(directory)?.dev();
        // Linux's encoding of device numbers, for those below 4,096.
        let (major, minor) = (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00);
        write(&group.memory.join("memory.limit_in_bytes"), &memory_bytes.to_string())?;
        let limit = format!("{major}:{minor} {disk_bytes_per_s}");
        write(&group.disk.join("blkio.throttle.read_bps_device"), &limit)?;
        Ok(group)
    }

    /// Makes a process a member; what it had read before stays somebody else's.
    pub(super) fn take_in(&self, process: u32) -> anyhow::Result<()> {
        for path in [&self.memory, &self.disk] {
            write(&path.join("cgroup.procs"), &process.to_string())?;
        }
        Ok(())
    }

    /// Pages that came back into memory since the group was made.
    pub(super) fn fetched_pages(&self) -> u64 {
        let text = std::fs::read_to_string(self.memory.join("memory.stat")).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("pgpgin "));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for path in [&self.memory, &self.disk] {
            // Fails only while somebody is in it; its members were ended before.
            let _ = std::fs::remove_dir(path);
        }
    }
}

fn write(path: &Path, value: &str) -> anyhow::Result<()> {
    std::fs::write(path, value).with_context(|| format!("{}: cannot be {value}", path.display()))
}

//! A control group with little memory and a slow disk, of either version of control groups.

use anyhow::{Context as _, bail};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Root of the control groups: a directory for each controller in version 1, one for all in version 2.
const GROUPS: &str = "/sys/fs/cgroup";
/// Directory of block devices, by their numbers.
const DEVICES: &str = "/sys/dev/block";

/// A group, removed when dropped.
#[derive(Debug)]
pub(super) struct ControlGroup {
    /// One for each controller in version 1.
    directories: Vec<PathBuf>,
    /// Account of its members' reads, by disk.
    disk_books: PathBuf,
    /// The disk, by its numbers.
    disk: String,
}

/// Paths and formats of one version.
struct Version {
    directories: Vec<PathBuf>,
    memory_limit: PathBuf,
    disk_limit: PathBuf,
    /// Text between the disk and the bytes a second.
    before_rate: &'static str,
    disk_books: PathBuf,
}

impl ControlGroup {
    /// One whose members share `memory_bytes`, page cache included, and read `disk_bytes_per_s` from the disk
    /// that has `directory`.
    pub(super) fn new(memory_bytes: u64, disk_bytes_per_s: u64, directory: &Path) -> anyhow::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let name = format!("flashweir-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let device = std::fs::metadata(directory)?.dev();
        let disk = disk_of(device, Path::new(DEVICES)).with_context(|| format!("{}", directory.display()))?;
        Self::under(Path::new(GROUPS), &name, memory_bytes, (disk, disk_bytes_per_s))
    }

    fn under(
        root: &Path,
        name: &str,
        memory_bytes: u64,
        (disk, disk_bytes_per_s): (String, u64),
    ) -> anyhow::Result<Self> {
        let Version { directories, memory_limit, disk_limit, before_rate, disk_books } =
            Version::of(root, name)?;
        // From here on all that was made is removed with it.
        let group = Self { directories, disk_books, disk };
        for path in &group.directories {
            std::fs::create_dir(path).with_context(|| format!("{}: cannot be made", path.display()))?;
        }
        write(&memory_limit, &memory_bytes.to_string())?;
        write(&disk_limit, &format!("{} {before_rate}{disk_bytes_per_s}", group.disk))?;
        Ok(group)
    }

    /// Makes a process a member; its earlier reads count for another group.
    pub(super) fn take_in(&self, process: u32) -> anyhow::Result<()> {
        self.directories.iter().try_for_each(|path| write(&path.join("cgroup.procs"), &process.to_string()))
    }

    /// Bytes that its members have read from the disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        let text = std::fs::read_to_string(&self.disk_books).unwrap_or_default();
        bytes_read(&text, &self.disk).unwrap_or(0)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for path in &self.directories {
            // Fails only while a process is in it; its members were ended before.
            let _ = std::fs::remove_dir(path);
        }
    }
}

impl Version {
    /// That of the controllers that are needed, wherever they are.
    fn of(root: &Path, name: &str) -> anyhow::Result<Self> {
        let [memory, disk] = ["memory", "blkio"].map(|controller| root.join(controller));
        if memory.is_dir() && disk.is_dir() {
            return Ok(Self::one(memory.join(name), disk.join(name)));
        }
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let has = |controller: &str| controllers.split_whitespace().any(|it| it == controller);
        if !has("memory") || !has("io") {
            bail!(
                "a server short of memory needs control groups: of version 1 with the controllers memory and blkio, or of \
                 version 2 with memory and io; {} has neither",
                root.display()
            );
        }
        // Only then do groups in the root have these controllers. Elsewhere than in the root of all groups
        // the kernel wants a group with controllers below to be without members.
        write(&root.join("cgroup.subtree_control"), "+memory +io").context(
            "a server short of memory needs a separate control group in the root of all groups, or in one without members",
        )?;
        Ok(Self::two(root.join(name)))
    }

    fn one(memory: PathBuf, disk: PathBuf) -> Self {
        Self {
            memory_limit: memory.join("memory.limit_in_bytes"),
            disk_limit: disk.join("blkio.throttle.read_bps_device"),
            before_rate: "",
            disk_books: disk.join("blkio.throttle.io_service_bytes"),
            directories: vec![memory, disk],
        }
    }

    fn two(group: PathBuf) -> Self {
        Self {
            memory_limit: group.join("memory.max"),
            disk_limit: group.join("io.max"),
            before_rate: "rbps=",
            disk_books: group.join("io.stat"),
            directories: vec![group],
        }
    }
}

/// The disk on which a device is, by its numbers: the kernel slows no partition by itself.
fn disk_of(device: u64, devices: &Path) -> anyhow::Result<String> {
    // Linux's encoding of device numbers, for those below 4,096.
    let (major, minor) = (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00);
    let numbers = format!("{major}:{minor}");
    let entry = devices.join(&numbers);
    if !entry.exists() {
        bail!("lies on no disk that can be slowed; TMPDIR names another place for temporary files");
    }
    if !entry.join("partition").exists() {
        return Ok(numbers);
    }
    // A partition's directory lies in its disk's.
    let disk = std::fs::canonicalize(&entry)?.join("../dev");
    let text = std::fs::read_to_string(&disk).with_context(|| format!("{}", disk.display()))?;
    Ok(text.trim().to_owned())
}

/// Bytes read from a disk, by either version's books: a line `254:0 Read 8192`, or `254:0 rbytes=8192
/// wbytes=0`.
fn bytes_read(books: &str, disk: &str) -> Option<u64> {
    let mut of_disk = books.lines().filter_map(|line| line.strip_prefix(disk)?.strip_prefix(' '));
    of_disk.find_map(|rest| {
        let first = |text: &str| text.split(' ').next().and_then(|number| number.parse().ok());
        rest.strip_prefix("Read ")
            .or_else(|| rest.split_once("rbytes=").map(|(_, rest)| rest))
            .and_then(first)
    })
}

fn write(path: &Path, value: &str) -> anyhow::Result<()> {
    std::fs::write(path, value).with_context(|| format!("{}: cannot be {value}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, create_dir_all, read_to_string};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// Ours as any directory would be: what is written where.
    fn made(root: &Path) -> anyhow::Result<ControlGroup> {
        let group = ControlGroup::under(root, "ours", 4096, ("254:0".to_owned(), 500))?;
        group.take_in(7)?;
        Ok(group)
    }

    #[test]
    fn both_versions_are_told_in_their_own_words() {
        let one = TempDir::new().expect("a directory");
        let read = |path: &str| read_to_string(one.path().join(path)).expect(path);
        create_dir(one.path().join("memory")).expect("a directory");
        create_dir(one.path().join("blkio")).expect("a directory");
        let _group = made(one.path()).expect("a group of version 1");
        assert_eq!(read("memory/ours/memory.limit_in_bytes"), "4096");
        assert_eq!(read("blkio/ours/blkio.throttle.read_bps_device"), "254:0 500");
        assert_eq!([read("memory/ours/cgroup.procs"), read("blkio/ours/cgroup.procs")], ["7", "7"]);

        let two = TempDir::new().expect("a directory");
        let read = |path: &str| read_to_string(two.path().join(path)).expect(path);
        write(&two.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").expect("a file");
        let group = made(two.path()).expect("a group of version 2");
        assert_eq!(read("cgroup.subtree_control"), "+memory +io");
        assert_eq!((read("ours/memory.max"), read("ours/io.max")), ("4096".into(), "254:0 rbps=500".into()));
        assert_eq!(read("ours/cgroup.procs"), "7");
        assert_eq!(group.disk_bytes(), 0);
        write(&two.path().join("ours/io.stat"), "254:0 rbytes=8192 wbytes=1\n").expect("a file");
        assert_eq!(group.disk_bytes(), 8192);
    }

    #[test]
    fn what_is_missing_is_said_in_a_line() {
        let root = TempDir::new().expect("a directory");
        let neither = made(root.path()).expect_err("no controllers").to_string();
        assert!(neither.contains("version 2 with memory and io") && !neither.contains('\n'), "{neither}");
        write(&root.path().join("cgroup.controllers"), "cpu pids memory\n").expect("a file");
        assert_eq!(made(root.path()).expect_err("no io").to_string(), neither);
        write(&root.path().join("cgroup.controllers"), "io memory\n").expect("a file");
        // Stands for a kernel that refuses.
        create_dir(root.path().join("cgroup.subtree_control")).expect("a directory");
        let refused = format!("{:#}", made(root.path()).expect_err("refused"));
        assert!(
            refused.contains("in the root of all groups") && refused.contains("+memory +io"),
            "{refused}"
        );
    }

    #[test]
    fn reads_are_found_by_disk_in_the_books_of_either_version() {
        let one = "254:16 Read 5\n254:1 Read 6\n254:1 Write 9\nTotal 20\n";
        assert_eq!((bytes_read(one, "254:1"), bytes_read(one, "254:16")), (Some(6), Some(5)));
        let two = "8:0 wbytes=1 rbytes=77 rios=3\n254:0 rbytes=8 wbytes=9\n";
        assert_eq!((bytes_read(two, "8:0"), bytes_read(two, "254:0")), (Some(77), Some(8)));
        assert_eq!((bytes_read(one, "8:0"), bytes_read("", "8:0")), (None, None));
    }

    #[test]
    fn a_partition_is_slowed_with_its_disk_and_other_places_not_at_all() {
        let root = TempDir::new().expect("a directory");
        let disk = root.path().join("devices/sda");
        create_dir_all(disk.join("sda1")).expect("directories");
        write(&disk.join("dev"), "8:0\n").expect("a file");
        write(&disk.join("sda1/partition"), "1\n").expect("a file");
        symlink(disk.join("sda1"), root.path().join("8:1")).expect("a link");
        symlink(&disk, root.path().join("8:0")).expect("a link");
        let of = |device: u64| disk_of(device, root.path());
        assert_eq!([of(0x801).expect("its disk"), of(0x800).expect("itself")], ["8:0", "8:0"]);
        let error = of(0x2a).expect_err("no disk").to_string();
        assert!(error.contains("TMPDIR"), "{error}");
    }
}

//! A disk without room: what was learned before stays whole, clients notice nothing, and the log says what is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use flashweir_testkit::{Upstream, skip};

use crate::{before, binary, some_traffic};

/// A small file system of its own, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Needs root.
    fn require(directory: &Path, test: &str) -> Option<Self> {
        let place = directory.join("disk");
        std::fs::create_dir(&place).expect("a writable directory");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&place).output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Some(Self(place));
        }
        skip(test, "no file system can be mounted (not root?)");
        None
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        use std::io::Write as _;
        let mut file = std::fs::File::create(self.0.join("filling")).expect("room for a name");
        while file.write(&[0; 512]).is_ok_and(|written| written > 0) {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("filling")).expect("a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_costs_no_answer_and_no_state() {
    const TEST: &str = "a_full_disk_costs_no_answer_and_no_state";
    let directory = tempfile::tempdir().expect("a directory");
    let Some(disk) = SmallDisk::require(directory.path(), TEST) else { return };
    let file = disk.0.join("baseline.json");
    let upstream = Upstream::saying("served");
    let builder = before(&upstream)
        .text("state.file", &file.display().to_string())
        .argument("--record")
        .argument(&disk.0.join("recording").display().to_string());
    let gateway = builder.start();
    some_traffic(&gateway);
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let old = std::fs::read(&file).expect("a state file");

    disk.fill();
    let recording = disk.0.join("recording2").display().to_string();
    let gateway = builder.argument("--record").argument(&recording).start();
    some_traffic(&gateway);
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "a full disk is no reason to fail: {}", finished.stderr);
    assert!(finished.stderr.contains("baseline.json") && finished.stderr.contains("No space left"), "{}", finished.stderr);
    assert_eq!(std::fs::read(&file).expect("a state file"), old, "the old state is whole");
    let names: Vec<_> = std::fs::read_dir(&disk.0)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert!(names.is_empty(), "left behind: {names:?}");

    disk.empty();
    let gateway = builder.start();
    some_traffic(&gateway);
    assert!(!gateway.stderr().contains("is ignored"), "{}", gateway.stderr());
    let (finished, _builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0));
    assert_ne!(std::fs::read(&file).expect("a state file"), old, "with room again it is written");
}

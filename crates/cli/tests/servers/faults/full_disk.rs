//! A disk without room: what was learned before stays whole, clients notice nothing, and the log says what is
//! wrong.

use flashweir_testkit::{SmallDisk, Upstream};
use std::os::unix::fs::MetadataExt as _;

use crate::faults::{before, binary, some_traffic};

#[test]
fn a_full_disk_costs_no_answer_and_no_state() {
    const TEST: &str = "a_full_disk_costs_no_answer_and_no_state";
    let directory = tempfile::tempdir().expect("a directory");
    let Some(disk) = SmallDisk::require(directory.path(), TEST) else { return };
    let file = disk.path().join("baseline.json");
    let upstream = Upstream::saying("served");
    let builder = before(&upstream)
        .text("state.file", &file.display().to_string())
        .argument("--record")
        .argument(&disk.path().join("recording").display().to_string());
    let gateway = builder.start();
    some_traffic(&gateway);
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let old = std::fs::read(&file).expect("a state file");
    let inode = || std::fs::metadata(&file).expect("a state file").ino();
    let old_inode = inode();

    let recording = disk.path().join("recording2").display().to_string();
    let gateway = builder.argument("--record").argument(&recording).start();
    disk.fill();
    some_traffic(&gateway);
    let (finished, builder) = gateway.stop(&binary());
    assert_eq!(finished.code(), Some(0), "a full disk is no reason to fail: {}", finished.stderr);
    assert!(
        finished.stderr.contains("baseline.json") && finished.stderr.contains("No space left"),
        "{}",
        finished.stderr
    );
    assert_eq!(std::fs::read(&file).expect("a state file"), old, "the old state is whole");
    let names: Vec<_> = std::fs::read_dir(disk.path())
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
    // What is in it may be the same: only whole seconds are kept.
    assert_ne!(inode(), old_inode, "with room again it is written");
}

//! A file system that is soon full.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::skip;

/// A separate small file system, gone when dropped. Needs root.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

const FILLING: &str = "filling";

impl SmallDisk {
    /// Mounts one of 64 KiB in `directory`, or says loudly that the test is skipped.
    ///
    /// # Panics
    /// When the directory cannot be written.
    #[must_use]
    pub fn require(directory: &Path, test: &str) -> Option<Self> {
        let place = directory.join("disk");
        std::fs::create_dir(&place).expect("a writable directory");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&place).output();
        if mount.is_ok_and(|mount| mount.status.success()) {
            return Some(Self(place));
        }
        skip(test, "no file system can be mounted (not root?)");
        None
    }

    /// Path of the disk.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Fills it to the last byte.
    pub fn fill(&self) {
        // When there is no room for the name either it is as full as it can be.
        let Ok(mut file) = File::create(self.0.join(FILLING)) else { return };
        while file.write(&[0; 512]).is_ok_and(|written| written > 0) {}
    }

    /// Makes room again.
    pub fn empty(&self) {
        let _ = std::fs::remove_file(self.0.join(FILLING));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

//! Real traffic, which lies beside the repository: its terms keep it out of it.

use crate::{require_program, skip};
use std::path::PathBuf;
use std::process::Command;

/// The text of a file of real traffic, unpacked. None where it is not there: then the test is said to be
/// skipped.
///
/// # Panics
/// A file that is there and cannot be read.
#[must_use]
pub fn trace(file: &str, test: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(file);
    if !path.exists() {
        skip(test, &format!("{file} is not here"));
        return None;
    }
    if !file.ends_with(".gz") {
        return Some(std::fs::read_to_string(&path).expect("a readable file"));
    }
    let read =
        Command::new(require_program("gzip", test)?).arg("-dc").arg(&path).output().expect("gzip runs");
    Some(String::from_utf8(read.stdout).expect("text"))
}

/// A column of such a file, as numbers; lines without one are left out.
///
/// # Panics
/// As [`trace`].
#[must_use]
pub fn trace_counts(file: &str, column: usize, test: &str) -> Option<Vec<f64>> {
    let text = trace(file, test)?;
    Some(text.lines().filter_map(|line| line.split(',').nth(column)?.trim().parse().ok()).collect())
}

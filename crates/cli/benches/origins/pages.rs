//! A report as two files: JSON, which keeps the rows of earlier invocations, and the page made from it.

use crate::machine;
use flashweir_testkit::{Process, require_program};
use serde::{Serialize, de::DeserializeOwned};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A second; more on a busy machine.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// The report in `NAME.json`; an empty one, if there is no file or it is of another form.
pub(crate) fn read<Report: DeserializeOwned + Default>(name: &str) -> Report {
    let text = fs::read_to_string(folder().join(name).with_extension("json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Writes `NAME.json` and the page `NAME.md`, and prints the page.
pub(crate) fn write(name: &str, report: &impl Serialize, page: &str) {
    let folder = folder();
    fs::create_dir_all(&folder).expect("a directory that can be made");
    let file = folder.join(name);
    fs::write(file.with_extension("md"), page).expect("a writable directory");
    let json = serde_json::to_string_pretty(report).expect("numbers and text");
    fs::write(file.with_extension("json"), json + "\n").expect("a writable directory");
    println!("{page}\nWritten to {}", folder.display());
}

/// First line of what a program says of its version.
pub(crate) fn version(program: &str, argument: &str) -> String {
    let said = require_program(program, "its version").map(|path| {
        let finished = Process::run(&path, Path::new("/"), ANSWERS_WITHIN, [argument]);
        finished.stdout + &finished.stderr
    });
    let line = said.as_ref().and_then(|said| said.lines().next()).map(|line| line.trim().to_owned());
    line.unwrap_or_else(|| format!("`{program}` is missing"))
}

/// Folder of the two files: `OUT`, or `docs`.
fn folder() -> PathBuf {
    std::env::var_os("OUT").map_or_else(|| machine::repository().join("docs"), PathBuf::from)
}

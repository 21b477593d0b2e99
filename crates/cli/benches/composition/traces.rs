//! The traces' files, from a folder that the environment names.

use flashweir_load::trials::composition::traces::Trace;
use flashweir_testkit::require_program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names and counts of those that can be read; a line about each of the others.
pub(crate) fn read() -> Vec<(&'static str, Vec<f64>)> {
    let Some(folder) = std::env::var_os("TRACES").map(PathBuf::from) else {
        eprintln!("no real days are played: TRACES names no folder");
        return Vec::new();
    };
    let read = |trace: &Trace| match text(&folder, trace.file) {
        Ok(text) => Some((trace.name(), trace.counts(&text))),
        Err(why) => {
            eprintln!("{} is not played: {why}", trace.file);
            None
        }
    };
    Trace::ALL.iter().filter_map(read).collect()
}

fn text(folder: &Path, file: &str) -> Result<String, String> {
    let path = folder.join(file);
    if !file.ends_with(".gz") {
        return std::fs::read_to_string(path).map_err(|error| error.to_string());
    }
    let gzip = require_program("gzip", file).ok_or("it is compressed")?;
    let output = Command::new(gzip).arg("-dc").arg(path).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

//! The environment: read here, once, and handed down as values.

use std::ffi::OsString;
use std::path::PathBuf;

/// Directory in which this process may keep state, if the environment names a place: systemd's directory, or
/// the user's.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    state_directory_of(|name| std::env::var_os(name))
}

/// The journal of systemd that standard output or standard error is connected to, as device and inode.
#[must_use]
pub fn journal_stream() -> Option<String> {
    std::env::var_os("JOURNAL_STREAM")?.into_string().ok()
}

/// The directories in which a shell looks for programs (`PATH`). Those that are relative are left out: what
/// they name depends on where the process was started.
#[must_use]
pub fn program_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// The same in an environment in which `variable` finds the variables.
#[must_use]
pub fn state_directory_of(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // XDG Base Directory Specification: a path that is not absolute is to be ignored.
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // systemd gives a list when a unit has several; the first is the unit's own.
    let of_systemd = variable("STATE_DIRECTORY").and_then(|list| {
        let first = list.to_string_lossy().split(':').next().map(PathBuf::from);
        first.filter(|path| path.is_absolute())
    });
    of_systemd
        .or_else(|| path("XDG_STATE_HOME").map(|path| path.join("flashweir")))
        .or_else(|| path("HOME").map(|path| path.join(".local/state/flashweir")))
}

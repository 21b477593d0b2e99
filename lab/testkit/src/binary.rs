//! The program under test.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Finished, Process};

/// A command of the program ends within this, with any arguments.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);

/// The `flashweir` binary; each test makes one from `env!("CARGO_BIN_EXE_flashweir")`.
#[derive(Clone, Debug)]
pub struct Flashweir {
    path: PathBuf,
}

impl Flashweir {
    /// The binary at `path`.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: PathBuf::from(path) }
    }

    /// Runs a command to its end, in a fresh directory.
    ///
    /// # Panics
    /// When it does not end within half a minute.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        let directory = TempDir::new().expect("a fresh directory");
        self.run_in(directory.path(), COMMAND_WITHIN, arguments)
    }

    /// Runs a command to its end, in `directory`.
    ///
    /// # Panics
    /// When it does not end within `within`.
    pub fn run_in(
        &self,
        directory: &Path,
        within: Duration,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Finished {
        Process::run(&self.path, directory, within, arguments)
    }

    /// Starts a command in `directory` and leaves it running.
    #[must_use]
    pub fn start(&self, directory: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Process {
        Process::start(&self.path, directory, arguments)
    }

    /// The same with limits on open files, set by a shell that then becomes the program.
    #[must_use]
    pub fn start_limited(
        &self,
        directory: &Path,
        soft: u32,
        hard: u32,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Process {
        let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
        let shell = [OsString::from("-c"), script.into(), self.path.clone().into()];
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        Process::start(Path::new("/bin/sh"), directory, shell.into_iter().chain(arguments))
    }
}

//! The programs of Flashweir, and where they are: beside the one that looks, or on `PATH`.

use core::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::command::environment;

/// A program of Flashweir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `flashweir`: all that an operator runs.
    Flashweir,
    /// `flashweir-load`: the load generator.
    Load,
    /// `flashweir-lab`: simulator, papers, demos, and something to protect.
    Lab,
}

impl Program {
    /// Name of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flashweir => "flashweir",
            Self::Load => "flashweir-load",
            Self::Lab => "flashweir-lab",
        }
    }

    /// The folder of its package in the repository.
    fn package(self) -> &'static str {
        match self {
            Self::Flashweir => "crates/cli",
            Self::Load => "lab/load",
            Self::Lab => "lab/lab",
        }
    }

    /// Its file: beside the file of this process, links followed, or else in the first directory of `PATH`
    /// that has it.
    ///
    /// # Errors
    /// Neither has it.
    pub fn find(self) -> Result<PathBuf, MissingProgram> {
        let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
        self.find_in(own.as_deref().and_then(Path::parent), &environment::program_directories())
    }

    /// The same with these directories.
    ///
    /// # Errors
    /// None has it.
    pub fn find_in(self, beside: Option<&Path>, directories: &[PathBuf]) -> Result<PathBuf, MissingProgram> {
        let directories = beside.into_iter().chain(directories.iter().map(PathBuf::as_path));
        let mut files = directories.map(|directory| directory.join(self.name()));
        let found = files.find(|file| is_executable(file));
        found.ok_or_else(|| MissingProgram { program: self, beside: beside.map(Path::to_owned) })
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A program that is not where it was looked for.
#[derive(Debug)]
pub struct MissingProgram {
    program: Program,
    /// The directory of this process' own file, if that is known.
    beside: Option<PathBuf>,
}

impl fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, beside } = self;
        let beside =
            beside.as_ref().map_or_else(|| "beside this program".into(), |it| format!("in {}", it.display()));
        write!(
            f,
            "the program {} is neither {beside} nor in a directory of PATH; `cargo install --locked --path {}` in \
             Flashweir's repository installs it",
            program.name(),
            program.package(),
        )
    }
}

impl std::error::Error for MissingProgram {}

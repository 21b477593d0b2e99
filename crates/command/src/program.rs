//! The programs of Flashweir, and where they are: beside the one that looks, or on `PATH`.

use core::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::environment;

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

    /// Its file: beside the file of this process, links followed, or else in the first directory of `PATH` that has it.
    ///
    /// # Errors
    /// Neither has it.
    pub fn find(self) -> Result<PathBuf, MissingProgram> {
        let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
        self.find_in(own.as_deref().and_then(Path::parent), &environment::program_directories())
    }

    fn find_in(self, beside: Option<&Path>, directories: &[PathBuf]) -> Result<PathBuf, MissingProgram> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the program beside this one wins over those on PATH, and a file that cannot be run is none.
    #[test]
    fn a_program_is_looked_for_beside_and_then_on_path() {
        let folder = std::env::temp_dir().join(format!("flashweir-program-{}", std::process::id()));
        let [beside, first, second] = ["beside", "first", "second"].map(|name| folder.join(name));
        let file = |directory: &Path, mode: u32| {
            std::fs::create_dir_all(directory).expect("a directory");
            let file = directory.join("flashweir-load");
            std::fs::write(&file, "").expect("a file");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
            file
        };
        file(&first, 0o644);
        let (near, far) = (file(&beside, 0o755), file(&second, 0o755));
        let find = |beside: Option<&Path>, path: &[&PathBuf]| {
            let path: Vec<_> = path.iter().map(|&it| it.clone()).collect();
            Program::Load.find_in(beside, &path)
        };
        assert_eq!(find(Some(&beside), &[&second]).expect("beside"), near);
        assert_eq!(find(Some(&first), &[&folder, &first, &second]).expect("on PATH"), far);
        assert_eq!(find(None, &[&second]).expect("on PATH"), far);
        let message = |beside: Option<&Path>| find(beside, &[&first]).expect_err("none").to_string();
        let [known, unknown] = [message(Some(Path::new("/opt"))), message(None)];
        assert!(
            known.starts_with("the program flashweir-load is neither in /opt nor in a directory of PATH; "),
            "{known}"
        );
        assert!(known.contains("`cargo install --locked --path lab/load`"), "{known}");
        assert!(unknown.contains(" is neither beside this program nor in "), "{unknown}");
        std::fs::remove_dir_all(&folder).expect("the directory can be removed");
    }
}

//! Commands of the laboratory. They belong to other programs, so that the operator's binary is built without
//! them. `flashweir` lists them in its help and becomes the other program: with the same process id, which
//! supervisors and shells know, and with all arguments untouched.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Context as _;
use flashweir_config::command::exit::UsageError;
use flashweir_config::command::program::Program;

/// Name, program, and the first line of the help.
const COMMANDS: [(&str, Program, &str); 8] = [
    ("load", Program::Load, "Send a crowd to a server and report the outcome of every request truthfully"),
    (
        "demo",
        Program::Lab,
        "Send the same crowd at a service twice, without and with Flashweir, and show what becomes of it",
    ),
    (
        "demo-chain",
        Program::Lab,
        "Send the same crowd through a caller's sidecar and an overloaded gateway, without and with the gateway's feedback to the \
         sidecar",
    ),
    (
        "demo-hot",
        Program::Lab,
        "Send a crowd that wants one page at a service: without Flashweir, with admission, with admission and the cache, and with a \
         grace for a page that no cache may keep",
    ),
    (
        "demo-scale",
        Program::Lab,
        "Send a crowd at a service that grows with it: people are refused for seconds, servers come, no more are refused, servers go",
    ),
    (
        "origin",
        Program::Lab,
        "Serve HTTP/1.1 with a fixed amount of real work for each request, to have something to protect",
    ),
    ("sim", Program::Lab, "Try a policy in virtual time, before deploying it"),
    (
        "reproduce",
        Program::Lab,
        "Run the papers' tables and figures again in the simulator, and judge how ours compare",
    ),
];

/// The commands as the help lists them.
pub(crate) fn listed() -> impl Iterator<Item = clap::Command> {
    COMMANDS.into_iter().map(|(name, _, about)| clap::Command::new(name).about(about))
}

/// The line of the help about them.
pub(crate) const NOTE: &str = "load is the program flashweir-load; demo, demo-chain, demo-hot, demo-scale, origin, sim and reproduce are \
                               flashweir-lab. Both are looked for beside this program and on PATH.";

/// A command line for another program.
pub(crate) struct Forwarded {
    program: Program,
    arguments: Vec<OsString>,
}

impl Forwarded {
    /// The other program for these arguments of `flashweir`, if they are its: `load ...`, and `help load
    /// ...`, as the parser of `flashweir` itself reads `help`.
    pub(crate) fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let is_help = arguments.first().is_some_and(|first| first == "help");
        let (name, rest) = arguments[usize::from(is_help)..].split_first()?;
        let (name, program, _) = COMMANDS.into_iter().find(|(known, ..)| OsStr::new(known) == name)?;
        let words: &[&str] = match (program, is_help, rest) {
            (Program::Load, false, _) => &[],
            (Program::Load, true, []) => &["--help-all"],
            (Program::Load, true, _) => &["help"],
            (_, false, _) => &[name],
            (_, true, _) => &["help", name],
        };
        let arguments = words.iter().map(OsString::from).chain(rest.iter().cloned()).collect();
        Some(Self { program, arguments })
    }

    /// Becomes the other program.
    pub(crate) fn run(self) -> anyhow::Error {
        let file = match self.program.find() {
            Ok(file) => file,
            Err(missing) => return UsageError::new(missing.to_string()).into(),
        };
        let error = Command::new(&file).args(self.arguments).exec();
        Err::<(), _>(error).with_context(|| format!("{} cannot be started", file.display())).unwrap_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(arguments: &[&str]) -> Option<(&'static str, Vec<OsString>)> {
        let found = Forwarded::from_arguments(arguments.iter().map(OsString::from))?;
        Some((found.program.name(), found.arguments))
    }

    #[test]
    fn arguments_stay_as_they_are() {
        let check = |arguments: &[&str], program: &'static str, expected: &[&str]| {
            let expected = expected.iter().map(OsString::from).collect();
            assert_eq!(forwarded(arguments), Some((program, expected)), "{arguments:?}");
        };
        check(&["load", "--", "-x", "help", ""], "flashweir-load", &["--", "-x", "help", ""]);
        check(&["load", "--help"], "flashweir-load", &["--help"]);
        check(&["help", "load"], "flashweir-load", &["--help-all"]);
        check(&["help", "load", "merge"], "flashweir-load", &["help", "merge"]);
        check(&["sim", "-h", "x"], "flashweir-lab", &["sim", "-h", "x"]);
        check(&["help", "sim"], "flashweir-lab", &["help", "sim"]);
    }

    #[test]
    fn commands_of_this_program_are_not_forwarded() {
        for arguments in
            [&[][..], &["run"], &["help"], &["help", "run"], &["--help", "load"], &["run", "load"]]
        {
            assert_eq!(forwarded(arguments), None, "{arguments:?}");
        }
    }
}

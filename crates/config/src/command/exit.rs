//! Exit codes, and the one line on standard error that goes with them.

use core::fmt;
use std::process::ExitCode;

/// `EX_USAGE` of sysexits.h: what was asked for cannot be done as written, so trying again will not help.
const USAGE: u8 = 64;

/// A wrong argument that only a command itself can find.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    /// With a message that names the argument and what is expected.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Prints help or the parser's complaint. Help that was asked for is a success.
#[must_use]
pub fn after_parsing(error: &clap::Error) -> ExitCode {
    // No reader is left when standard error is closed.
    let _unheard = error.print();
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Prints the error of a command in one line. The exit code is that of wrong usage for a [`UsageError`], and
/// for errors of which the command itself knows that they are (`is_usage`): a wrong configuration, for one.
#[must_use]
pub fn after_failure(error: &anyhow::Error, is_usage: bool) -> ExitCode {
    eprintln!("flashweir: {}", one_line(error));
    if is_usage || error.is::<UsageError>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}

/// The error and its causes. Many errors end with their cause's text already; it is not said twice.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.ends_with(&cause) { line } else { format!("{line}: {cause}") }
    })
}

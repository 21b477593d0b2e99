//! The program `flashweir-lab`, which `flashweir sim`, `reproduce`, `demo` and their neighbours become:
//! parses, runs, and maps errors to exit codes.
//!
//! `commands` has a file for each subcommand, `demo` what the demos share, [`scenario`] the files of the
//! simulator, [`experiments`] the papers' figures; `testbed` builds and runs what `reproduce --testbed` asks
//! for.

mod commands;
mod demo;
pub mod experiments;
pub mod scenario;
mod testbed;

use clap::Parser;
use flashweir_config::ConfigError;
use flashweir_config::command::{exit, help};
use std::process::ExitCode;

/// Commands of Flashweir that no operator needs: the simulator, the papers' figures, demos, and something to
/// protect.
#[derive(Debug, Parser)]
#[command(name = "flashweir-lab", bin_name = "flashweir", version, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 64 wrong usage or configuration.";

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let command_line = match help::parse::<CommandLine>() {
        Ok(command_line) => command_line,
        Err(error) => return exit::after_parsing(&error),
    };
    match command_line.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::after_failure(&error, error.is::<ConfigError>()),
    }
}

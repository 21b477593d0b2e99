//! The `flashweir` command: parses, runs, and maps errors to exit codes. All else is in libraries.

mod commands;
mod demo;
mod environment;
mod exit;
mod kubernetes;
mod logging;
mod ready_file;
mod testbed;

use std::process::ExitCode;

use clap::Parser;

/// Keeps a web service fast for the people it lets in while a crowd is at the door, and gives everybody else
/// a quick, honest answer.
#[derive(Debug, Parser)]
#[command(name = "flashweir", version, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 64 wrong usage or configuration.";

fn main() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => return exit::after_parsing(&error),
    };
    let outcome = command_line.command.run();
    logging::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::after_failure(&error),
    }
}

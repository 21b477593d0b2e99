//! The `flashweir` command: parses, runs, and maps errors to exit codes. All else is in libraries.

mod commands;
mod exit;
mod kubernetes;
mod laboratory;
mod logging;
mod ready_file;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use flashweir_config::command::help::with_help_all;
use laboratory::Forwarded;

/// Keeps a web service fast for the people it lets in while a crowd is at the door, and gives everybody else
/// a quick, honest answer.
#[derive(Debug, Parser)]
#[command(name = "flashweir", version, long_version = version::long(), after_help = format!("{}\n\n{EXIT_CODES}", laboratory::NOTE))]
struct CommandLine {
    #[command(subcommand)]
    command: commands::Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 64 wrong usage or configuration.";

/// The command line of this program.
pub(crate) fn parser() -> clap::Command {
    with_help_all(CommandLine::command())
}

/// The same with the names of the laboratory's commands.
pub(crate) fn whole_parser() -> clap::Command {
    parser().subcommands(laboratory::listed())
}

fn main() -> ExitCode {
    if let Some(forwarded) = Forwarded::from_arguments(std::env::args_os().skip(1)) {
        return exit::after_failure(&forwarded.run());
    }
    let matches = whole_parser().try_get_matches();
    let command_line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(command_line) => command_line,
        Err(error) => return flashweir_config::command::exit::after_parsing(&error),
    };
    let outcome = command_line.command.run();
    logging::flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::after_failure(&error),
    }
}

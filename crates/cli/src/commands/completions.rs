//! `flashweir completions` and `flashweir manual`: texts that shells and `man` read.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap_complete::Shell;

/// Print the completions of a shell, for its file of them.
///
/// bash: /etc/bash_completion.d/flashweir; zsh: a file _flashweir in a directory of $fpath; fish:
/// ~/.config/fish/completions/flashweir.fish. The packages have all three.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Write a manual page for each command into a directory: flashweir.1, flashweir-run.1, …
#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// The directory, which exists.
    directory: PathBuf,
}

/// The same with nothing hidden: pages leave out the text of an option that the short help leaves out.
fn with_all_texts(command: clap::Command) -> clap::Command {
    command.mut_args(|option| option.hide_short_help(false)).mut_subcommands(with_all_texts)
}

impl CompletionsArgs {
    /// Does it.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::whole_parser(), "flashweir", &mut text);
        // Not written directly: the library panics when the reader (`head`, for one) has gone.
        Ok(std::io::stdout().write_all(&text)?)
    }
}

impl ManualArgs {
    /// Does it.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        clap_mangen::generate_to(with_all_texts(crate::parser()), &self.directory)
            .with_context(|| format!("cannot write manual pages into {}", self.directory.display()))
    }
}

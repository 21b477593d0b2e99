//! Output of a result: the options that a run and `merge` share, and their effects.

use super::assertion::{self, Assertion};
use super::{csv, file, html, output};
use crate::LoadResult;
use anyhow::Context as _;
use flashweir_config::command::exit::UsageError;
use std::io::Write as _;
use std::path::PathBuf;

/// Options for the result.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct EndingArgs {
    /// Print the result as JSON on stdout, instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the same JSON to a file, which `merge` and `compare` read.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) out: Option<PathBuf>,
    /// Write what happened second by second to a file: one line a second and class.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) csv: Option<PathBuf>,
    /// Write a report with charts to a file: one page of HTML that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Fail with exit code 1 unless this holds, like 'p99 < 500ms'; may be repeated.
    #[arg(
        long = "assert",
        value_name = "EXPR",
        value_parser = assertion::parse,
        long_help = assertion::HELP,
    )]
    pub(crate) assertions: Vec<Assertion>,
}

impl EndingArgs {
    /// Finds before the work, not after it, that its results have no place to go.
    ///
    /// # Errors
    /// A file that is a directory or lies in none that exists, by its option.
    pub(crate) fn check_places(&self) -> anyhow::Result<()> {
        let Self { out, csv, html, .. } = self;
        for (option, file) in [("--out", out), ("--csv", csv), ("--html", html)] {
            let Some(file) = file else { continue };
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            if file.is_dir() || parent.is_some_and(|parent| !parent.is_dir()) {
                let why = if file.is_dir() { "is a directory" } else { "is in no directory that exists" };
                return Err(UsageError::new(format!("{option}: {} {why}", file.display())).into());
            }
        }
        Ok(())
    }

    /// Prints the result, writes the files, and checks the assertions. Each is done even if another fails: a
    /// run of an hour is not to be lost for a full disk or a reader that has gone.
    ///
    /// # Errors
    /// The first that failed, after the others were printed on stderr: a file that cannot be written, by its
    /// name; stdout that cannot be; assertions that do not hold, reported line by line.
    pub(crate) fn deliver(&self, result: &LoadResult) -> anyhow::Result<()> {
        for warning in output::warnings(result) {
            eprintln!("{warning}");
        }
        let done = [
            self.print(result),
            self.write_json(result),
            self.csv.as_ref().map_or(Ok(()), |path| csv::write(result, path)),
            self.html.as_ref().map_or(Ok(()), |path| html::write(result, path)),
            assertion::enforce(&self.assertions, result),
        ];
        let mut failed = done.into_iter().filter_map(Result::err);
        let first = failed.next();
        failed.for_each(|error| eprintln!("flashweir: {error:#}"));
        first.map_or(Ok(()), Err)
    }

    fn print(&self, result: &LoadResult) -> anyhow::Result<()> {
        let text = if self.json { json(result)? } else { output::table(result) };
        std::io::stdout().write_all(text.as_bytes()).context("the result cannot be printed")
    }

    fn write_json(&self, result: &LoadResult) -> anyhow::Result<()> {
        let Some(path) = &self.out else { return Ok(()) };
        file::write(path, &json(result)?).with_context(|| format!("{}: cannot be written", path.display()))
    }
}

fn json(result: &LoadResult) -> serde_json::Result<String> {
    Ok(serde_json::to_string(result)? + "\n")
}

//! Demos whose only result are numbers: printed, and kept in a file.

use super::children::Family;
use super::signals;
use anyhow::Context;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Options of one of these demos.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// Draws when people arrive and from where.
    pub(crate) seed: u64,
    /// Directory of the numbers and of the children's logs.
    pub(crate) out: PathBuf,
    /// Print the numbers as JSON.
    pub(crate) json: bool,
    /// The crowd over what is there to serve it.
    pub(crate) multiple: f64,
    /// The cache is in use before the crowd comes, too.
    pub(crate) always_caches: bool,
}

/// Plays, ends all children, writes the numbers to `file` and prints them as `text` or as JSON.
///
/// # Errors
/// Errors of `play`, or numbers that cannot be written.
pub(crate) fn run<N: Serialize>(
    choices: &Choices,
    file: &str,
    play: impl FnOnce(&Choices, &Family) -> anyhow::Result<N>,
    text: impl FnOnce(&N) -> String,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(&choices.out)
        .with_context(|| format!("{}: cannot be made", choices.out.display()))?;
    let family = Family::default();
    signals::end_children_on_signal(family.clone(), false)?;
    let numbers = play(choices, &family);
    drop(family.end_all());
    let numbers = numbers?;
    let json = serde_json::to_string_pretty(&numbers)?;
    let file = choices.out.join(file);
    std::fs::write(&file, &json).with_context(|| format!("{}: cannot be written", file.display()))?;
    let text = if choices.json { json } else { text(&numbers) };
    writeln!(std::io::stdout(), "{text}").context("the numbers cannot be printed")
}

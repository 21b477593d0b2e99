//! The HTML report of a run: one self-contained page, the numbers first and then the pictures that explain
//! them.
//!
//! The page of an hour's run stays below a megabyte: charts draw at most a few points a pixel column, for any
//! number of seconds, and a class has its own picture only where there are few of them.

mod classes;
mod generator;
mod latency;
mod ledger;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod timeline;
mod vocabulary;

use super::file;
use crate::LoadResult;
use crate::report::Page;
use anyhow::Context;
use std::path::Path;
use timeline::Timeline;

/// Writes the page of a result to a file: whole or not at all, so that a reader never sees half a page.
///
/// # Errors
/// A result that contradicts itself; a file that cannot be written, by its name.
pub(crate) fn write(result: &LoadResult, path: &Path) -> anyhow::Result<()> {
    let page = page(result).with_context(|| format!("{}: no report can be made", path.display()))?;
    file::write(path, &page).with_context(|| format!("{}: cannot be written", path.display()))
}

/// The page of a result.
///
/// # Errors
/// Latencies that are no histogram, which only a file that was tampered with can hold.
fn page(result: &LoadResult) -> anyhow::Result<String> {
    let time = Timeline::of(result);
    let mut page = Page::new(summary::title(result), summary::lead(result));
    if let Some(warnings) = summary::warnings(result) {
        page = page.section(warnings);
    }
    page = page
        .section(summary::numbers(result))
        .section(ledger::section(result, &time)?)
        .section(latency::section(result, &time)?);
    if let Some(classes) = classes::section(result, &time)? {
        page = page.section(classes);
    }
    page = page
        .section(generator::section(result, &time)?)
        .section(summary::facts(result))
        .section(vocabulary::section())
        .footer(summary::footer());
    Ok(page.html()?)
}

//! Adds the results of shards: each sent its part of one schedule, together they are the whole run.

use crate::MergeError;
use crate::books::{FORMAT, conclude};
use crate::result::{LoadResult, RunFacts};
use crate::tally::Book;
use std::collections::BTreeMap;

/// Adds results of parts of one schedule, each with the name to call it by in errors. Counts and histograms
/// add exactly; percentiles, ratios and the recovery are computed again from the sums.
///
/// # Errors
/// No results, one in another format or of another run (URL, seed, length), a shard twice or of another
/// number of shards, or one whose books do not add up.
pub fn merge(results: &[(String, LoadResult)]) -> Result<LoadResult, MergeError> {
    let Some((first_name, first)) = results.first() else { return Err(MergeError::Nothing) };
    let mut classes: BTreeMap<String, Book> = BTreeMap::new();
    let mut shards: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, result) in results {
        same_run((first_name, &first.run), (name, &result.run))?;
        for shard in &result.run.shards {
            same_division(&shards, (shard, name))?;
            if let Some(other) = shards.insert(shard, name) {
                let (shard, other) = (shard.clone(), other.to_owned());
                return Err(MergeError::Twice { shard, one: other, other: name.clone() });
            }
        }
        for (class, tally) in &result.classes {
            let book = Book::read(tally, result.series_bin_s).map_err(|why| MergeError::Broken {
                name: name.clone(),
                class: class.clone(),
                why,
            })?;
            classes.entry(class.clone()).or_insert_with(Book::new).merge(&book);
        }
    }
    let runs = || results.iter().map(|(_, result)| result);
    let run = RunFacts {
        duration_s: runs().map(|result| result.run.duration_s).fold(0.0, f64::max),
        addresses: runs().flat_map(|result| result.run.addresses.iter().copied()).collect(),
        shards: runs().flat_map(|result| result.run.shards.iter().cloned()).collect(),
        interrupted: runs().any(|result| result.run.interrupted),
        ..first.run.clone()
    };
    let mut merged = conclude(run, classes, first.crowd);
    runs().for_each(|result| merged.connections.add(&result.connections));
    merged.saturated = runs().any(|result| result.saturated);
    merged.hurst = first.hurst.clone();
    Ok(merged)
}

/// Shards are `I/N`, and all of one run have the same N.
fn same_division(shards: &BTreeMap<&str, &str>, (shard, name): (&str, &str)) -> Result<(), MergeError> {
    let division = |shard: &str| shard.split_once('/').map(|(_, count)| count.to_owned());
    match shards.iter().find(|(known, _)| division(known) != division(shard)) {
        None => Ok(()),
        Some((known, one)) => Err(MergeError::Division {
            one: (*one).to_owned(),
            shard: (*known).to_owned(),
            other: name.to_owned(),
            other_shard: shard.to_owned(),
        }),
    }
}

fn same_run(first: (&String, &RunFacts), other: (&String, &RunFacts)) -> Result<(), MergeError> {
    let ((first_name, first), (name, other)) = (first, other);
    let format = other.format;
    if format != FORMAT {
        return Err(MergeError::Format { name: name.clone(), format, known: FORMAT });
    }
    let facts = [
        ("the URL", &first.url, &other.url),
        ("the seed", &first.seed.to_string(), &other.seed.to_string()),
        ("the schedule's length", &first.length_s.to_string(), &other.length_s.to_string()),
    ];
    match facts.into_iter().find(|(_, one, other)| one != other) {
        None => Ok(()),
        Some((what, one, other)) => Err(MergeError::OtherRun {
            what,
            first: first_name.clone(),
            one: one.clone(),
            name: name.clone(),
            other: other.clone(),
        }),
    }
}

#[cfg(test)]
mod tests;

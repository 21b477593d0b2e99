//! The bars, and the lines of "What was missed".

use super::{Phase, Report, Row};
use crate::trials::origins::{Belief, Protection};
use crate::trials::spread::median;
use std::fmt::Write;

/// Least useful share in the crowd, and least part of what the best static limit came to.
pub const BAR: f64 = 0.97;
/// In the first ten seconds of the calm one request of this many may be refused.
pub const EARLY_PER_REFUSED: u64 = 1_000;

impl Report {
    /// A line for each bar that Flashweir missed.
    pub(super) fn misses(&self) -> String {
        let mut text = String::from("## What was missed\n\n");
        let lines: Vec<String> = self.rows.iter().filter_map(misses_of).collect();
        for line in &lines {
            let _ = writeln!(text, "- {line}");
        }
        let is_measured = self.rows.iter().any(|row| flashweirs(row, Phase::Crowd).next().is_some());
        if !is_measured {
            let _ = writeln!(text, "No row was measured yet.");
        } else if lines.is_empty() {
            let _ = writeln!(text, "Nothing: every measured row is at or above the bars.");
        }
        text
    }
}

/// All misses of one origin; `None` without any.
fn misses_of(row: &Row) -> Option<String> {
    let misses = [
        refused_in_calm(row),
        refused_at_the_step(row),
        short_of_the_bar(row),
        short_of_the_static_limit(row),
    ];
    let misses: Vec<String> = misses.into_iter().flatten().collect();
    (!misses.is_empty()).then(|| format!("{}: {}{}", row.origin.name(), misses.join(" "), believed(row)))
}

/// Requests that Flashweir refused in calm, beyond the allowance of its first ten seconds.
fn refused_in_calm(row: &Row) -> Option<String> {
    let (mut early_refused, mut early_offered, mut later) = (0, 0, Vec::new());
    for phase in flashweirs(row, Phase::Calm) {
        let early = phase.early.unwrap_or_default();
        early_refused += early.refused;
        early_offered += early.offered;
        let refused = phase.sum(|kind| kind.refused);
        if refused > early.refused {
            let kinds: Vec<String> = phase
                .kinds
                .iter()
                .filter(|kind| kind.refused > 0)
                .map(|kind| format!("{} of {} {}", kind.refused, kind.offered, kind.kind))
                .collect();
            later.push(kinds.join(", "));
        }
    }
    if !later.is_empty() {
        return Some(format!("in calm {} were refused.", later.join("; then ")));
    }
    (early_refused * EARLY_PER_REFUSED > early_offered).then(|| {
        format!("in the first seconds of the calm {early_refused} of {early_offered} requests were refused.")
    })
}

/// Complaint about requests that were refused although the origin carries the step.
fn refused_at_the_step(row: &Row) -> Option<String> {
    if row.origin.is_work() {
        return None;
    }
    let crowds = || flashweirs(row, Phase::Crowd);
    let refused: u64 = crowds().map(|phase| phase.sum(|kind| kind.refused)).sum();
    let offered: u64 = crowds().map(|phase| phase.sum(|kind| kind.offered)).sum();
    (refused > 0)
        .then(|| format!("at a step that the origin carries {refused} of {offered} requests were refused."))
}

fn short_of_the_bar(row: &Row) -> Option<String> {
    let ours = worth(row, Protection::Flashweir).filter(|worth| *worth < BAR)?;
    let mut text = format!("{ours:.3} in the crowd, below {BAR}.");
    let of = |part: fn(&super::PhaseResult) -> Option<f64>| {
        median(flashweirs(row, Phase::Crowd).filter_map(part).collect())
    };
    let busy = of(|phase| phase.share.map(|share| share.busy));
    let in_time = of(|phase| phase.share.map(|share| share.in_time));
    if let Some((busy, in_time)) = busy.zip(in_time) {
        let _ = write!(
            text,
            " {:.3} of the time the origin had no work, {:.3} of its completions were too late.",
            1.0 - busy,
            1.0 - in_time
        );
    }
    Some(text)
}

fn short_of_the_static_limit(row: &Row) -> Option<String> {
    let (ours, best) = (worth(row, Protection::Flashweir)?, worth(row, Protection::Haproxy)?);
    let maxconn = row.found.as_ref().map_or(0, |found| found.maxconn);
    (ours < BAR * best).then(|| {
        format!("{ours:.3} in the crowd, below {BAR} of the {best:.3} that `maxconn {maxconn}` came to.")
    })
}

/// Median over the rounds, in the crowd.
fn worth(row: &Row, protection: Protection) -> Option<f64> {
    median(row.values(protection, Phase::Crowd, super::PhaseResult::worth))
}

fn flashweirs(row: &Row, phase: Phase) -> impl Iterator<Item = &super::PhaseResult> {
    let runs = row.runs.iter().filter(|run| run.protection == Protection::Flashweir);
    runs.filter_map(move |run| run.phase(phase))
}

/// The limit and its rules in the crowd of the first round.
fn believed(row: &Row) -> String {
    let belief = flashweirs(row, Phase::Crowd).find_map(|phase| phase.belief.as_ref());
    belief.map_or_else(String::new, |belief: &Belief| format!(" In the crowd: {}.", belief.in_words()))
}

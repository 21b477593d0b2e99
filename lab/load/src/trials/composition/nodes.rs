//! A crowd that comes through a sidecar in front: the gateway with the sentry alone, with NEWS beside it, and
//! with the ladder as well, which asks the sidecar for less. Together they must not throttle twice.

use crate::trials::spread::{cell, median};
use flashweir_core::measure::Useful;
use std::fmt::Write;

/// Processor time of a page, milliseconds.
pub const PAGE_MS: u32 = 5;
/// The crowd over the origin's capacity.
pub const LOAD: f64 = 2.25;
/// By how much the useful part of the origin's time may be less than with the sentry alone.
pub const LESS_MAX: f64 = 0.01;

/// Stages of the gateway that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// The sentry.
    Sentry,
    /// NEWS as well, which is the gateway without any configuration.
    Default,
    /// The ladder, too: the sidecar is configured as a node in front.
    Ladder,
}

impl Stages {
    /// In the order of the table.
    pub const ALL: [Self; 3] = [Self::Sentry, Self::Default, Self::Ladder];

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sentry => "sentry alone",
            Self::Default => "sentry, NEWS",
            Self::Ladder => "sentry, NEWS, ladder",
        }
    }
}

/// Result of one run through a sidecar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodesRun {
    /// Stages that decided.
    pub stages: Stages,
    /// In which round, from 0.
    pub round: usize,
    /// Use of the origin's time.
    pub useful: Useful,
    /// Of all that was offered, calm included, the part that the gateway refused.
    pub refused_at_node: f64,
    /// The load generator could not keep up.
    pub is_saturated: bool,
}

/// The table, and how much less is useful than with the sentry alone, round by round.
#[must_use]
pub fn text(runs: &[NodesRun]) -> String {
    let mut text = format!(
        "{LOAD} times the capacity through a sidecar, pages of {PAGE_MS} ms, median [min–max]\n\n\
         {:<21} {:<20} {:<16} {:>20}\n",
        "", "useful", "busy × in time", "refused at the node"
    );
    for stages in Stages::ALL {
        let of = |value: fn(&NodesRun) -> f64| -> Vec<f64> {
            runs.iter().filter(|run| run.stages == stages).map(value).collect()
        };
        let number =
            |value| median(of(value)).map_or_else(|| "–".to_owned(), |median| format!("{median:.3}"));
        let factors = format!("{} × {}", number(|run| run.useful.busy), number(|run| run.useful.in_time));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<21} {:<20} {factors:<16} {:>20}",
            stages.name(),
            cell(&of(|run| run.useful.useful())),
            number(|run| run.refused_at_node),
        );
    }
    let less = differences(runs);
    let _ = writeln!(text, "\nall three less than the sentry alone, by round: {}", cell(&less));
    if let Some(median) = median(less) {
        let verdict = if median <= LESS_MAX { "met" } else { "MISSED" };
        let _ = writeln!(text, "bar {LESS_MAX} on the median: {verdict}");
    }
    let saturated = runs.iter().filter(|run| run.is_saturated).count();
    if saturated > 0 {
        let _ = writeln!(text, "in {saturated} of {} runs the load generator did not keep up", runs.len());
    }
    text
}

/// The sentry alone minus all three, of the rounds that have both.
fn differences(runs: &[NodesRun]) -> Vec<f64> {
    let of = |wanted, round| {
        let run = runs.iter().find(|run| run.stages == wanted && run.round == round)?;
        Some(run.useful.useful())
    };
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let less = |round| Some(of(Stages::Sentry, round)? - of(Stages::Ladder, round)?);
    (0..rounds).filter_map(less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_less_is_judged_round_by_round() {
        let run = |stages, round, busy| NodesRun {
            stages,
            round,
            useful: Useful { busy, in_time: 1.0, processor_ms: Some(5.0) },
            refused_at_node: 0.2,
            is_saturated: round == 2,
        };
        let runs = [
            run(Stages::Sentry, 0, 0.99),
            run(Stages::Ladder, 0, 0.96),
            run(Stages::Ladder, 1, 0.97),
            run(Stages::Sentry, 1, 0.98),
            // Its partner of this round was not measured.
            run(Stages::Sentry, 2, 0.5),
        ];
        let table = text(&runs);
        assert!(table.contains("by round: 0.030 [0.010–0.030]"), "{table}");
        assert!(table.contains("bar 0.01 on the median: MISSED"), "{table}");
        assert!(table.contains("in 1 of 5 runs"), "{table}");
        let nothing = text(&[]);
        assert!(nothing.contains('–') && !nothing.contains("NaN") && !nothing.contains("bar"), "{nothing}");
    }
}

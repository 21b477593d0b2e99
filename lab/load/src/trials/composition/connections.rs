//! Thousands of new connections a second, each with one request, at an origin of cheap pages.

use crate::trials::spread::{cell, median};
use crate::trials::useful::Composition;
use flashweir_core::measure::Useful;
use std::fmt::Write;

/// New connections a second.
pub const CONNECTIONS_RPS: f64 = 8_000.0;
/// Processor time of a page, milliseconds.
pub const PAGE_MS: u32 = 1;
/// The compared compositions.
pub const COMPOSITIONS: [Composition; 2] = [Composition::SentryAlone, Composition::Default];

/// Result of one run with a connection for each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionsRun {
    /// Stages that decided.
    pub composition: Composition,
    /// In which round, from 0.
    pub round: usize,
    /// Use of the origin's time.
    pub useful: Useful,
    /// Requests really sent, a second, over the seconds that are judged.
    pub sent_rps: f64,
    /// Requests answered or refused in time, a second, over the same.
    pub answered_rps: f64,
    /// The load generator could not keep up.
    pub is_saturated: bool,
}

/// The table, and the ratio round by round.
#[must_use]
pub fn text(runs: &[ConnectionsRun]) -> String {
    let mut text = format!(
        "{CONNECTIONS_RPS:.0} new connections a second, pages of {PAGE_MS} ms, median [min–max]\n\n\
         {:<13} {:<20} {:<16} {:>8} {:>9}\n",
        "", "useful", "busy × in time", "sent/s", "answered/s"
    );
    for composition in COMPOSITIONS {
        let of = |value: fn(&ConnectionsRun) -> f64| -> Vec<f64> {
            runs.iter().filter(|run| run.composition == composition).map(value).collect()
        };
        let number = |value, digits: usize| {
            median(of(value)).map_or_else(|| "–".to_owned(), |median| format!("{median:.digits$}"))
        };
        let factors =
            format!("{} × {}", number(|run| run.useful.busy, 3), number(|run| run.useful.in_time, 3));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<13} {:<20} {factors:<16} {:>8} {:>9}",
            composition.name(),
            cell(&of(|run| run.useful.useful())),
            number(|run| run.sent_rps, 0),
            number(|run| run.answered_rps, 0),
        );
    }
    let _ = writeln!(text, "\ndefault / sentry alone: {}", cell(&ratios(runs)));
    let saturated = runs.iter().filter(|run| run.is_saturated).count();
    if saturated > 0 {
        let _ = writeln!(text, "in {saturated} of {} runs the load generator did not keep up", runs.len());
    }
    text
}

/// Default over sentry alone, of the rounds that have both.
fn ratios(runs: &[ConnectionsRun]) -> Vec<f64> {
    let of = |wanted, round| {
        let run = runs.iter().find(|run| run.composition == wanted && run.round == round)?;
        Some(run.useful.useful()).filter(|useful| *useful > 0.0)
    };
    let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let ratio = |round| Some(of(Composition::Default, round)? / of(Composition::SentryAlone, round)?);
    (0..rounds).filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let run = |composition, round, busy| ConnectionsRun {
            composition,
            round,
            useful: Useful { busy, in_time: 1.0, processor_ms: Some(1.0) },
            sent_rps: 5_000.0,
            answered_rps: 4_900.0,
            is_saturated: round == 1,
        };
        let runs = [
            run(Composition::SentryAlone, 0, 0.8),
            run(Composition::Default, 0, 0.72),
            run(Composition::SentryAlone, 1, 0.5),
            // Its partner of this round was not measured.
            run(Composition::Default, 2, 0.6),
        ];
        insta::assert_snapshot!(text(&runs));
        let nothing = text(&[]);
        assert!(nothing.contains('–') && !nothing.contains("NaN"), "{nothing}");
    }
}

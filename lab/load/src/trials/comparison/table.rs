//! All runs of all protections in all scenes, as medians over rounds.

use super::{ComparisonOutcome, Scene};
use serde::{Deserialize, Serialize};

/// The whole table, with what is needed to read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Machine and method.
    pub setup: Setup,
    /// The protections.
    pub columns: Vec<Column>,
    /// The scenes.
    pub rows: Vec<Row>,
}

/// Machine and method of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Processor, cores and system.
    pub machine: String,
    /// Core of each process.
    pub placement: String,
    /// Capacity of which the crowds are multiples: requests a second the processor-bound origin completed at
    /// the start.
    pub capacity_rps: f64,
    /// The least and the most the processor-bound origins completed right before a run; each run is judged by
    /// its own.
    pub capacity_rps_range: Range,
    /// Times each cell was run.
    pub rounds: usize,
    /// Length of a crowd, of a state of the changing origin, seconds.
    pub crowd_s: u64,
}

/// The least and the most over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Range {
    /// Of some numbers; of none, nothing to nothing.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let Some(&first) = values.first() else { return Self::default() };
        values.iter().fold(Self { least: first, most: first }, |range, &value| Self {
            least: range.least.min(value),
            most: range.most.max(value),
        })
    }
}

/// A protection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its description and its set-up.
    pub about: String,
    /// One of Flashweir's own.
    pub is_ours: bool,
    /// It was configured with a rule for gold requests.
    pub knows_gold: bool,
    /// Results of the search, for each origin it was made for.
    pub found: Vec<TunedSetting>,
    /// Reason for which it was not run.
    pub not_run: Option<String>,
}

/// Setting that a search found for one origin, with its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunedSetting {
    /// The origin they are for.
    pub origin: String,
    /// The best, in the words of the program's configuration.
    pub best: String,
    /// Every trial, best first, and its useful share; where that is not measured, its goodput over the
    /// capacity.
    pub trials: Vec<(String, f64)>,
    /// The best is still at an edge of what was tried, although the search went beyond its grid.
    #[serde(default)]
    pub is_at_edge: bool,
}

/// A scene and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Title of the scene.
    pub title: String,
    /// People of the crowd over the whole capacity.
    pub offered: f64,
    /// The capacity changes meanwhile.
    pub changes: bool,
    /// One for each column; absent where it was not run.
    pub cells: Vec<Option<Cell>>,
}

/// Result of a protection in a scene.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Each number's median over the rounds.
    pub median: ComparisonOutcome,
    /// Spread of the goodput.
    pub goodput: Range,
    /// Spread of the useful share of the origin's time.
    pub useful: Option<Range>,
    /// Spread of the part of gold served in time.
    pub gold_in_time: Range,
}

impl Row {
    /// A row without cells.
    #[must_use]
    pub fn new(scene: &Scene) -> Self {
        let changes = !scene.changes.is_empty();
        Self { title: scene.title.clone(), offered: scene.offered, changes, cells: Vec::new() }
    }
}

impl Cell {
    /// Puts rounds together; `None` without any. Of an even number of values the upper middle counts. A time
    /// that was not reached in most rounds is not reached.
    #[must_use]
    pub fn of(rounds: &[ComparisonOutcome]) -> Option<Self> {
        if rounds.is_empty() {
            return None;
        }
        let all = |of: fn(&ComparisonOutcome) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
        let number = |of: fn(&ComparisonOutcome) -> f64| median(all(of));
        let time = |of: fn(&ComparisonOutcome) -> Option<f64>| {
            let times = rounds.iter().map(|round| of(round).unwrap_or(f64::INFINITY)).collect();
            Some(median(times)).filter(|time| time.is_finite())
        };
        let useful: Vec<f64> = rounds.iter().filter_map(|round| round.useful).collect();
        let median = ComparisonOutcome {
            goodput: number(|round| round.goodput),
            useful: (!useful.is_empty()).then(|| median(useful.clone())),
            late: number(|round| round.late),
            p99_admitted_ms: time(|round| round.p99_admitted_ms),
            gold_admitted: number(|round| round.gold_admitted),
            gold_in_time: number(|round| round.gold_in_time),
            refused: number(|round| round.refused),
            timed_out: number(|round| round.timed_out),
            failed: number(|round| round.failed),
            back_after_loss_s: time(|round| round.back_after_loss_s),
            back_after_return_s: time(|round| round.back_after_return_s),
            saturated: rounds.iter().any(|round| round.saturated),
        };
        let goodput = Range::of(&all(|round| round.goodput));
        let useful = median.useful.map(|_| Range::of(&useful));
        Some(Self { median, goodput, useful, gold_in_time: Range::of(&all(|round| round.gold_in_time)) })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_taken_number_by_number() {
        let round = |goodput, p99, back| ComparisonOutcome {
            goodput,
            p99_admitted_ms: p99,
            back_after_loss_s: back,
            ..ComparisonOutcome::default()
        };
        let rounds =
            [round(0.9, Some(700.0), None), round(0.7, None, Some(2.0)), round(0.8, Some(500.0), None)];
        let cell = Cell::of(&rounds).unwrap();
        assert_eq!(cell.median.goodput, 0.8);
        assert_eq!(cell.median.p99_admitted_ms, Some(700.0));
        assert_eq!(cell.median.back_after_loss_s, None, "it never came back in two of three");
        assert_eq!(cell.goodput, Range { least: 0.7, most: 0.9 });
        assert_eq!(Cell::of(&[]), None);
    }
}

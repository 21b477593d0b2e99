//! Judgement of Flashweir in a row: the best or not, and if not, the destination of the rest, from the
//! numbers alone.

use super::{Cell, Column, Comparison, Row};
use serde::Serialize;
use std::fmt;

/// One number of one of Flashweir's columns beside the best of the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The scene.
    pub row: String,
    /// Flashweir's column.
    pub column: String,
    /// The number.
    pub what: What,
    /// Its median.
    pub ours: f64,
    /// The best of the others.
    pub best_other: String,
    /// Its median.
    pub other: f64,
    /// Verdict on the two.
    pub verdict: Verdict,
    /// Destination of the rest; absent where Flashweir is the best.
    pub why: Option<String>,
}

/// A number that is judged; more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Goodput over the capacity.
    Goodput,
    /// Share of the origin's time that went into answers in time; judged where the origin has one worker that
    /// only computes.
    Useful,
    /// Part of the gold requests served within the target; judged where gold is known.
    GoldInTime,
}

/// Result of comparing a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At least as good as the best of the others.
    Best,
    /// The median is lower by no more than 0.005.
    Level,
    /// The median is lower, but the rounds of both overlap.
    WithinSpread,
    /// Every round was worse than every round of the best.
    Behind,
}

impl fmt::Display for What {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Goodput => "goodput",
            Self::Useful => "useful",
            Self::GoldInTime => "gold in time",
        })
    }
}

impl Comparison {
    /// Each row's judgements, in the order of the table. None for a row in which nothing else ran.
    #[must_use]
    pub fn judgements(&self) -> Vec<Judgement> {
        let mut judgements = Vec::new();
        for row in &self.rows {
            let cells = || self.columns.iter().zip(&row.cells);
            for (column, cell) in cells().filter(|(column, _)| column.is_ours) {
                let Some(cell) = cell else { continue };
                for what in what_to_judge(column, cell) {
                    let others = cells().filter(|(column, _)| !column.is_ours);
                    let others = others.filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
                    let best =
                        others.max_by(|one, other| value(one.1, what).total_cmp(&value(other.1, what)));
                    judgements.extend(best.map(|best| judge(row, (column, cell), best, what)));
                }
            }
        }
        judgements
    }
}

fn what_to_judge(column: &Column, cell: &Cell) -> impl Iterator<Item = What> {
    let useful = cell.useful.map(|_| What::Useful);
    [Some(What::Goodput), useful, column.knows_gold.then_some(What::GoldInTime)].into_iter().flatten()
}

fn judge(row: &Row, ours: (&Column, &Cell), other: (&Column, &Cell), what: What) -> Judgement {
    let (least, most) = (spread(other.1, what).0, spread(ours.1, what).1);
    let verdict = match value(other.1, what) - value(ours.1, what) {
        less if less <= 0.0 => Verdict::Best,
        less if less <= LEVEL => Verdict::Level,
        _ if most >= least => Verdict::WithinSpread,
        _ => Verdict::Behind,
    };
    Judgement {
        row: row.title.clone(),
        column: ours.0.name.clone(),
        what,
        ours: value(ours.1, what),
        best_other: other.0.name.clone(),
        other: value(other.1, what),
        verdict,
        why: (verdict != Verdict::Best).then(|| where_the_rest_went(ours.1, what)),
    }
}

/// Two medians so near to each other are the same on this ruler.
const LEVEL: f64 = 0.005;

fn value(cell: &Cell, what: What) -> f64 {
    match what {
        What::Goodput => cell.median.goodput,
        What::Useful => cell.median.useful.unwrap_or_default(),
        What::GoldInTime => cell.median.gold_in_time,
    }
}

fn spread(cell: &Cell, what: What) -> (f64, f64) {
    let range = match what {
        What::Goodput => cell.goodput,
        What::Useful => cell.useful.unwrap_or_default(),
        What::GoldInTime => cell.gold_in_time,
    };
    (range.least, range.most)
}

fn where_the_rest_went(cell: &Cell, what: What) -> String {
    let outcome = &cell.median;
    match what {
        What::Useful | What::Goodput => {
            let unused = (1.0 - outcome.goodput - outcome.late).max(0.0);
            format!(
                "of the capacity {:.2} went into answers after the target; {unused:.2} was left idle, spent on people \
                 who had gone or on refusing (refused were {:.2} of the requests, {:.2} timed out, {:.2} failed)",
                outcome.late, outcome.refused, outcome.timed_out, outcome.failed
            )
        }
        What::GoldInTime => {
            let refused = 1.0 - outcome.gold_admitted;
            let late = (outcome.gold_admitted - outcome.gold_in_time).max(0.0);
            format!(
                "of the gold requests {refused:.2} were refused and {late:.2} let in but not served in time"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::comparison::{ComparisonOutcome, Range, Scene, Setup};

    fn cell(goodput: f64, spread: f64) -> Option<Cell> {
        let median = ComparisonOutcome {
            goodput,
            gold_in_time: goodput,
            gold_admitted: 1.0,
            late: 0.1,
            ..ComparisonOutcome::default()
        };
        let range = Range { least: goodput - spread, most: goodput + spread };
        Some(Cell { median, goodput: range, useful: None, gold_in_time: range })
    }

    fn comparison(cells: Vec<Option<Cell>>) -> Comparison {
        let column = |name: &str, is_ours, knows_gold| Column {
            name: name.to_owned(),
            about: String::new(),
            is_ours,
            knows_gold,
            found: Vec::new(),
            not_run: None,
        };
        let setup = Setup {
            machine: String::new(),
            placement: String::new(),
            capacity_rps: 50.0,
            capacity_rps_range: Range::default(),
            rounds: 3,
            crowd_s: 7,
        };
        let columns = vec![
            column("nothing", false, false),
            column("haproxy", false, true),
            column("flashweir", true, false),
            column("classes", true, true),
        ];
        Comparison { setup, columns, rows: vec![Row { cells, ..Row::new(&Scene::overload(3.0, 7)) }] }
    }

    #[test]
    fn ours_are_judged_by_the_best_of_the_others() {
        let judgements =
            comparison(vec![cell(0.1, 0.0), cell(0.9, 0.05), cell(0.95, 0.0), cell(0.8, 0.06)]).judgements();
        let verdicts: Vec<_> =
            judgements.iter().map(|one| (one.column.as_str(), one.what, one.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                ("flashweir", What::Goodput, Verdict::Best),
                ("classes", What::Goodput, Verdict::WithinSpread),
                ("classes", What::GoldInTime, Verdict::WithinSpread),
            ]
        );
        assert!(judgements.iter().all(|judgement| judgement.best_other == "haproxy"));
        assert!(
            judgements[1].why.as_ref().unwrap().starts_with("of the capacity 0.10 went into answers after")
        );
        assert!(judgements[2].why.as_ref().unwrap().contains("0.00 were refused and 0.20 let in"));
    }

    #[test]
    fn a_difference_of_less_than_the_ruler_tells_is_none() {
        let verdict =
            |ours| comparison(vec![None, cell(0.9, 0.001), cell(ours, 0.0), None]).judgements()[0].verdict;
        assert_eq!((verdict(0.896), verdict(0.894)), (Verdict::Level, Verdict::Behind));
    }

    #[test]
    fn useful_is_judged_where_it_was_measured() {
        let useful = |value: f64| {
            let cell = cell(0.9, 0.0)?;
            let median = ComparisonOutcome { useful: Some(value), ..cell.median };
            Some(Cell { median, useful: Some(Range { least: value, most: value }), ..cell })
        };
        let judgements = comparison(vec![useful(0.5), useful(0.97), useful(0.99), None]).judgements();
        let useful_row = judgements.iter().find(|useful_row| useful_row.what == What::Useful).unwrap();
        assert_eq!((useful_row.ours, useful_row.other, useful_row.verdict), (0.99, 0.97, Verdict::Best));
    }

    #[test]
    fn what_was_not_run_is_no_rival_and_not_judged() {
        let judgements = comparison(vec![cell(0.1, 0.0), None, cell(0.05, 0.01), None]).judgements();
        assert_eq!(judgements.len(), 1);
        assert_eq!((judgements[0].best_other.as_str(), judgements[0].verdict), ("nothing", Verdict::Behind));
        assert_eq!(comparison(vec![None, None, cell(0.9, 0.0), None]).judgements(), []);
    }
}

//! `docs/comparison.md`.

use super::judgement::{Judgement, Verdict};
use super::scene::{GOLD_SHARE, PATIENCE_S, TARGET_S};
use super::{Cell, Column, Comparison, Range, Row};
use std::fmt::Write as _;

/// A p99 this near to the patience is that of people who gave up; buckets are 3 % wide.
const GAVE_UP_MS: f64 = PATIENCE_S * 1e3 * 0.95;

/// The least capacity over the most that a machine with nothing else to do keeps to.
const QUIET_SPREAD: f64 = 0.8;

/// Remark on a search that found no best inside.
const AT_EDGE: &str = " **The best is at the edge of what was tried: a better setting may lie beyond.**";

impl Comparison {
    /// The page, in Markdown: every word of it that depends on a number is made from the number.
    #[must_use]
    pub fn page(&self) -> String {
        let parts = [
            self.introduction(),
            self.overview(),
            self.reading(),
            self.rows(),
            self.verdicts(),
            self.settings(),
        ];
        parts.join("\n")
    }

    fn introduction(&self) -> String {
        let setup = &self.setup;
        let Range { least, most } = setup.capacity_rps_range;
        let quiet = match least >= QUIET_SPREAD * most {
            true => "",
            false => {
                " **That is much apart: the machine was busy with something else, and this table says little.**"
            }
        };
        format!(
            "# Flashweir beside other protections\n\n\
             Written by `make compare`, every number by one run of it: {} rounds, medians over them. The same crowd, origin \
             and load generator (`flashweir load`, open loop) each time; only what stands between differs.\n\n\
             Machine: {}. {} The crowd is a multiple of {:.1} requests/s, which the processor-bound origin completed at the \
             start; each run is judged by what its own origin completed right before it ({least:.1} to {most:.1} \
             requests/s).{quiet}\n",
            setup.rounds, setup.machine, setup.placement, setup.capacity_rps
        )
    }

    /// Goodput and useful, scene by protection.
    fn overview(&self) -> String {
        let goodput = self.overview_of(|cell| format!("{:.2}", cell.median.goodput));
        let useful =
            self.overview_of(|cell| cell.median.useful.map_or("–".to_owned(), |it| format!("{it:.3}")));
        let mut text = format!(
            "## Useful share of the origin's time\n\n{useful}\n## Goodput over the capacity\n\n{goodput}"
        );
        for column in &self.columns {
            if let Some(why) = &column.not_run {
                let _ = write!(text, "\n{} was not run: {why}.\n", column.name);
            }
        }
        text
    }

    fn overview_of(&self, number: impl Fn(&Cell) -> String) -> String {
        let mut text = String::from("| crowd |");
        for column in &self.columns {
            // Writing to a string cannot fail, here and below.
            let _ = write!(text, " {} |", column.name);
        }
        let _ = write!(text, "\n|---|{}\n", "---:|".repeat(self.columns.len()));
        for row in &self.rows {
            let _ = write!(text, "| {} |", row.title);
            for cell in &row.cells {
                let _ = write!(text, " {} |", cell.as_ref().map_or_else(|| "not run".to_owned(), &number));
            }
            text.push('\n');
        }
        text
    }

    fn reading(&self) -> String {
        let crowd_s = self.setup.crowd_s;
        format!(
            "## How to read it\n\n\
             - A crowd of {crowd_s} s follows a quiet of half the capacity and is judged from its second second on; where the \
             capacity changes, all of it, a third and all again last {crowd_s} s each. Gold people \
             are {GOLD_SHARE} of the capacity all the time; of the others a third is silver, the rest bronze. Each \
             connects anew, asks once, and leaves after {PATIENCE_S} s.\n\
             - *Goodput*: answers completed within {TARGET_S} s of the moment the person came, over what the origin could \
             have completed in that time; 1 is all of it. In brackets the worst and the best round.\n\
             - *Useful*: the share of the crowd's time, from its second second on, in which the origin was running or runnable, \
             times the share of its completions that were answers in time. It does not know the machine's speed, which \
             drifts; goodput over a capacity measured before does. Only where the origin is one worker that computes.\n\
             - *p99 of admitted*: of everybody who was not refused; who gave up or got an error counts with {PATIENCE_S} s.\n\
             - *Gold admitted*: gold requests that were not refused. *Gold in time*: gold requests answered within the \
             target. A protection that is not told which requests are gold treats them as the rest.\n\
             - *Back at 90 %*: seconds from the change of capacity to the first two seconds in a row with 90 % of what the \
             origin could then do. It counts whole seconds: 0 means at once.\n\
             - Which of them had to be tuned: *settings found*, below, by *useful* where it is measured, else by goodput. Flashweir was given its upstream and, for the last \
             column, what is gold; nothing was tuned.\n"
        )
    }

    fn rows(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let _ = write!(text, "## {}\n\n{}\n", capital(&row.title), self.table(row));
        }
        text
    }

    fn table(&self, row: &Row) -> String {
        let mut heads = vec![
            "through",
            "goodput",
            "useful",
            "p99 of admitted",
            "gold admitted",
            "gold in time",
            "refused",
            "timed out",
            "failed",
        ];
        if row.changes {
            heads.extend(["back at 90 % after the loss", "back at 90 % after the return"]);
        }
        let mut text = format!("| {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len() - 1));
        for (column, cell) in self.columns.iter().zip(&row.cells) {
            let cells = match cell {
                Some(cell) => figures(cell, row.changes),
                None => vec!["not run".to_owned()],
            };
            let missing = " |".repeat(heads.len() - 1 - cells.len());
            let _ = writeln!(text, "| {} | {} |{missing}", column.name, cells.join(" | "));
        }
        text
    }

    fn verdicts(&self) -> String {
        let judgements = self.judgements();
        let (best, rest): (Vec<&Judgement>, Vec<&Judgement>) =
            judgements.iter().partition(|judgement| judgement.verdict == Verdict::Best);
        let mut text = format!(
            "## Where Flashweir is not the best\n\nFlashweir is at least as good as the best of the others in {} of {} \
             numbers (goodput and useful in each row; where it knows gold, gold in time).",
            best.len(),
            judgements.len()
        );
        text.push_str(if rest.is_empty() { "\n" } else { " In the others:\n\n" });
        for judgement in rest {
            let close = match judgement.verdict {
                Verdict::Level => ", the same on this ruler",
                Verdict::WithinSpread => ", within the spread of the rounds",
                Verdict::Best | Verdict::Behind => "",
            };
            let Judgement { row, column, what, ours, other, best_other, .. } = judgement;
            let why = judgement.why.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "- {row}: {what} of *{column}* is {ours:.3}, of *{best_other}* {other:.3}{close}: {why}."
            );
        }
        text
    }

    fn settings(&self) -> String {
        let mut text = String::from("## Settings found\n\n");
        for column in &self.columns {
            let _ = writeln!(text, "- *{}*: {}", column.name, searched(column));
        }
        text
    }
}

fn figures(cell: &Cell, changes: bool) -> Vec<String> {
    let outcome = &cell.median;
    let mark = if outcome.saturated { " (generator saturated)" } else { "" };
    let mut cells = vec![
        format!("{:.2} [{:.2}–{:.2}]{mark}", outcome.goodput, cell.goodput.least, cell.goodput.most),
        outcome.useful.zip(cell.useful).map_or_else(
            || "not measured".to_owned(),
            |(median, range)| format!("{median:.3} [{:.3}–{:.3}]", range.least, range.most),
        ),
        match outcome.p99_admitted_ms {
            None => "nobody admitted".to_owned(),
            Some(ms) if ms >= GAVE_UP_MS => "gave up".to_owned(),
            Some(ms) => format!("{ms:.0} ms"),
        },
        format!("{:.2}", outcome.gold_admitted),
        format!("{:.2}", outcome.gold_in_time),
        format!("{:.2}", outcome.refused),
        format!("{:.2}", outcome.timed_out),
        format!("{:.2}", outcome.failed),
    ];
    if changes {
        let back =
            |time: Option<f64>| time.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds:.0} s"));
        cells.extend([back(outcome.back_after_loss_s), back(outcome.back_after_return_s)]);
    }
    cells
}

fn searched(column: &Column) -> String {
    let mut text = column.about.clone();
    for found in &column.found {
        let trials: Vec<String> =
            found.trials.iter().map(|(setting, score)| format!("{setting}: {score:.2}")).collect();
        let _ = write!(
            text,
            " For the {} origin the best of {} trials at 3 times the capacity was {} ({}).{}",
            found.origin,
            trials.len(),
            found.best,
            trials.join("; "),
            if found.is_at_edge { AT_EDGE } else { "" }
        );
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use crate::trials::comparison::{
        Cell, Column, Comparison, ComparisonOutcome, Range, Row, Scene, Setup, TunedSetting,
    };

    fn column(name: &str, is_ours: bool) -> Column {
        Column {
            name: name.to_owned(),
            about: format!("{name} as it is."),
            is_ours,
            knows_gold: is_ours,
            found: Vec::new(),
            not_run: None,
        }
    }

    fn small() -> Comparison {
        let outcome = |goodput| ComparisonOutcome {
            goodput,
            late: 0.02,
            useful: Some(goodput),
            p99_admitted_ms: Some(1_950.0),
            gold_admitted: 0.99,
            gold_in_time: 0.5,
            back_after_loss_s: Some(1.0),
            ..ComparisonOutcome::default()
        };
        let rows = [Scene::overload(3.0, 7), Scene::change(7)].map(|scene| Row {
            cells: vec![
                Cell::of(&[outcome(0.5), outcome(0.6), outcome(0.7)]),
                None,
                Cell::of(&[outcome(if scene.changes.is_empty() { 0.9 } else { 0.4 })]),
            ],
            ..Row::new(&scene)
        });
        let found = TunedSetting {
            origin: "processor-bound".to_owned(),
            best: "maxconn 2".to_owned(),
            trials: vec![("maxconn 2".to_owned(), 0.9), ("maxconn 8".to_owned(), 0.7)],
            is_at_edge: false,
        };
        let columns = vec![
            Column { found: vec![found], ..column("haproxy", false) },
            Column { not_run: Some("the program envoy is missing".to_owned()), ..column("envoy", false) },
            column("flashweir", true),
        ];
        let setup = Setup {
            machine: "two cores".to_owned(),
            placement: "The origin had core 0 to itself.".to_owned(),
            capacity_rps: 49.0,
            capacity_rps_range: Range { least: 47.5, most: 50.0 },
            rounds: 3,
            crowd_s: 7,
        };
        Comparison { setup, columns, rows: rows.to_vec() }
    }

    #[test]
    fn a_small_page() {
        insta::assert_snapshot!(small().page());
    }

    #[test]
    fn a_best_setting_at_an_edge_is_called_that() {
        let mut comparison = small();
        assert!(!comparison.page().contains("a better setting may lie beyond"));
        comparison.columns[0].found[0].is_at_edge = true;
        assert!(comparison.page().contains("a better setting may lie beyond"));
    }

    #[test]
    fn what_was_written_is_read_back() {
        let comparison = small();
        let text = serde_json::to_string(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
    }
}

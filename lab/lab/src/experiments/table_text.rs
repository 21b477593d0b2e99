//! Findings as text: tables.

use crate::experiments::{Finding, Row, Rule, Spread, Subject};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A finding for the terminal: what the paper says, the table, the conditions, the notes, the verdict.
#[must_use]
pub fn text(subject: impl Into<Subject>, finding: &Finding) -> String {
    let Subject { id, title, paper } = subject.into();
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{id}  {title}\npaper: {paper}\n");
    let cells = cells(finding);
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &cells {
        let padded = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push('\n');
    for shape in &finding.shapes {
        let holds = if shape.holds() { "yes" } else { "NO " };
        let _ = writeln!(out, "{holds} {} ({})", shape.what, shape.numbers());
    }
    for note in &finding.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let judged: Vec<bool> = finding.rows.iter().filter_map(Row::is_met).collect();
    if !judged.is_empty() {
        let met = judged.iter().filter(|&&met| met).count();
        let _ = writeln!(out, "judged values met: {met} of {}", judged.len());
    }
    let _ = writeln!(out, "verdict: {}", finding.verdict);
    out
}

/// The names of an experiment's chart and numbers.
#[must_use]
pub fn figures_named(id: &str) -> [String; 2] {
    let name = id.to_ascii_lowercase();
    [format!("{name}.svg"), format!("{name}.csv")]
}

/// The same of a trial on the testbed.
#[must_use]
pub fn testbed_figures_named(id: &str) -> [String; 2] {
    figures_named(&format!("{id}-testbed"))
}

/// The head and a row of cells for each row: what, the paper's value, each mode, the rule and whether it is
/// met.
pub(crate) fn cells(finding: &Finding) -> Vec<Vec<String>> {
    let modes = modes(&finding.rows);
    let head = ["what", "in the paper"].into_iter().chain(modes.iter().copied()).chain(["judged"]);
    let mut cells = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    cells.extend(finding.rows.iter().map(|row| {
        let paper = row.paper.map_or_else(|| "–".to_owned(), number);
        let ours = modes.iter().map(|&mode| row.ours.get(mode).map_or_else(String::new, spread));
        let judged = match (&row.rule, row.is_met()) {
            (Rule::Within { mode, part }, Some(met)) => {
                format!("{mode} ±{} %: {}", number(part * 100.0), met_text(met))
            }
            (Rule::Near { mode, by }, Some(met)) => format!("{mode} ±{}: {}", number(*by), met_text(met)),
            _ => "shown".to_owned(),
        };
        [row.what.clone(), paper].into_iter().chain(ours).chain([judged]).collect()
    }));
    cells
}

fn met_text(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// The modes of all rows; the usual ones first, in the order of their age.
fn modes(rows: &[Row]) -> Vec<&str> {
    let all: BTreeSet<&str> = rows.iter().flat_map(|row| row.ours.keys().map(String::as_str)).collect();
    let usual = ["none", "static", "paper", "scoreboard", "repaired"];
    let first = usual.into_iter().filter(|mode| all.contains(mode));
    first.chain(all.iter().copied().filter(|mode| !usual.contains(mode))).collect()
}

fn spread(spread: &Spread) -> String {
    let Spread { mean, least, most, missing } = *spread;
    let (mean, least, most) = (number(mean), number(least), number(most));
    let range = if least == most { None } else { Some(format!("{least}–{most}")) };
    let without = if missing == 0 { None } else { Some(format!("none with {missing} seed(s)")) };
    let details: Vec<String> = [range, without].into_iter().flatten().collect();
    if details.is_empty() { mean } else { format!("{mean} ({})", details.join("; ")) }
}

/// Whole numbers as they are, small ones with two digits, others with one.
fn number(value: f64) -> String {
    if value == value.round() {
        format!("{value:.0}")
    } else if value.abs() < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_without_a_number_are_counted_in_the_cell() {
        let cell = |values: &[f64]| spread(&Spread::of(values.iter().copied()).expect("a number"));
        assert_eq!(cell(&[1.0, 3.0]), "2 (1–3)");
        assert_eq!(cell(&[40.0, f64::NAN]), "40 (none with 1 seed(s))");
        assert_eq!(cell(&[40.0, 60.0, f64::NAN]), "50 (40–60; none with 1 seed(s))");
    }
}

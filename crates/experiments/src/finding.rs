//! What an experiment found, and how that is judged.

use crate::Spread;
use flashweir_report::Figure;
use std::collections::BTreeMap;
use std::fmt;

/// The outcome of an experiment.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The paper's values beside ours.
    pub rows: Vec<Row>,
    /// What must hold for the result to have the paper's shape.
    pub shapes: Vec<Shape>,
    /// What the rules make of them.
    pub verdict: Verdict,
    /// How the runs differ from the paper's: what was chosen, compressed or left out.
    pub notes: Vec<String>,
    /// The numbers behind the chart, as CSV.
    pub csv: String,
    /// The chart.
    pub figure: Figure,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is, with its unit.
    pub what: String,
    /// The paper's value; none where it gives none.
    pub paper: Option<f64>,
    /// Ours, by mode, over the seeds.
    pub ours: BTreeMap<String, Spread>,
    /// How ours is judged.
    pub rule: Rule,
}

/// How a row is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// The mean of this mode lies within this part of the paper's value (0.1: a tenth up or down).
    Within {
        /// The mode that is what the paper ran.
        mode: String,
        /// The tolerance, as a part of the paper's value.
        part: f64,
    },
    /// The mean of this mode differs from the paper's value by no more than this, in the row's unit.
    Near {
        /// The mode that is what the paper ran.
        mode: String,
        /// The tolerance.
        by: f64,
    },
    /// Shown, not judged: the reason is in the notes.
    Told,
}

/// One condition on the shape of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What should hold.
    pub what: String,
    /// Whether it does.
    pub holds: bool,
}

/// What is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every judged value lies within its tolerance and every condition on the shape holds.
    Matches,
    /// Every condition on the shape holds; at least one value does not match, or none may be claimed.
    SameShape,
    /// At least one condition on the shape does not hold.
    Differs {
        /// Which.
        why: String,
    },
}

/// The most that an experiment may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Its shape: something in the model was chosen by the very values it is compared with.
    Shape,
    /// Its values.
    Values,
}

impl Row {
    /// Whether a judged row is within its tolerance; none for those that are only told.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        let (mode, tolerance) = match &self.rule {
            Rule::Within { mode, part } => (mode, part * self.paper?.abs()),
            Rule::Near { mode, by } => (mode, *by),
            Rule::Told => return None,
        };
        let ours = self.ours.get(mode).map(|spread| spread.mean);
        Some(ours.is_some_and(|ours| self.paper.is_some_and(|paper| (ours - paper).abs() <= tolerance)))
    }
}

impl Verdict {
    /// By the rules of [`Verdict`], never more than `claim`.
    pub(crate) fn of(rows: &[Row], shapes: &[Shape], claim: Claim) -> Self {
        let failed: Vec<&str> =
            shapes.iter().filter(|shape| !shape.holds).map(|shape| shape.what.as_str()).collect();
        let judged: Vec<bool> = rows.iter().filter_map(Row::is_met).collect();
        if !failed.is_empty() {
            Self::Differs { why: format!("not so: {}", failed.join("; ")) }
        } else if claim == Claim::Values && !judged.is_empty() && judged.iter().all(|&met| met) {
            Self::Matches
        } else {
            Self::SameShape
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matches => out.write_str("matches"),
            Self::SameShape => out.write_str("same shape"),
            Self::Differs { why } => write!(out, "differs: {why}"),
        }
    }
}

impl Shape {
    pub(crate) fn new(what: impl Into<String>, holds: bool) -> Self {
        Self { what: what.into(), holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, rule: Rule) -> Row {
        let spread = Spread { mean: ours, least: ours, most: ours };
        Row { what: "x".into(), paper: Some(100.0), ours: BTreeMap::from([("m".into(), spread)]), rule }
    }

    #[test]
    fn a_verdict_claims_no_more_than_rows_shapes_and_the_claim_allow() {
        let within = |ours| row(ours, Rule::Within { mode: "m".into(), part: 0.1 });
        let good = [Shape::new("falls", true)];
        let bad = [Shape::new("falls", false)];
        assert_eq!(Verdict::of(&[within(91.0)], &good, Claim::Values), Verdict::Matches);
        assert_eq!(Verdict::of(&[within(91.0)], &good, Claim::Shape), Verdict::SameShape);
        assert_eq!(Verdict::of(&[within(89.0)], &good, Claim::Values), Verdict::SameShape);
        assert_eq!(Verdict::of(&[row(100.0, Rule::Told)], &good, Claim::Values), Verdict::SameShape);
        let differs = Verdict::of(&[within(100.0)], &bad, Claim::Values);
        assert_eq!(differs.to_string(), "differs: not so: falls");
        let absent = row(100.0, Rule::Near { mode: "other".into(), by: 5.0 });
        assert_eq!(absent.is_met(), Some(false));
    }
}

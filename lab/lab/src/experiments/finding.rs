//! Finding of an experiment, and its judgement.

use crate::experiments::{Criterion, Spread};
use flashweir_load::report::Figure;
use std::collections::BTreeMap;
use std::fmt;

/// The outcome of an experiment.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The paper's values beside ours.
    pub rows: Vec<Row>,
    /// Conditions for the result to have the paper's shape.
    pub shapes: Vec<Shape>,
    /// Verdict of the rules on them.
    pub verdict: Verdict,
    /// Differences between the runs and the paper's: choices, compressions and omissions.
    pub notes: Vec<String>,
    /// The numbers behind the chart, as CSV.
    pub csv: String,
    /// The chart.
    pub figure: Figure,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the quantity, with its unit.
    pub what: String,
    /// The paper's value; none where it gives none.
    pub paper: Option<f64>,
    /// Ours, by mode, over the seeds.
    pub ours: BTreeMap<String, Spread>,
    /// Rule by which our value is judged.
    pub rule: Rule,
}

/// Rule by which a row is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// With every seed this mode lies within this part of the paper's value (0.1: a tenth up or down).
    Within {
        /// The mode that is what the paper ran.
        mode: String,
        /// The tolerance, as a part of the paper's value.
        part: f64,
    },
    /// With every seed this mode differs from the paper's value by no more than this, in the row's unit.
    Near {
        /// The mode that is what the paper ran.
        mode: String,
        /// The tolerance.
        by: f64,
    },
    /// Shown, not judged: the reason is in the notes.
    Reported,
}

/// One condition on the shape of a result. It holds if each of its criteria holds with every seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The condition, in words.
    pub what: String,
    /// The numbers that decide it.
    pub criteria: Vec<Criterion>,
}

/// Claim of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every judged value lies within its tolerance and every condition on the shape holds.
    Matches,
    /// Every condition on the shape holds; at least one value does not match, or none may be claimed.
    SameShape,
    /// At least one condition on the shape does not hold.
    Differs {
        /// Names of these conditions.
        why: String,
    },
}

/// Number of findings with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Findings that match.
    pub matches: usize,
    /// Findings with the same shape.
    pub same_shape: usize,
    /// Findings that differ.
    pub differs: usize,
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
    /// Returns whether a judged row is within its tolerance with every seed; none for those that are only
    /// shown.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        let (mode, tolerance) = match &self.rule {
            Rule::Within { mode, part } => (mode, part * self.paper?.abs()),
            Rule::Near { mode, by } => (mode, *by),
            Rule::Reported => return None,
        };
        let is_near = |ours: f64| self.paper.is_some_and(|paper| (ours - paper).abs() <= tolerance);
        let ours = self.ours.get(mode).filter(|spread| spread.missing == 0);
        Some(ours.is_some_and(|spread| is_near(spread.least) && is_near(spread.most)))
    }
}

impl Verdict {
    /// By the rules of [`Verdict`], never more than `claim`.
    pub(crate) fn of(rows: &[Row], shapes: &[Shape], claim: Claim) -> Self {
        let failed: Vec<&str> =
            shapes.iter().filter(|shape| !shape.holds()).map(|shape| shape.what.as_str()).collect();
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

impl Summary {
    /// Counts verdicts by their text ([`Verdict`] as it is displayed).
    pub(crate) fn of_texts<'a>(verdicts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut summary = Self::default();
        for verdict in verdicts {
            match verdict {
                MATCHES => summary.matches += 1,
                SAME_SHAPE => summary.same_shape += 1,
                _ => summary.differs += 1,
            }
        }
        summary
    }

    /// Counts the verdicts of findings.
    #[must_use]
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let texts: Vec<String> = findings.into_iter().map(|finding| finding.verdict.to_string()).collect();
        Self::of_texts(texts.iter().map(String::as_str))
    }
}

/// All counts: `60 figures: matches 1, same shape 20, differs 39`.
impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { matches, same_shape, differs } = self;
        let all = matches + same_shape + differs;
        let figures = if all == 1 { "figure" } else { "figures" };
        write!(out, "{all} {figures}: {MATCHES} {matches}, {SAME_SHAPE} {same_shape}, differs {differs}")
    }
}

const MATCHES: &str = "matches";
const SAME_SHAPE: &str = "same shape";

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matches => out.write_str(MATCHES),
            Self::SameShape => out.write_str(SAME_SHAPE),
            Self::Differs { why } => write!(out, "differs: {why}"),
        }
    }
}

impl Shape {
    pub(crate) fn new(what: impl Into<String>, criteria: impl IntoIterator<Item = Criterion>) -> Self {
        Self { what: what.into(), criteria: criteria.into_iter().collect() }
    }

    /// Returns whether it holds with every seed.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.criteria.is_empty() && self.criteria.iter().all(Criterion::holds)
    }

    /// Requirement and worst seed of each criterion.
    #[must_use]
    pub fn numbers(&self) -> String {
        let numbers: Vec<String> = self.criteria.iter().map(Criterion::to_string).collect();
        numbers.join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::seed_values::SeedValues;

    fn row(ours: &[f64], rule: Rule) -> Row {
        let spread = Spread::of(ours.iter().copied()).expect("a number");
        Row { what: "x".into(), paper: Some(100.0), ours: BTreeMap::from([("m".into(), spread)]), rule }
    }

    fn falls(by: f64) -> [Shape; 1] {
        [Shape::new("falls", [SeedValues::of([(1, Some(by))]).above(0.0)])]
    }

    #[test]
    fn a_verdict_claims_no_more_than_rows_shapes_and_the_claim_allow() {
        let within = |ours| row(&[ours], Rule::Within { mode: "m".into(), part: 0.1 });
        let (good, bad) = (falls(1.0), falls(-1.0));
        assert_eq!(Verdict::of(&[within(91.0)], &good, Claim::Values), Verdict::Matches);
        assert_eq!(Verdict::of(&[within(91.0)], &good, Claim::Shape), Verdict::SameShape);
        assert_eq!(Verdict::of(&[within(89.0)], &good, Claim::Values), Verdict::SameShape);
        assert_eq!(Verdict::of(&[row(&[100.0], Rule::Reported)], &good, Claim::Values), Verdict::SameShape);
        let differs = Verdict::of(&[within(100.0)], &bad, Claim::Values);
        assert_eq!(differs.to_string(), "differs: not so: falls");
        let absent = row(&[100.0], Rule::Near { mode: "other".into(), by: 5.0 });
        assert_eq!(absent.is_met(), Some(false));
    }

    /// Goal: a value is met with every seed or not at all. Method: a mean that is right, of seeds that are
    /// not.
    #[test]
    fn a_right_mean_of_wrong_seeds_is_missed() {
        let near = || Rule::Near { mode: "m".into(), by: 5.0 };
        assert_eq!(row(&[97.0, 103.0], near()).is_met(), Some(true));
        assert_eq!(row(&[90.0, 110.0], near()).is_met(), Some(false));
        assert_eq!(row(&[100.0, f64::NAN], near()).is_met(), Some(false));
    }

    #[test]
    fn verdicts_are_counted_by_kind() {
        let texts =
            [Verdict::SameShape, Verdict::Differs { why: "not so: matches".into() }, Verdict::SameShape]
                .map(|verdict| verdict.to_string());
        let summary = Summary::of_texts(texts.iter().map(String::as_str));
        assert_eq!(summary, Summary { matches: 0, same_shape: 2, differs: 1 });
        assert_eq!(summary.to_string(), "3 figures: matches 0, same shape 2, differs 1");
        assert_eq!(
            Summary::of_texts(["matches"]).to_string(),
            "1 figure: matches 1, same shape 0, differs 0"
        );
    }

    #[test]
    fn a_condition_needs_all_its_criteria_and_one_at_least() {
        let of = |value| SeedValues::of([(1, Some(value))]);
        let both = Shape::new("both", [of(1.0).above(0.0), of(1.0).below(0.5).named("late")]);
        assert!(!both.holds());
        assert_eq!(both.numbers(), "above 0; here 1 | late: below 0.5; here 1");
        assert!(!Shape::new("nothing", []).holds());
    }
}

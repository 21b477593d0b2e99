//! INTEL-F11 and F12: the distribution of response times when clients are throttled.

use super::control::{Cases, Control, Controlled, Group, PARTS, Shown, notes};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};

pub(crate) const UNCONTROLLED: Experiment = Experiment {
    id: "INTEL-F11",
    title: "Distribution of the uncontrolled client's response times, at 225 %",
    paper: "Figure 11 and §5.3: slowest without control; a lower onset, and a larger gap, shift the curve to the left; with 250 ms it rises \
            very gradually",
    run: uncontrolled,
};
pub(crate) const CONTROLLED: Experiment = Experiment {
    id: "INTEL-F12",
    title: "Distribution of the controlled clients' response times, at 225 %",
    paper: "Figure 12 and §5.3: as the uncontrolled client's",
    run: controlled,
};

const NONE: &str = "no control";
const CASES: [(&str, Control); 5] = [
    (NONE, Control::None),
    (LOW_50, Control::Throttling { onset: 150, gap_ms: 50 }),
    (LOW_150, Control::Throttling { onset: 150, gap_ms: 150 }),
    (LOW_250, Control::Throttling { onset: 150, gap_ms: 250 }),
    (HIGH_150, Control::Throttling { onset: 200, gap_ms: 150 }),
];
const LOW_50: &str = "(50, 150)";
const LOW_150: &str = "(150, 150)";
const LOW_250: &str = "(250, 150)";
const HIGH_150: &str = "(150, 200)";

fn uncontrolled(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    finding(laboratory, "Response times of the uncontrolled client", |shown| &shown.uncontrolled, &[])
}

fn controlled(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let all = CASES.map(|(name, _)| name);
    finding(laboratory, "Response times of the controlled clients", |shown| &shown.controlled, &all)
}

fn finding(
    laboratory: &Laboratory,
    title: &'static str,
    group: fn(&Shown) -> &Group,
    as_uncontrolled: &[&str],
) -> Result<Finding, ExperimentError> {
    let cases = Cases::new(laboratory, &CASES.map(|(name, control)| (name, Controlled::heavy(control))))?;
    let at = |part: usize| move |shown: &Shown| group(shown).quantiles_s[part];
    let [quarter, median, three_quarters] = [4, 9, 14];
    let of = |case: &str, part: usize| -> SeedValues { cases.seeds(case, at(part)) };
    let spread = |case: &str| of(case, three_quarters).minus(&of(case, quarter)).over(&of(case, median));
    let rows = vec![
        cases.row("lower quartile, s", None, at(quarter)),
        cases.row("median, s", None, at(median)),
        cases.row("upper quartile, s", None, at(three_quarters)),
    ];
    let mut shapes = vec![
        Shape::new(
            "without control the median is the slowest",
            [LOW_50, LOW_150, LOW_250, HIGH_150]
                .map(|case| of(case, median).over(&of(NONE, median)).below(1.0).named(case)),
        ),
        Shape::new("the lower onset is faster", [of(LOW_150, median).over(&of(HIGH_150, median)).below(1.0)]),
        Shape::new(
            "a larger gap is faster",
            [
                of(LOW_150, median).over(&of(LOW_50, median)).below(1.0).named(LOW_150),
                of(LOW_250, median).over(&of(LOW_150, median)).below(1.0).named(LOW_250),
            ],
        ),
        Shape::new(
            "with 250 ms the quartiles are further apart, relative to the median, than with 50 ms",
            [spread(LOW_250).over(&spread(LOW_50)).above(1.0)],
        ),
    ];
    if !as_uncontrolled.is_empty() {
        let uncontrolled = |part: usize| move |shown: &Shown| shown.uncontrolled.quantiles_s[part];
        let over = |case, part| of(case, part).over(&cases.seeds(case, uncontrolled(part)));
        let all = as_uncontrolled.iter().flat_map(|&case| {
            [quarter, median, three_quarters].map(|part| over(case, part).between(0.9, 1.1).named(case))
        });
        shapes.push(Shape::new("the quartiles are those of the uncontrolled client (to a tenth)", all));
    }
    let line = |name: &'static str| {
        let points =
            PARTS.iter().enumerate().map(|(part, share)| (cases.mean(name, at(part)), Some(100.0 * share)));
        (name.to_owned(), points.collect())
    };
    let lines = CASES.map(|(name, _)| line(name)).into();
    let mut notes = notes(laboratory);
    notes.push("In brackets the gap in milliseconds and the onset, as in the paper's figure.".to_owned());
    Plot { title, x_label: "seconds", y_label: "% of responses", lines, onset: None }.finding(
        rows,
        shapes,
        Claim::Shape,
        notes,
    )
}

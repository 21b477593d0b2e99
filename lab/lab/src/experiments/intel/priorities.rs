//! INTEL-F17 and F18: two controlled clients with different thresholds.

use super::control::{Cases, Control, Controlled, Shown, Value, notes};
use super::runs::SELF_SIMILAR;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Shape};

pub(crate) const THROUGHPUT: Experiment = Experiment {
    id: "INTEL-F17",
    title: "Throughput by priority, at 150 % and 120 %",
    paper: "Figure 17 and §5.5: at 150 % the client with the lowest thresholds loses about 22 % of its throughput, the others gain; of all \
            together it changes little",
    run: throughput,
};
pub(crate) const RESPONSE_TIMES: Experiment = Experiment {
    id: "INTEL-F18",
    title: "Response times by priority, at 150 % and 120 %",
    paper: "Figure 18 and §5.5: at 150 % 55 % lower for the uncontrolled client and 35 % lower for the one with the lowest thresholds",
    run: response_times,
};

const NONE: &str = "150 %, none";
const PRIORITIES: &str = "150 %, priorities";
const MILD_NONE: &str = "120 %, none";
const MILD: &str = "120 %, priorities";

fn cases(laboratory: &Laboratory) -> Result<Cases, ExperimentError> {
    let at = |load, control| Controlled { load, spacing: SELF_SIMILAR, ..Controlled::moderate(control) };
    let priorities = Control::Priorities { gap_ms: 150 };
    Cases::new(
        laboratory,
        &[
            (NONE, at(1.5, Control::None)),
            (PRIORITIES, at(1.5, priorities)),
            (MILD_NONE, at(1.2, Control::None)),
            (MILD, at(1.2, priorities)),
        ],
    )
}

fn finding(
    cases: &Cases,
    y_label: &'static str,
    lines: &[(&str, Value)],
    rest: (Vec<Row>, Vec<Shape>, Vec<String>),
) -> Result<Finding, ExperimentError> {
    let (rows, shapes, mut notes) = rest;
    notes.push(
        "The paper names neither thresholds nor gap here: 40/80 and 110/150 (ALGORITHMS of this project) and 150 ms are taken. So the \
         sizes of the effects depend on our choice."
            .to_owned(),
    );
    let title = "Clients by priority at 150 %";
    let lines = lines.iter().map(|&(name, value)| cases.bars(name, &[NONE, PRIORITIES], value)).collect();
    Plot { title, x_label: "0: none, 1: priorities", y_label, lines, onset: None }.finding(
        rows,
        shapes,
        Claim::Shape,
        notes,
    )
}

fn throughput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (lowest, uncontrolled, all): (Value, Value, Value) =
        (|shown| shown.lowest.ok_rps, |shown| shown.uncontrolled.ok_rps, |shown| shown.ok_rps);
    let middle: Value = |shown| shown.controlled.ok_rps - shown.lowest.ok_rps;
    let rows = vec![
        cases.row("lowest thresholds, OK/s", None, lowest),
        cases.row("controlled, higher thresholds, OK/s", None, middle),
        cases.row("uncontrolled, OK/s", None, uncontrolled),
        cases.row("all, OK/s", None, all),
    ];
    let over = |case, none, value: Value| cases.seeds(case, value).over(&cases.seeds(none, value));
    let shapes = vec![
        Shape::new(
            "at 150 % the lowest client loses throughput",
            [over(PRIORITIES, NONE, lowest).below(1.0)],
        ),
        Shape::new(
            "the lowest client loses 22 % (to a quarter)",
            [over(PRIORITIES, NONE, lowest).fall_percent().stated(22.0).named("%")],
        ),
        Shape::new(
            "the other clients gain",
            [
                over(PRIORITIES, NONE, uncontrolled).above(1.0).named("uncontrolled"),
                over(PRIORITIES, NONE, middle).above(1.0).named("controlled, higher thresholds"),
            ],
        ),
        Shape::new(
            "the throughput of all together changes little (by a tenth at most)",
            [over(PRIORITIES, NONE, all).between(0.9, 1.1)],
        ),
    ];
    let lines: [(&str, Value); 2] = [("lowest", lowest), ("uncontrolled", uncontrolled)];
    finding(&cases, "OK/s", &lines, (rows, shapes, notes(laboratory)))
}

fn response_times(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (lowest, uncontrolled) =
        (|shown: &Shown| shown.lowest.response_s, |shown: &Shown| shown.uncontrolled.response_s);
    let rows = vec![
        cases.row("lowest thresholds, s", None, lowest),
        cases.row("uncontrolled, s", None, uncontrolled),
    ];
    let over = |value: Value| cases.seeds(PRIORITIES, value).over(&cases.seeds(NONE, value));
    let shapes = vec![
        Shape::new(
            "at 150 % the uncontrolled client's responses are faster",
            [over(uncontrolled).below(1.0)],
        ),
        Shape::new(
            "the uncontrolled client's responses are 55 % faster (to a quarter)",
            [over(uncontrolled).fall_percent().stated(55.0).named("%")],
        ),
        Shape::new("the lowest client's are faster, too", [over(lowest).below(1.0)]),
        Shape::new(
            "the lowest client's responses are 35 % faster (to a quarter)",
            [over(lowest).fall_percent().stated(35.0).named("%")],
        ),
        Shape::new(
            "the uncontrolled client gains more than the lowest",
            [over(uncontrolled).over(&over(lowest)).below(1.0)],
        ),
    ];
    let lines: [(&str, Value); 2] = [("lowest", lowest), ("uncontrolled", uncontrolled)];
    finding(&cases, "seconds", &lines, (rows, shapes, notes(laboratory)))
}

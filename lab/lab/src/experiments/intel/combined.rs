//! INTEL-F15 and F16: throttling, and dropping beyond a further threshold.

use super::control::{Cases, Control, Controlled, Shown, Value, notes};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};

pub(crate) const QUEUE: Experiment = Experiment {
    id: "INTEL-F15",
    title: "Throughput and queue at 225 %: throttling, and the combined scheme",
    paper: "Figure 15 and §5.4: the improvement of throughput is not significant; the mean queue is 40 % shorter",
    run: queue,
};
pub(crate) const RESPONSE_TIMES: Experiment = Experiment {
    id: "INTEL-F16",
    title: "Response times at 225 %: throttling, and the combined scheme",
    paper: "Figure 16 and §5.4: lower for the uncontrolled client",
    run: response_times,
};

const THROTTLING: &str = "throttling";
const COMBINED: &str = "combined";

fn cases(laboratory: &Laboratory) -> Result<Cases, ExperimentError> {
    let throttling = Control::Throttling { onset: 150, gap_ms: GAP_MS };
    let cases = [
        (THROTTLING, Controlled::heavy(throttling)),
        (COMBINED, Controlled::heavy(Control::Combined { gap_ms: GAP_MS })),
    ];
    Cases::new(laboratory, &cases)
}

/// Of the three gaps the one with which the queue is long enough for the discard threshold to be met.
const GAP_MS: u64 = 50;

fn finding(
    cases: &Cases,
    title: &'static str,
    y_label: &'static str,
    value: Value,
    rest: (Vec<crate::experiments::Row>, Vec<Shape>, Vec<String>),
) -> Result<Finding, ExperimentError> {
    let lines = vec![cases.bars("ours", &[THROTTLING, COMBINED], value)];
    let (rows, shapes, mut notes) = rest;
    notes.push(format!(
        "The paper does not say with which gap; {GAP_MS} ms are taken, for with more the queue seldom reaches the discard threshold."
    ));
    Plot { title, x_label: "0: throttling, 1: combined", y_label, lines, onset: None }.finding(
        rows,
        shapes,
        Claim::Shape,
        notes,
    )
}

fn queue(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (ok, waiting) = (|shown: &Shown| shown.ok_rps, |shown: &Shown| shown.waiting);
    let rows = vec![cases.row("OK/s", None, ok), cases.row("mean queue", None, waiting)];
    let over = |value: Value| cases.seeds(COMBINED, value).over(&cases.seeds(THROTTLING, value));
    let shapes = vec![
        Shape::new("the combined scheme serves as much, to a twentieth", [over(ok).between(0.95, 1.05)]),
        Shape::new("its queue is shorter", [over(waiting).below(1.0)]),
        Shape::new(
            "the queue is 40 % shorter (to a quarter)",
            [over(waiting).fall_percent().stated(40.0).named("%")],
        ),
    ];
    finding(&cases, "Mean queue at 225 %", "requests", waiting, (rows, shapes, notes(laboratory)))
}

fn response_times(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let uncontrolled = |shown: &Shown| shown.uncontrolled.response_s;
    let rows = vec![
        cases.row("uncontrolled client, s", None, uncontrolled),
        cases.row("controlled clients, s", None, |shown| shown.controlled.response_s),
    ];
    let over = cases.seeds(COMBINED, uncontrolled).over(&cases.seeds(THROTTLING, uncontrolled));
    let shapes =
        vec![Shape::new("the uncontrolled client is faster with the combined scheme", [over.below(1.0)])];
    finding(
        &cases,
        "Uncontrolled client at 225 %",
        "seconds",
        uncontrolled,
        (rows, shapes, notes(laboratory)),
    )
}

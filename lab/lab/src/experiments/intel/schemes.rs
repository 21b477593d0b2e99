//! INTEL-F13 and F14: dropping connections against throttling clients.

use super::control::{Cases, Control, Controlled, Shown, Value, notes};
use super::runs::SUBSTANTIALLY_LESS;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};

pub(crate) const THROUGHPUT: Experiment = Experiment {
    id: "INTEL-F13",
    title: "Throughput at 160 %: dropping and throttling",
    paper: "Figure 13 and §5.3: throttling improves throughput by roughly 12 %, more than dropping does",
    run: throughput,
};
pub(crate) const RESPONSE_TIMES: Experiment = Experiment {
    id: "INTEL-F14",
    title: "Response times at 160 %: dropping and throttling",
    paper: "Figure 14 and §5.3: throttling divides the average response time by 3.6; all clients together are faster with throttling than \
            with dropping, the uncontrolled client is much faster with dropping",
    run: response_times,
};

const NONE: &str = "none";
const DROPPING: &str = "dropping";
const THROTTLING: &str = "throttling";
const NAMES: [&str; 3] = [NONE, DROPPING, THROTTLING];

fn cases(laboratory: &Laboratory) -> Result<Cases, ExperimentError> {
    Cases::new(
        laboratory,
        &[
            (NONE, Controlled::moderate(Control::None)),
            (DROPPING, Controlled::moderate(Control::Dropping([1.0, 1.0]))),
            (THROTTLING, Controlled::moderate(Control::Throttling { onset: 150, gap_ms: 150 })),
        ],
    )
}

fn plot(cases: &Cases, title: &'static str, y_label: &'static str, lines: &[(&str, Value)]) -> Plot {
    let lines = lines.iter().map(|&(name, value)| cases.bars(name, &NAMES, value)).collect();
    Plot { title, x_label: "0: none, 1: dropping, 2: throttling", y_label, lines, onset: None }
}

fn throughput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let ok = |shown: &Shown| shown.ok_rps;
    let rows = vec![cases.row("OK/s (the paper's: throttling, 1.12 times its 39)", Some(43.7), ok)];
    let over = |case, other| cases.seeds(case, ok).over(&cases.seeds(other, ok));
    let shapes = vec![
        Shape::new("throttling serves more than none does", [over(THROTTLING, NONE).above(1.0)]),
        Shape::new(
            "throttling gains 12 % (to a quarter)",
            [over(THROTTLING, NONE).gain_percent().stated(12.0).named("%")],
        ),
        Shape::new("dropping serves more than none does", [over(DROPPING, NONE).above(1.0)]),
        Shape::new("throttling serves more than dropping does", [over(THROTTLING, DROPPING).above(1.0)]),
    ];
    let mut notes = notes(laboratory);
    notes.push(
        "Here a dropped connection costs the server nothing, so dropping serves as much as throttling."
            .to_owned(),
    );
    plot(&cases, "Throughput at 160 %", "OK/s", &[("ours", ok)]).finding(rows, shapes, Claim::Shape, notes)
}

fn response_times(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (all, uncontrolled) =
        (|shown: &Shown| shown.all.response_s, |shown: &Shown| shown.uncontrolled.response_s);
    let rows = vec![
        cases.row("all clients, s (the paper's: throttling, its 7.3 without over 3.6)", Some(2.0), all),
        cases.row("uncontrolled client, s", None, uncontrolled),
    ];
    let over = |case, other, value: Value| cases.seeds(case, value).over(&cases.seeds(other, value));
    let shapes = vec![
        Shape::new("throttling makes responses faster", [over(THROTTLING, NONE, all).below(1.0)]),
        Shape::new(
            "throttling divides the mean response time by 3.6 (to a quarter)",
            [over(NONE, THROTTLING, all).stated(3.6).named("without over with")],
        ),
        Shape::new(
            "all clients together are faster with throttling than with dropping",
            [over(THROTTLING, DROPPING, all).below(1.0)],
        ),
        Shape::new(
            "the uncontrolled client is much faster with dropping than with throttling (by a quarter at least)",
            [over(DROPPING, THROTTLING, uncontrolled).at_most(SUBSTANTIALLY_LESS)],
        ),
    ];
    let mut notes = notes(laboratory);
    notes.push("Response times of clients whose connections are dropped depend on their repeated SYNs (see INTEL-F8).".to_owned());
    plot(&cases, "Response times at 160 %", "seconds", &[("all", all), ("uncontrolled", uncontrolled)])
        .finding(rows, shapes, Claim::Shape, notes)
}

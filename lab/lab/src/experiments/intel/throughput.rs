//! INTEL-F3: what is served, by what is offered.

use super::runs::{CRITICAL, EVEN_RATES, HIGH, HIGHEST, LIGHT, Runs, within};
use super::server::{Spacing, closed_form_slope};
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-F3",
    title: "Throughput by offered load, without overload control",
    paper: "Figure 3 and §5.1: about 45 OK/s without refusals; 39 OK/s at 71/s, almost half refused; 32 OK/s at 100/s",
    run,
};

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, Spacing::Even, &EVEN_RATES)?;
    let refused = |rate| runs.row("refused/s", rate, None, Rule::Reported, |measured| measured.refused_rps);
    let rows = vec![
        runs.ok_row(LIGHT, None, Rule::Reported),
        runs.ok_row(CRITICAL, Some(45.0), within(0.05)),
        runs.ok_row(HIGH, Some(39.0), within(0.05)),
        runs.ok_row(HIGHEST, Some(32.0), within(0.05)),
        refused(CRITICAL),
        refused(HIGH),
        refused(HIGHEST),
    ];
    let ok = |rate| runs.seeds(rate, |measured| measured.ok_rps);
    let slope = ok(HIGHEST).minus(&ok(HIGH)).map(|fall| fall / (HIGHEST - HIGH));
    let refused = |rate| runs.seeds(rate, |measured| measured.refused_rps / rate);
    let shapes = vec![
        Shape::new(
            "nobody is refused at the light load, and at most one in a hundred at the critical one",
            [
                refused(LIGHT).at_most(0.0).named(format!("part refused at {LIGHT}/s")),
                refused(CRITICAL).at_most(0.01).named(format!("at {CRITICAL}/s")),
            ],
        ),
        Shape::new("almost half is refused at 71.42/s (40 to 50 %)", [refused(HIGH).between(0.4, 0.5)]),
        Shape::new(
            "less is served at 71.42/s than at 43.97/s, and still less at 99.55/s",
            [
                ok(HIGH).minus(&ok(CRITICAL)).below(0.0).named("OK/s"),
                ok(HIGHEST).minus(&ok(HIGH)).below(0.0).named("OK/s"),
            ],
        ),
        Shape::new(
            format!(
                "beyond saturation each request more costs {:.3} OK, the work of a refusal over that of a request \
                 beyond it (to a tenth)",
                -closed_form_slope()
            ),
            [slope
                .map(|slope| slope / closed_form_slope())
                .between(0.9, 1.1)
                .named("cost over that of the closed form")],
        ),
    ];
    let mut notes = runs.notes(laboratory);
    notes.push("The paper's text gives no OK/s at 32.58/s.".to_owned());
    let paper = [(CRITICAL, 45.0), (HIGH, 39.0), (HIGHEST, 32.0)];
    let mut plot = runs.plot("Throughput without control", "OK/s", &paper, |measured| measured.ok_rps);
    plot.lines.push(runs.closed_form());
    plot.finding(rows, shapes, Claim::Shape, notes)
}

//! NEWS-7.6.1: people who leave.

use super::plant::{Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::news::NewsOutcome;
use flashweir_workload::people::Wait;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-7.6.1",
    title: "Impatient people",
    paper: "§7.6.1: people wait 60 s on average (exponential), then leave with probability ½; NEWS does as before",
    run,
};

/// After each wait one half leaves, the other waits again: a geometric sum of exponential waits, which is
/// exponential with twice the mean.
const PATIENCE: Wait = Wait::Exponential { mean: Duration::from_secs(120) };
const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let patient = Runs::new(laboratory, &MODES, |_| ())?;
    let impatient = Runs::new(laboratory, &MODES, |scenario| scenario.patience = Some(PATIENCE))?;
    let (admitted, fastest) = (patient.admitted(Stretch::Crowd), patient.fastest_kbps(Stretch::Crowd));
    let mut rows = Vec::new();
    for (who, runs) in [("patient", &patient), ("impatient", &impatient)] {
        rows.push(runs.row(format!("{who}: admitted/s"), None, Rule::Reported, &MODES, &admitted));
        rows.push(runs.row(format!("{who}: fastest kb/s"), None, Rule::Reported, &MODES, &fastest));
    }
    let over_patient = |mode, value: &dyn Fn(&NewsOutcome) -> Option<f64>| {
        impatient.seeds(mode, value).over(&patient.seeds(mode, value)).between(0.85, 1.15)
    };
    let shapes = NEWS_MODES
        .iter()
        .flat_map(|&mode| {
            let name = mode.name();
            [
                Shape::new(
                    format!("{name}: admitted within 15 % of the patient crowd's"),
                    [over_patient(mode, &admitted)],
                ),
                Shape::new(
                    format!("{name}: fastest within 15 % of the patient crowd's"),
                    [over_patient(mode, &fastest)],
                ),
            ]
        })
        .collect();
    let lines = [("patient", &patient), ("impatient", &impatient)]
        .map(|(who, runs)| (who.to_owned(), runs.per_minute(Mode::Scoreboard, |bin| bin.gate.admitted)));
    let plot = Plot {
        title: "Admitted connections with NEWS (scoreboard)",
        x_label: "seconds",
        y_label: "admitted/s",
        lines: lines.to_vec(),
        onset: Some(patient.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes(laboratory.options()))
}

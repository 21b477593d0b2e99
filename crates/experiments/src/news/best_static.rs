//! NEWS-F14: NEWS against the best limit a person could have set.

use super::plant::{AS_RUN, Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use super::table_one;
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::news::Outcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F14",
    title: "NEWS and the best static limit",
    paper: "Figure 14 and §7.3: the fastest tenth 11 % slower than with a static limit of 60/s, and half its \
            rejections",
    run,
};

const BEST: Mode = Mode::Static(60);

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &table_one::MODES, |_| ())?;
    let (fastest, rejected) = (runs.fastest_kbps(Stretch::Crowd), runs.rejected_percent());
    let (best_fastest, best_rejected) = (runs.mean(BEST, &fastest), runs.mean(BEST, &rejected));
    let slower = |outcome: &Outcome| fastest(outcome).map(|rate| (1.0 - rate / best_fastest) * 100.0);
    let part = |outcome: &Outcome| rejected(outcome).map(|percent| percent / best_rejected);
    let near = |by| Rule::Near { mode: AS_RUN.to_owned(), by };
    let rows = vec![
        runs.row("fastest tenth slower than static 60, %", Some(11.0), near(5.0), &NEWS_MODES, slower),
        runs.row("rejections, of static 60's", Some(0.5), near(0.1), &NEWS_MODES, part),
    ];
    let shapes = NEWS_MODES
        .iter()
        .filter(|mode| **mode != Mode::Paper)
        .flat_map(|&mode| {
            let name = mode.name();
            [
                Shape::new(format!("{name}: at most 15 % slower"), runs.mean(mode, slower) <= 15.0),
                Shape::new(format!("{name}: at most 0.7 of the rejections"), runs.mean(mode, part) <= 0.7),
            ]
        })
        .collect();
    let lines =
        [BEST, Mode::Scoreboard, Mode::Repaired].map(|mode| (mode.name(), runs.fastest_over_time(mode)));
    let plot = Plot {
        title: "Rate of the fastest tenth, NEWS and a static limit of 60/s",
        x_label: "seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes(laboratory.options()))
}

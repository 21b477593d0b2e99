//! NEWS-F13: the rate of the fastest tenth before the crowd, in it, and with NEWS.

use super::plant::{AS_RUN, Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F13",
    title: "The fastest responses keep their rate",
    paper: "Figure 13 and §7.3: the fastest tenth falls from 96 to 58 kb/s in the crowd, and keeps 90.5 kb/s \
            with NEWS",
    run,
};

const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &MODES, |_| ())?;
    let (before, during) = (runs.fastest_kbps(Stretch::Quiet), runs.fastest_kbps(Stretch::Crowd));
    let within = |mode: &str| Rule::Within { mode: mode.to_owned(), part: 0.1 };
    let rows = vec![
        runs.row("before the crowd, kb/s", Some(96.0), within("none"), &[Mode::None], &before),
        runs.row("in the crowd, kb/s", Some(58.0), within("none"), &[Mode::None], &during),
        runs.row("in the crowd with NEWS, kb/s", Some(90.5), within(AS_RUN), &NEWS_MODES, &during),
    ];
    let before = runs.seeds(Mode::None, &before);
    let over_before = |mode| runs.seeds(mode, &during).over(&before);
    let mut shapes =
        vec![Shape::new("falls to 0.75 or less in the crowd", [over_before(Mode::None).at_most(0.75)])];
    shapes.extend(NEWS_MODES.map(|mode| {
        Shape::new(
            format!("{} keeps 0.85 of the rate before", mode.name()),
            [over_before(mode).at_least(0.85)],
        )
    }));
    let lines = MODES.map(|mode| (mode.name(), runs.fastest_over_time(mode)));
    let plot = Plot {
        title: "Rate of the fastest tenth",
        x_label: "seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes(laboratory.options()))
}

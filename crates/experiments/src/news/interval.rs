//! NEWS-F15: the detection interval T.

use super::plant::{Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::news::Outcome;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F15",
    title: "The detection interval",
    paper: "Figure 15 and §7.4: T of 30 s and less raises false alarms, 90 s and more none but finds the \
            crowd late; 60 s is best",
    run,
};

const INTERVALS_S: [u64; 7] = [10, 15, 20, 30, 60, 90, 120];
/// Seven intervals by three modes are many runs; two seeds show the same.
const SEEDS_MOST: u32 = 2;

/// What one interval does to one mode.
struct Point {
    interval_s: u64,
    mode: Mode,
    /// Part of the seeds in which it alarmed before the crowd.
    false_alarms: f64,
    /// Part of the seeds in which it alarmed in the crowd.
    found: f64,
    /// Of those; not a number where there is none.
    delay_s: f64,
    admitted: f64,
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let seeds = laboratory.options().seeds.min(SEEDS_MOST);
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    for interval_s in INTERVALS_S {
        let interval = Duration::from_secs(interval_s);
        let runs = Runs::with_seeds(laboratory, &NEWS_MODES, seeds, |scenario| {
            (scenario.router.interval, scenario.first_tick) = (interval, interval);
        })?;
        look(&runs, interval_s, &mut rows, &mut points);
    }
    let of = |mode, wanted: fn(u64) -> bool| {
        points.iter().filter(move |point: &&Point| point.mode == mode && wanted(point.interval_s))
    };
    let news = Mode::Scoreboard;
    let delay = |wanted| of(news, wanted).map(|point| point.delay_s).fold(f64::NAN, f64::max);
    let shapes = vec![
        Shape::new(
            "T of 30 s or less raises a false alarm in some run",
            of(news, |t| t <= 30).any(|p| p.false_alarms > 0.0),
        ),
        Shape::new("T of 90 s or more raises none", of(news, |t| t >= 90).all(|p| p.false_alarms == 0.0)),
        Shape::new(
            "the crowd is found later with T = 120 s than with 60 s",
            delay(|t| t == 120) > delay(|t| t == 60),
        ),
        Shape::new("scoreboard finds the crowd in every run", of(news, |_| true).all(|p| p.found == 1.0)),
        Shape::new(
            "repaired finds the crowd in every run",
            of(Mode::Repaired, |_| true).all(|p| p.found == 1.0),
        ),
        Shape::new(
            "repaired raises none at any T",
            of(Mode::Repaired, |_| true).all(|p| p.false_alarms == 0.0),
        ),
    ];
    let mut notes = notes(laboratory.options());
    notes.push(format!(
        "{seeds} seed(s) for each interval and mode; one phase of the tick each (ticks at multiples of T)."
    ));
    let lines = NEWS_MODES.map(|mode| {
        let points = of(mode, |_| true).map(|point| (point.interval_s as f64, Some(point.admitted)));
        (mode.name(), points.collect())
    });
    let plot = Plot {
        title: "Admitted rate in the crowd by detection interval",
        x_label: "T, seconds",
        y_label: "admitted/s",
        lines: lines.to_vec(),
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

fn look(runs: &Runs, interval_s: u64, rows: &mut Vec<Row>, points: &mut Vec<Point>) {
    let onset_s = runs.onset_s();
    let is_false = |outcome: &Outcome| {
        let first = outcome.first_alarm_s(0);
        Some(f64::from(u8::from(first.is_some_and(|at| at <= onset_s as f64))))
    };
    let delay = |outcome: &Outcome| outcome.first_alarm_s(onset_s + 1).map(|at| at - onset_s as f64);
    let found = |outcome: &Outcome| Some(f64::from(u8::from(delay(outcome).is_some())));
    let (admitted, fastest) = (runs.admitted(Stretch::Crowd), runs.fastest_kbps(Stretch::Crowd));
    let mut add = |what: &str, value: &dyn Fn(&Outcome) -> Option<f64>| {
        rows.push(runs.row(format!("T={interval_s} s: {what}"), None, Rule::Told, &NEWS_MODES, value));
    };
    add("runs with a false alarm, part", &is_false);
    add("runs that found the crowd, part", &found);
    add("found after, s", &delay);
    add("admitted/s", &admitted);
    add("fastest kb/s", &fastest);
    points.extend(NEWS_MODES.map(|mode| Point {
        interval_s,
        mode,
        false_alarms: runs.mean(mode, is_false),
        found: runs.mean(mode, found),
        delay_s: runs.mean(mode, delay),
        admitted: runs.mean(mode, &admitted),
    }));
}

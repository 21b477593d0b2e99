//! NEWS-F15: the detection interval T.

use super::plant::{Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::news::NewsOutcome;
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

/// Effect of one interval on one mode.
struct Point {
    interval_s: u64,
    mode: Mode,
    /// 1 with each seed with which it alarmed before the crowd, 0 with others.
    false_alarms: SeedValues,
    /// 1 with each seed with which it alarmed in the crowd, 0 with others.
    found: SeedValues,
    /// Of those; none with others.
    delay_s: SeedValues,
    /// Mean.
    admitted: f64,
}

/// Chooses intervals, seconds.
type Wanted = fn(u64) -> bool;

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
    let of = |mode, wanted: Wanted| {
        points.iter().filter(move |point: &&Point| point.mode == mode && wanted(point.interval_s))
    };
    let count = |mode, wanted: Wanted, value: fn(&Point) -> &SeedValues| {
        let values = of(mode, wanted).map(value).cloned();
        values.reduce(|one, other| one.plus(&other)).unwrap_or_default()
    };
    let intervals = |wanted: Wanted| INTERVALS_S.into_iter().filter(|&t| wanted(t)).count() as f64;
    let (short, long, any): (Wanted, Wanted, Wanted) = (|t| t <= 30, |t| t >= 90, |_| true);
    let news = Mode::Scoreboard;
    let delay = |wanted| of(news, wanted).map(|point| point.delay_s.clone()).next().unwrap_or_default();
    let in_every_run = |mode| count(mode, any, |p| &p.found).at_least(intervals(any)).named("intervals");
    let shapes = vec![
        Shape::new(
            "T of 30 s or less raises a false alarm",
            [count(news, short, |p| &p.false_alarms).at_least(intervals(short)).named("intervals")],
        ),
        Shape::new(
            "T of 90 s or more raises none",
            [count(news, long, |p| &p.false_alarms).at_most(0.0).named("intervals")],
        ),
        Shape::new(
            "the crowd is found later with T = 90 s and with 120 s than with 60 s",
            [
                delay(|t| t == 90).minus(&delay(|t| t == 60)).above(0.0).named("90 s, s"),
                delay(|t| t == 120).minus(&delay(|t| t == 60)).above(0.0).named("120 s, s"),
            ],
        ),
        Shape::new(
            "60 s is best: it raises no false alarm, and finds the crowd",
            [
                count(news, |t| t == 60, |p| &p.false_alarms).at_most(0.0).named("false alarms"),
                count(news, |t| t == 60, |p| &p.found).at_least(1.0).named("found"),
            ],
        ),
        Shape::new("scoreboard finds the crowd in every run", [in_every_run(news)]),
        Shape::new("repaired finds the crowd in every run", [in_every_run(Mode::Repaired)]),
        Shape::new(
            "repaired raises none at any T",
            [count(Mode::Repaired, any, |p| &p.false_alarms).at_most(0.0).named("intervals")],
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
    let is_false = |outcome: &NewsOutcome| {
        let first = outcome.first_alarm_s(0);
        Some(f64::from(u8::from(first.is_some_and(|at| at <= onset_s as f64))))
    };
    let delay = |outcome: &NewsOutcome| outcome.first_alarm_s(onset_s + 1).map(|at| at - onset_s as f64);
    let found = |outcome: &NewsOutcome| Some(f64::from(u8::from(delay(outcome).is_some())));
    let (admitted, fastest) = (runs.admitted(Stretch::Crowd), runs.fastest_kbps(Stretch::Crowd));
    let mut add = |what: &str, value: &dyn Fn(&NewsOutcome) -> Option<f64>| {
        rows.push(runs.row(format!("T={interval_s} s: {what}"), None, Rule::Reported, &NEWS_MODES, value));
    };
    add("runs with a false alarm, part", &is_false);
    add("runs that found the crowd, part", &found);
    add("found after, s", &delay);
    add("admitted/s", &admitted);
    add("fastest kb/s", &fastest);
    points.extend(NEWS_MODES.map(|mode| Point {
        interval_s,
        mode,
        false_alarms: runs.seeds(mode, is_false),
        found: runs.seeds(mode, found),
        delay_s: runs.seeds(mode, delay),
        admitted: runs.mean(mode, &admitted),
    }));
}

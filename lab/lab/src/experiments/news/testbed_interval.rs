//! NEWS-F23: the detection interval T, on the testbed.

use super::plant::{Mode, NEWS_MODES};
use super::runs::Stretch;
use super::testbed::notes;
use super::testbed_runs::TestbedRuns;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::request::RunOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F23",
    title: "The detection interval on the testbed",
    paper: "Figure 23 and §8.4: 64 and 128 s are best; with 16 s a false alarm at 760 s, and 65 % of the connections \
            rejected; no false alarm with more; 256 s is too slow to follow the crowd",
    run,
};

const INTERVALS_S: [u64; 5] = [16, 32, 64, 128, 256];
/// Five intervals by three modes are many runs; two seeds show the same.
const SEEDS_MOST: u32 = 2;

/// Effect of one interval on one mode, with each seed.
struct Point {
    interval_s: u64,
    mode: Mode,
    /// 1 or 0.
    early_alarm: SeedValues,
    /// None with a seed that did not find the crowd.
    found_after_s: SeedValues,
    rejected_percent: SeedValues,
    fastest_kbps: SeedValues,
}

type Value = fn(&Point) -> &SeedValues;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let seeds = laboratory.options().seeds.min(SEEDS_MOST);
    let without = TestbedRuns::on_testbed(laboratory, &[Mode::None], seeds, |_| ())?;
    let (mut rows, mut points) = (rows_without_control(&without), Vec::new());
    for interval_s in INTERVALS_S {
        let runs = TestbedRuns::on_testbed(laboratory, &NEWS_MODES, seeds, |testbed| {
            // 1,024 s is a multiple of all intervals: with the same phase all would decide shortly after the
            // onset.
            let first_tick_s = if testbed.seed.is_multiple_of(2) { interval_s / 2 } else { interval_s };
            (testbed.interval_s, testbed.first_tick_s) = (interval_s, first_tick_s);
        })?;
        look(&runs, interval_s, &mut rows, &mut points);
    }
    let mut notes = notes(laboratory.options(), seeds);
    notes.push(
        "Decisions are at multiples of T with odd seeds and half an interval earlier with even ones: 1,024 s is a multiple \
         of all intervals, so that with the same phase all would look at the crowd at once. Rejected is the part of \
         the people of the crowd who were not let in."
            .to_owned(),
    );
    let lines = NEWS_MODES.map(|mode| {
        let of_mode = points.iter().filter(|point| point.mode == mode);
        let line =
            of_mode.map(|point| (point.interval_s as f64, point.fastest_kbps.spread().map(|it| it.mean)));
        (mode.name(), line.collect())
    });
    let plot = Plot {
        title: "Rate of the fastest tenth in the crowd by detection interval",
        x_label: "T, seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: None,
    };
    plot.finding(rows, shapes(&points), Claim::Shape, notes)
}

/// Rows by which the testbed was chosen.
fn rows_without_control(runs: &TestbedRuns) -> Vec<Row> {
    let none = [Mode::None];
    let within = |part| Rule::Within { mode: Mode::None.name(), part };
    let near = |by| Rule::Near { mode: Mode::None.name(), by };
    let fastest = runs.fastest_rate_kbps(Stretch::Crowd);
    vec![
        runs.row("no control: processed/s", Some(80.0), within(0.1), &none, runs.processed()),
        runs.row("no control: response loss, %", Some(60.0), near(3.0), &none, runs.loss_percent()),
        runs.row("no control: timed out, %", Some(22.0), near(3.0), &none, runs.timed_out_percent()),
        runs.row("no control: fastest kb/s", Some(133.0), within(0.1), &none, fastest),
    ]
}

fn shapes(points: &[Point]) -> Vec<Shape> {
    let of = |mode, interval_s: u64, value: Value| {
        let found = points.iter().find(|point| point.mode == mode && point.interval_s == interval_s);
        found.map(value).cloned().unwrap_or_default()
    };
    let early: Value = |point| &point.early_alarm;
    let found: Value = |point| &point.found_after_s;
    let rejected: Value = |point| &point.rejected_percent;
    let fastest: Value = |point| &point.fastest_kbps;
    let news = |interval_s, value| of(Mode::Scoreboard, interval_s, value);
    let at = |interval_s: u64| format!("T = {interval_s} s");
    let no_early = |mode, interval_s| of(mode, interval_s, early).at_most(0.0).named(at(interval_s));
    let is_found =
        |interval_s| of(Mode::Repaired, interval_s, found).map(|it| f64::from(u8::from(it.is_finite())));
    let slower_than = |interval_s| {
        news(256, fastest)
            .over(&news(interval_s, fastest))
            .below(1.0)
            .named(format!("over that with {}", at(interval_s)))
    };
    vec![
        Shape::new("T = 16 s raises an alarm before the crowd", [news(16, early).at_least(1.0)]),
        Shape::new("longer T raises none", INTERVALS_S[1..].iter().map(|&t| no_early(Mode::Scoreboard, t))),
        Shape::new(
            "T = 16 s rejects 65 % (to a tenth)",
            [news(16, rejected).between(0.9 * 65.0, 1.1 * 65.0).named("%")],
        ),
        Shape::new(
            "the fastest tenth is slower with T = 16 s than with 64 s and with 128 s",
            [64, 128].map(|best| {
                let named = format!("over that with {}", at(best));
                news(16, fastest).over(&news(best, fastest)).below(1.0).named(named)
            }),
        ),
        Shape::new(
            "T = 16 s rejects more than 64 s",
            [news(16, rejected).minus(&news(64, rejected)).above(0.0).named("percentage points")],
        ),
        Shape::new(
            "the crowd is found later with T = 256 s than with 64 s",
            [news(256, found).minus(&news(64, found)).above(0.0).named("s")],
        ),
        Shape::new(
            "the fastest tenth is slower with T = 256 s than with 64 s and with 128 s",
            [slower_than(64), slower_than(128)],
        ),
        Shape::new(
            "repaired finds the crowd in every run, at any T",
            INTERVALS_S.map(|t| is_found(t).at_least(1.0).named(at(t))),
        ),
        Shape::new(
            "repaired raises no alarm before the crowd, at any T",
            INTERVALS_S.map(|t| no_early(Mode::Repaired, t)),
        ),
    ]
}

fn look(runs: &TestbedRuns, interval_s: u64, rows: &mut Vec<Row>, points: &mut Vec<Point>) {
    let (early, found) = (runs.early_alarm(), runs.found_after_s());
    let (rejected, fastest) = (runs.rejected_percent(), runs.fastest_rate_kbps(Stretch::Crowd));
    let mut add = |what: &str, paper, value: &dyn Fn(&RunOutcome) -> Option<f64>| {
        rows.push(runs.row(format!("T={interval_s} s: {what}"), paper, Rule::Reported, &NEWS_MODES, value));
    };
    add("runs with an alarm before the crowd, part", None, &early);
    add("first alarm, s", (interval_s == 16).then_some(760.0), &runs.first_alarm_s());
    add("found after, s", (interval_s == 64).then_some(88.0), &found);
    add("admitted/s", (interval_s == 64).then_some(56.0), &runs.admitted());
    add("rejected, %", (interval_s == 16).then_some(65.0), &rejected);
    add("fastest kb/s", (interval_s == 64).then_some(261.0), &fastest);
    points.extend(NEWS_MODES.map(|mode| Point {
        interval_s,
        mode,
        early_alarm: runs.seeds(mode, &early),
        found_after_s: runs.seeds(mode, &found),
        rejected_percent: runs.seeds(mode, &rejected),
        fastest_kbps: runs.seeds(mode, &fastest),
    }));
}

//! NEWS-F23 on the testbed: the detection interval.

use super::detection::{PROTECTED, found_after_intervals, waits_for, within_one};
use super::network_limited::{per_second, settled};
use super::record::Record;
use super::results::Results;
use super::scale::{self, TIMES};
use super::scene::{NEWS_MODES, Protection, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};

pub(super) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F23",
        title: "The detection interval",
        paper: "Figure 23 and §8.4: best with T of 64 and 128 s; T = 16 s alarms before the crowd (at 760 s) and refuses 65 %; T = 256 s is \
                too slow; above 16 s the crowd is found slightly after one interval",
    },
    runs,
    judge,
};

/// In our seconds: the paper's 16 to 256.
pub(super) const INTERVALS_S: [u64; 5] = [1, 2, 4, 8, 16];
const LONGEST_S: u64 = INTERVALS_S[INTERVALS_S.len() - 1];

pub(super) fn with_interval(mode: &'static str, interval_s: u64) -> Protection {
    Protection::News { mode, interval_s, hot_spots: false }
}

fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    let all =
        NEWS_MODES.into_iter().flat_map(|mode| INTERVALS_S.map(|interval_s| with_interval(mode, interval_s)));
    Scene::network_limited(scope).runs(scope, all)
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let ours = results.in_scene(scene);
    let settled = settled(scene, scale::INTERVAL_S);
    let admitted = per_second(settled.clone(), |it| it.admitted);
    let fastest = |record: &Record| record.fastest_kbps(settled.clone());
    let found = |record: &Record| record.found_after_s(scene.onset_s());
    let early = |record: &Record| Some(f64::from(u8::from(record.alarmed_early(scene.onset_s()))));
    let mut rows = Vec::new();
    for interval_s in INTERVALS_S {
        let modes = NEWS_MODES.map(|mode| with_interval(mode, interval_s));
        let at = format!("T = {:.0} s of the paper", interval_s as f64 * TIMES);
        let mut row = |what: &str, paper, value: &dyn Fn(&Record) -> Option<f64>| {
            rows.push(ours.row(format!("{at}: {what}"), paper, &modes, value));
        };
        row("let in/s", None, &admitted);
        row("fastest tenth, kb/s", None, &fastest);
        row("found after, s", (interval_s == scale::INTERVAL_S).then_some(88.0 / TIMES), &found);
        let in_intervals = found_after_intervals(scene, interval_s);
        row(&format!("found after, intervals of T{}", waits_for(interval_s)), None, &in_intervals);
        row("alarm before the crowd", Some(f64::from(u8::from(interval_s == 1))), &early);
    }
    let mean = |mode, interval_s, value: &dyn Fn(&Record) -> Option<f64>| {
        ours.mean(&with_interval(mode, interval_s), value)
    };
    let seeds = |mode, interval_s, value: &dyn Fn(&Record) -> Option<f64>| {
        ours.seeds(&with_interval(mode, interval_s), value)
    };
    let at = |interval_s: u64| format!("T = {:.0} s", interval_s as f64 * TIMES);
    let above_shortest = || INTERVALS_S[1..].iter().copied();
    let mut shapes = Vec::new();
    for mode in NEWS_MODES {
        let in_intervals = |interval_s| seeds(mode, interval_s, &found_after_intervals(scene, interval_s));
        shapes.push(Shape::new(
            format!("{mode}: with every T above the shortest it protects within one interval"),
            above_shortest().map(|t| in_intervals(t).at_most(within_one(t)).named(at(t))),
        ));
        shapes.push(Shape::new(
            format!("{mode}: with every T above the shortest the crowd is found within two intervals"),
            above_shortest().map(|t| in_intervals(t).at_most(1.0 + within_one(t)).named(at(t))),
        ));
        shapes.push(Shape::new(
            format!("{mode}: no alarm before the crowd with any T above the shortest"),
            above_shortest().map(|t| seeds(mode, t, &early).at_most(0.0).named(at(t))),
        ));
        shapes.push(Shape::new(
            format!("{mode}: the longest T lets more in than T = 64 s of the paper"),
            [seeds(mode, LONGEST_S, &admitted).over(&seeds(mode, scale::INTERVAL_S, &admitted)).above(1.0)],
        ));
    }
    let mut notes = scale::notes();
    notes.push(PROTECTED.to_owned());
    notes.extend(ours.doubts());
    let line = |mode: &'static str, what: &str, value: &dyn Fn(&Record) -> Option<f64>| {
        let points = INTERVALS_S.map(|interval_s| {
            let mean = mean(mode, interval_s, value);
            (interval_s as f64 * TIMES, Some(mean).filter(|it| it.is_finite()))
        });
        (format!("{mode}: {what}"), points.to_vec())
    };
    let lines = NEWS_MODES
        .map(|mode| [line(mode, "fastest tenth, kb/s", &fastest), line(mode, "let in/s", &admitted)]);
    let plot = Plot {
        title: "The detection interval",
        x_label: "T, seconds of the paper",
        y_label: "kb/s; requests/s of the paper",
        lines: lines.into_iter().flatten().collect(),
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

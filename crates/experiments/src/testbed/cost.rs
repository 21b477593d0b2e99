//! NEWS-T2 on the testbed: what the router's program costs, by the detection interval.

use super::interval::{INTERVALS_S, with_interval};
use super::record::Record;
use super::results::Results;
use super::scale::{self, TIMES};
use super::scene::{NEWS_MODES, Run, Scene};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-T2",
        title: "What the router costs",
        paper: "Table II and §8.5.2: of a 1.5 GHz processor 2–3.5 % before and 5–6 % in the crowd with T = 16 s, 1–2 % and 2–4 % with T = 64 s, \
                about 1 and 2 % with T = 128 s; 3 MB of memory before the crowd and 10 to 12 MB in it",
    },
    runs,
    judge,
};

const MODE: &str = NEWS_MODES[1];
/// Most of a processor that the paper's took with T = 64 s.
const PAPERS_PERCENT: f64 = 4.0;

fn runs(scope: &Scope) -> Vec<Run> {
    let scene = Scene::network_limited(scope);
    scope.runs(INTERVALS_S.map(|interval_s| (&scene, with_interval(MODE, interval_s))))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let mut rows = Vec::new();
    let paper = [Some([2.75, 5.5]), Some([1.75, 4.25]), Some([1.5, 3.0]), Some([1.0, 2.0]), None];
    for (interval_s, paper) in INTERVALS_S.into_iter().zip(paper) {
        let at = format!("T = {:.0} s of the paper", interval_s as f64 * TIMES);
        let only = [with_interval(MODE, interval_s)];
        for (phase, what) in ["before", "in the crowd"].into_iter().enumerate() {
            let percent = |record: &Record| Some(record.router_processor_percent?[phase]);
            rows.push(results.row(
                format!("{at}: processor {what}, %"),
                paper.map(|it| it[phase]),
                (scene, &only),
                percent,
            ));
        }
        rows.push(results.row(format!("{at}: memory, MB"), None, (scene, &only), memory_mb));
    }
    let usual = with_interval(MODE, scale::INTERVAL_S);
    let in_the_crowd = |record: &Record| Some(record.router_processor_percent?[1]);
    let shapes = vec![Shape::new(
        "with T = 64 s of the paper the program takes no more of a processor in the crowd than the paper's did",
        results.mean(scene, &usual, in_the_crowd) <= PAPERS_PERCENT,
    )];
    let mut notes = scale::notes();
    notes.push(
        "Processor and memory are the program's in user space: five times the paper's packets, sixteen times its intervals a second. What \
         the programs in the kernel take per packet is measured by `make bench-kernel`."
            .to_owned(),
    );
    notes.extend(results.doubts(scene));
    let line = |phase: usize, name: &str| {
        let points = INTERVALS_S.map(|interval_s| {
            let percent = |record: &Record| Some(record.router_processor_percent?[phase]);
            let mean = results.mean(scene, &with_interval(MODE, interval_s), percent);
            (interval_s as f64 * TIMES, Some(mean).filter(|it| it.is_finite()))
        });
        (name.to_owned(), points.to_vec())
    };
    let plot = Plot {
        title: "Processor time of the router's program",
        x_label: "T, seconds of the paper",
        y_label: "percent of a processor",
        lines: vec![line(0, "before the crowd"), line(1, "in the crowd")],
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

fn memory_mb(record: &Record) -> Option<f64> {
    Some(record.router_memory_bytes? as f64 / 1e6)
}

//! NEWS-8.6 on the testbed: a download beside the crowd.

use super::network_limited::{protections, settled};
use super::record::Record;
use super::results::Results;
use super::scale::{self, RATES};
use super::scene::{Beside, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};
use std::ops::Range;

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-8.6",
        title: "A download beside the crowd",
        paper: "§8.6: the download's goodput falls from 327 to 80 kb/s in the crowd; with NEWS it has 318 kb/s",
    },
    runs,
    judge,
};

fn scene(scope: &Scope) -> Scene {
    Scene { beside: Beside::Download, ..Scene::network_limited(scope) }
}

fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    scene(scope).runs(scope, protections())
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &scene(scope);
    let ours = results.in_scene(scene);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let before = goodput_kbps(scale::INTERVAL_S..scene.onset_s());
    let during = goodput_kbps(settled(scene, scale::INTERVAL_S));
    let rows = vec![
        ours.row("before the crowd, kb/s of the paper", Some(327.0), &all, &before),
        ours.row("in the crowd, kb/s of the paper", Some(80.0), none, &during),
        ours.row("in the crowd with NEWS, kb/s of the paper", Some(318.0), news, &during),
    ];
    let without = ours.seeds(&none[0], &during);
    let mut shapes = vec![Shape::new(
        "without NEWS it keeps at most half of its goodput",
        [without.over(&ours.seeds(&none[0], &before)).at_most(0.5)],
    )];
    for protection in news {
        shapes.push(Shape::new(
            format!("with {} it has at least twice as much as without", protection.name()),
            [ours.seeds(protection, &during).over(&without).at_least(2.0)],
        ));
    }
    let mut notes = scale::notes();
    notes.push(
        "The download is one connection of Linux's TCP as shipped (CUBIC), which takes what the crowd leaves; the paper's sent 8 kB at a \
         time at a rate of its own."
            .to_owned(),
    );
    notes.extend(ours.doubts());
    let line = |protection| {
        let kbps = |second: &super::Second| Some(paper_kbps(second.download_bytes as f64));
        (super::Protection::name(protection), ours.over_time(protection, kbps))
    };
    let plot = Plot {
        title: "Goodput of the download",
        x_label: "seconds",
        y_label: "kb/s of the paper",
        lines: all.iter().map(line).collect(),
        onset: Some(scene.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

fn goodput_kbps(within: Range<u64>) -> impl Fn(&Record) -> Option<f64> {
    move |record| record.per_second(within.clone(), |it| it.download_bytes).map(paper_kbps)
}

fn paper_kbps(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1e3 / RATES
}

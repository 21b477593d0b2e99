//! NEWS-F20 on the testbed: what comes, what is let in, what is lost.

use super::results::Results;
use super::scale::{self, paper_rate};
use super::scene::{NEWS_MODES, Protection, Run, Scene};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};
use std::ops::Range;

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F20",
        title: "Request rates at the router, and what is lost behind it",
        paper: "Figure 20 and §8.2: found after 88 s (T = 64 s); without NEWS 318 SYNs/s are offered, 60 % of the packets lost, 22 % of \
                the connections time out; with it 56/s are let in, 49 % refused, less than 3 % lost, and 459 SYNs/s offered",
    },
    runs,
    judge,
};

/// The runs of the network-limited scene, which several figures share: without NEWS, and each of its modes.
pub(super) fn protections() -> Vec<Protection> {
    let news = NEWS_MODES.into_iter().map(Protection::news);
    [Protection::None].into_iter().chain(news).collect()
}

/// From two intervals after the onset on: a crowd is found by then, if at all.
pub(super) fn settled(scene: &Scene, interval_s: u64) -> Range<u64> {
    scene.onset_s() + 2 * interval_s..scene.length_s()
}

fn runs(scope: &Scope) -> Vec<Run> {
    let scene = Scene::network_limited(scope);
    scope.runs(protections().into_iter().map(|protection| (&scene, protection)))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let settled = settled(scene, scale::INTERVAL_S);
    let offered = per_second(settled.clone(), |it| it.offered);
    let admitted = per_second(settled.clone(), |it| it.admitted);
    let lost = lost_percent(settled.clone());
    let gave_up = gave_up_percent(settled.clone());
    let refused = |record: &super::Record| {
        let admitted = record.percent(settled.clone(), |it| it.admitted, |it| it.unique_offered)?;
        Some(100.0 - admitted)
    };
    let found = |record: &super::Record| record.found_after_s(scene.onset_s());
    let in_intervals = |record: &super::Record| Some(found(record)? / scale::INTERVAL_S as f64);
    let after_losses = |record: &super::Record| {
        Some((found(record)? - record.lossy_after_s(scene.onset_s())?) / scale::INTERVAL_S as f64)
    };
    let row = |what: &str, paper, protections, value: &dyn Fn(&super::Record) -> Option<f64>| {
        results.row(what, paper, (scene, protections), value)
    };
    let rows = vec![
        row("found after, intervals of T", Some(88.0 / 64.0), news, &in_intervals),
        row("found after the first losses, intervals of T", None, news, &after_losses),
        row("without NEWS: offered SYNs/s", Some(318.0), none, &offered),
        row("without NEWS: packets lost, %", Some(60.0), none, &lost),
        row("without NEWS: timed out, %", Some(22.0), none, &gave_up),
        row("with NEWS: offered SYNs/s", Some(459.0), news, &offered),
        row("with NEWS: let in/s", Some(56.0), news, &admitted),
        row("with NEWS: refused of those who came, %", Some(49.0), news, &refused),
        row("with NEWS: packets lost, %", Some(3.0), news, &lost),
        row("answered in time/s", None, &all, &per_second(settled.clone(), |it| it.good)),
    ];
    let mean = |protection: &Protection, value: &dyn Fn(&super::Record) -> Option<f64>| {
        results.mean(scene, protection, value)
    };
    let mut shapes = vec![Shape::new(
        "without NEWS at least a fifth of the packets is lost and a fifth of the people time out",
        mean(&none[0], &lost) >= 20.0 && mean(&none[0], &gave_up) >= 20.0,
    )];
    for protection in news {
        let name = protection.name();
        let of = |value: &dyn Fn(&super::Record) -> Option<f64>| mean(protection, value);
        shapes.extend([
            Shape::new(format!("{name} finds the crowd within two intervals"), of(&in_intervals) <= 2.0),
            Shape::new(
                format!("{name} finds it by the end of the first whole interval with losses"),
                of(&after_losses) <= 2.0,
            ),
            Shape::new(
                format!("{name} brings the loss to a quarter or less"),
                of(&lost) <= 0.25 * mean(&none[0], &lost),
            ),
            Shape::new(
                format!("{name} refuses between a quarter and two thirds"),
                (25.0..=66.7).contains(&of(&refused)),
            ),
            Shape::new(
                format!("with {name} more SYNs are offered than people come, as the refused come again"),
                of(&offered) >= 1.2 * of(&per_second(settled.clone(), |it| it.unique_offered)),
            ),
        ]);
    }
    let mut notes = scale::notes();
    notes.push(COUNTED.to_owned());
    notes.extend(results.doubts(scene));
    plot(scene, results).finding(rows, shapes, Claim::Shape, notes)
}

const COUNTED: &str = "Offered and let in are counted from two intervals after the onset on, by the clients' and the server's \
    kernels. Lost is what the bottleneck dropped of all it was given; the first losses are the first second with more than a \
    twentieth, as the crowd grows for some time before it is too large.";

fn plot(scene: &Scene, results: &Results) -> Plot {
    let mut lines = Vec::new();
    for protection in protections() {
        let name = protection.name();
        let over_time = |of: fn(&super::Second) -> u64| {
            results.over_time(scene, &protection, |second| Some(paper_rate(of(second) as f64)))
        };
        lines.push((format!("{name}: offered"), over_time(|it| it.offered)));
        lines.push((format!("{name}: let in"), over_time(|it| it.admitted)));
    }
    Plot {
        title: "SYNs at the router",
        x_label: "seconds",
        y_label: "requests/s of the paper",
        lines,
        onset: Some(scene.onset_s() as f64),
    }
}

/// In the paper's requests a second.
pub(super) fn per_second(
    within: Range<u64>,
    count: impl Fn(&super::Second) -> u64,
) -> impl Fn(&super::Record) -> Option<f64> {
    move |record| record.per_second(within.clone(), &count).map(paper_rate)
}

pub(super) fn lost_percent(within: Range<u64>) -> impl Fn(&super::Record) -> Option<f64> {
    move |record| record.percent(within.clone(), |it| it.dropped, |it| it.dropped + it.sent)
}

pub(super) fn gave_up_percent(within: Range<u64>) -> impl Fn(&super::Record) -> Option<f64> {
    move |record| record.percent(within.clone(), |it| it.timed_out, |it| it.unique_offered)
}

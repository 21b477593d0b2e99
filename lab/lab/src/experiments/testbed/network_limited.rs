//! NEWS-F20 on the testbed: what comes, what is let in, what is lost.

use super::detection::{PROTECTED, found_after_intervals, it_waits_for, waits_for, within_one};
use super::results::{InScene, Results};
use super::scale::{self, paper_rate};
use super::scene::{NEWS_MODES, Protection, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};
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

/// The runs of a figure that asks for these.
pub(super) fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    Scene::network_limited(scope).runs(scope, protections())
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let ours = results.in_scene(scene);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let settled = settled(scene, scale::INTERVAL_S);
    let offered = per_second(settled.clone(), |it| it.offered);
    let admitted = per_second(settled.clone(), |it| it.admitted);
    let lost = lost_percent(settled.clone());
    let gave_up = gave_up_percent(settled.clone());
    let refused = refused_percent(settled.clone());
    let in_intervals = found_after_intervals(scene, scale::INTERVAL_S);
    let after_losses = found_after_losses(scene);
    let found_after = format!("found after, intervals of T{}", waits_for(scale::INTERVAL_S));
    let rows = vec![
        ours.row(found_after, Some(88.0 / 64.0), news, &in_intervals),
        ours.row("found after the first losses, intervals of T", None, news, &after_losses),
        ours.row("without NEWS: offered SYNs/s", Some(318.0), none, &offered),
        ours.row("without NEWS: packets lost, %", Some(60.0), none, &lost),
        ours.row("without NEWS: timed out, %", Some(22.0), none, &gave_up),
        ours.row("with NEWS: offered SYNs/s", Some(459.0), news, &offered),
        ours.row("with NEWS: let in/s", Some(56.0), news, &admitted),
        ours.row("with NEWS: refused of those who came, %", Some(49.0), news, &refused),
        ours.row("with NEWS: packets lost, %", Some(3.0), news, &lost),
        ours.row("answered in time/s", None, &all, per_second(settled.clone(), |it| it.good)),
    ];
    let mut shapes = vec![Shape::new(
        "without NEWS at least a fifth of the packets is lost and a fifth of the people time out",
        [
            ours.seeds(&none[0], &lost).at_least(20.0).named("lost, %"),
            ours.seeds(&none[0], &gave_up).at_least(20.0).named("timed out, %"),
        ],
    )];
    shapes.extend(news.iter().flat_map(|it| with_news(scene, ours, it)));
    let mut notes = scale::notes();
    notes.push(COUNTED.to_owned());
    notes.push(PROTECTED.to_owned());
    notes.extend(ours.doubts());
    plot(scene, ours).finding(rows, shapes, Claim::Shape, notes)
}

/// Conditions that must hold with NEWS.
fn with_news(scene: &Scene, ours: InScene<'_>, protection: &Protection) -> [Shape; 6] {
    let settled = settled(scene, scale::INTERVAL_S);
    let lost = lost_percent(settled.clone());
    let of = |value: &dyn Fn(&super::Record) -> Option<f64>| ours.seeds(protection, value);
    let name = protection.name();
    let came = of(&per_second(settled.clone(), |it| it.unique_offered));
    [
        Shape::new(
            format!("{name} protects within one interval{}", it_waits_for(&name, scale::INTERVAL_S)),
            [of(&found_after_intervals(scene, scale::INTERVAL_S))
                .at_most(within_one(scale::INTERVAL_S))
                .named("intervals")],
        ),
        Shape::new(
            format!("{name} finds the crowd within two intervals"),
            [of(&found_after_intervals(scene, scale::INTERVAL_S)).at_most(2.0).named("intervals")],
        ),
        Shape::new(
            format!("{name} finds it by the end of the first whole interval with losses"),
            [of(&found_after_losses(scene)).at_most(2.0).named("intervals after the first losses")],
        ),
        Shape::new(
            format!("{name} brings the loss to a quarter or less"),
            [of(&lost).over(&ours.seeds(&Protection::None, &lost)).at_most(0.25)],
        ),
        Shape::new(
            format!("{name} refuses between a quarter and two thirds"),
            [of(&refused_percent(settled.clone())).between(25.0, 66.7).named("%")],
        ),
        Shape::new(
            format!("with {name} more SYNs are offered than people come, as the refused come again"),
            [of(&per_second(settled, |it| it.offered)).over(&came).at_least(1.2)],
        ),
    ]
}

const COUNTED: &str = "Offered and let in are counted from two intervals after the onset on, by the clients' and the server's \
    kernels. Lost is what the bottleneck dropped of all it was given; the first losses are the first second with more than a \
    twentieth, as the crowd grows for some time before it is too large.";

fn plot(scene: &Scene, ours: InScene<'_>) -> Plot {
    let mut lines = Vec::new();
    for protection in protections() {
        let name = protection.name();
        let over_time = |of: fn(&super::Second) -> u64| {
            ours.over_time(&protection, |second| Some(paper_rate(of(second) as f64)))
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

fn refused_percent(within: Range<u64>) -> impl Fn(&super::Record) -> Option<f64> {
    move |record| Some(100.0 - record.percent(within.clone(), |it| it.admitted, |it| it.unique_offered)?)
}

/// From the first losses to the first limit in force, in intervals.
fn found_after_losses(scene: &Scene) -> impl Fn(&super::Record) -> Option<f64> {
    let onset_s = scene.onset_s();
    move |record| {
        let late_s = record.found_after_s(onset_s)? - record.lossy_after_s(onset_s)?;
        Some(late_s / scale::INTERVAL_S as f64)
    }
}

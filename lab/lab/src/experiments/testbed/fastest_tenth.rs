//! NEWS-F19 on the testbed: what the server does, and how fast the fastest tenth is.

use super::network_limited::{per_second, protections, runs, settled};
use super::record::Record;
use super::results::Results;
use super::scale;
use super::scene::Scene;
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F19",
        title: "What the server answers, and the fastest tenth of the responses",
        paper: "Figure 19 and §8.2: without NEWS the server processes 80 of 117 requests/s, and the fastest tenth falls by half, to 133 \
                kb/s; with NEWS it has 261 kb/s",
    },
    runs,
    judge,
};

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let ours = results.in_scene(scene);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let settled = settled(scene, scale::INTERVAL_S);
    let answered = per_second(settled.clone(), |it| it.completed);
    let before = |record: &Record| record.fastest_kbps(scale::INTERVAL_S..scene.onset_s());
    let during = |record: &Record| record.fastest_kbps(settled.clone());
    let rows = vec![
        ours.row("without NEWS: answered/s", Some(80.0), none, &answered),
        ours.row("with NEWS: answered/s", None, news, &answered),
        ours.row("fastest tenth before the crowd, kb/s", None, &all, before),
        ours.row("fastest tenth in the crowd, kb/s", Some(133.0), none, during),
        ours.row("fastest tenth in the crowd with NEWS, kb/s", Some(261.0), news, during),
    ];
    let came = ours.seeds(&none[0], per_second(settled.clone(), |it| it.unique_offered));
    let without = ours.seeds(&none[0], during);
    let mut shapes = vec![
        Shape::new(
            "without NEWS the server answers at most 0.8 of those who come",
            [ours.seeds(&none[0], &answered).over(&came).at_most(0.8)],
        ),
        Shape::new(
            "without NEWS the fastest tenth falls to 0.75 or less",
            [without.over(&ours.seeds(&none[0], before)).at_most(0.75)],
        ),
    ];
    for protection in news {
        shapes.push(Shape::new(
            format!("with {} it is at least 1.5 times as fast as without", protection.name()),
            [ours.seeds(protection, during).over(&without).at_least(1.5)],
        ));
    }
    let mut notes = scale::notes();
    notes.push(format!(
        "Rates of responses are read by the clients' network from the packets that it gets, every {} s: from the end of \
         the handshake on, time sliding window, its first second corrected. They are not scaled.",
        scene.reading_s
    ));
    notes.extend(ours.doubts());
    ours.fastest_tenth(&all).finding(rows, shapes, Claim::Shape, notes)
}

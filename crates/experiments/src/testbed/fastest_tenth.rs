//! NEWS-F19 on the testbed: what the server does, and how fast the fastest tenth is.

use super::network_limited::{per_second, protections, settled};
use super::record::Record;
use super::results::Results;
use super::scale;
use super::scene::{Run, Scene};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};

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

fn runs(scope: &Scope) -> Vec<Run> {
    let scene = Scene::network_limited(scope);
    scope.runs(protections().into_iter().map(|protection| (&scene, protection)))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let all = protections();
    let (none, news) = (&all[..1], &all[1..]);
    let settled = settled(scene, scale::INTERVAL_S);
    let answered = per_second(settled.clone(), |it| it.completed);
    let before = |record: &Record| record.fastest_kbps(scale::INTERVAL_S..scene.onset_s());
    let during = |record: &Record| record.fastest_kbps(settled.clone());
    let row = |what: &str, paper, protections, value: &dyn Fn(&Record) -> Option<f64>| {
        results.row(what, paper, (scene, protections), value)
    };
    let rows = vec![
        row("without NEWS: answered/s", Some(80.0), none, &answered),
        row("with NEWS: answered/s", None, news, &answered),
        row("fastest tenth before the crowd, kb/s", None, &all, &before),
        row("fastest tenth in the crowd, kb/s", Some(133.0), none, &during),
        row("fastest tenth in the crowd with NEWS, kb/s", Some(261.0), news, &during),
    ];
    let mean = |protection, value: &dyn Fn(&Record) -> Option<f64>| results.mean(scene, protection, value);
    let mut shapes = vec![
        Shape::new(
            "without NEWS the server answers at most 0.8 of those who come",
            mean(&none[0], &answered)
                <= 0.8 * mean(&none[0], &per_second(settled.clone(), |it| it.unique_offered)),
        ),
        Shape::new(
            "without NEWS the fastest tenth falls to 0.75 or less",
            mean(&none[0], &during) <= 0.75 * mean(&none[0], &before),
        ),
    ];
    for protection in news {
        shapes.push(Shape::new(
            format!("with {} it is at least 1.5 times as fast as without", protection.name()),
            mean(protection, &during) >= 1.5 * mean(&none[0], &during),
        ));
    }
    let mut notes = scale::notes();
    notes.push(format!(
        "Rates of responses are read by the clients' network from the packets that it gets, every {} s: from the end of \
         the handshake on, time sliding window, its first second corrected. They are not scaled.",
        scene.reading_s
    ));
    notes.extend(results.doubts(scene));
    plot(scene, results).finding(rows, shapes, Claim::Shape, notes)
}

fn plot(scene: &Scene, results: &Results) -> Plot {
    let line = |protection| {
        let readings = results.of(scene, protection).next().into_iter().flat_map(|record| &record.fastest);
        (protection.name(), readings.map(|reading| (reading.at_s, Some(reading.kbps))).collect())
    };
    Plot {
        title: "The fastest tenth of the responses",
        x_label: "seconds",
        y_label: "kb/s",
        lines: protections().iter().map(line).collect(),
        onset: Some(scene.onset_s() as f64),
    }
}

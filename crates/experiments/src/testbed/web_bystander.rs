//! NEWS-T3 on the testbed: readers of another server behind the same router.

use super::record::{People, Record};
use super::results::Results;
use super::scale::{self, RATES};
use super::scene::{Beside, NEWS_MODES, Protection, Run, Scene};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};

pub(super) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-T3",
        title: "Web readers of a server beside the crowd's",
        paper: "Table III and §8.6: mean and median latency before the crowd 0.22 and 0.18 s, in it 24.44 and 9.53 s, with NEWS 7.03 and \
                3.15 s, with NEWS and hot-spot identification 0.42 and 0.32 s",
    },
    runs,
    judge,
};

/// "Less than 20" (§8.6), in the paper's requests a second.
const READERS_PER_S: f64 = 10.0;
/// What those beside the crowd are called by when they came.
pub(super) const BEFORE: &str = "beside, before";
pub(super) const AFTER: &str = "beside, once found";
/// A bystander's median over that before the crowd.
const AS_QUIET: f64 = 1.3;

fn scene(scope: &Scope) -> Scene {
    let beside = Beside::Readers { per_s: READERS_PER_S * RATES };
    Scene { beside, ..Scene::network_limited(scope) }
}

fn news(mode: &'static str, hot_spots: bool) -> Protection {
    Protection::News { mode, interval_s: scale::INTERVAL_S, hot_spots }
}

fn protections() -> Vec<Protection> {
    let news = NEWS_MODES.into_iter().flat_map(|mode| [news(mode, false), news(mode, true)]);
    [Protection::None].into_iter().chain(news).collect()
}

fn runs(scope: &Scope) -> Vec<Run> {
    let scene = scene(scope);
    scope.runs(protections().into_iter().map(|protection| (&scene, protection)))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &scene(scope);
    let none = [Protection::None];
    let [everybody, hot_spot] = [false, true].map(|hot_spots| NEWS_MODES.map(|mode| news(mode, hot_spots)));
    let mut rows = Vec::new();
    for (what, class, protections, [mean, median]) in [
        ("before the crowd", BEFORE, &none[..], [0.22, 0.18]),
        ("in the crowd", AFTER, &none[..], [24.44, 9.53]),
        ("with NEWS", AFTER, &everybody[..], [7.03, 3.15]),
        ("with NEWS and hot spots", AFTER, &hot_spot[..], [0.42, 0.32]),
    ] {
        let of = (scene, protections);
        rows.push(results.row(format!("{what}: mean, s"), Some(mean), of, people(class, |it| it.mean_s)));
        rows.push(results.row(
            format!("{what}: median, s"),
            Some(median),
            of,
            people(class, |it| it.median_s),
        ));
        rows.push(results.row(format!("{what}: without an answer, %"), None, of, unanswered_percent(class)));
    }
    let median =
        |class, protection| results.mean(scene, protection, people(class, |it: &People| it.median_s));
    let unanswered = |protection| results.mean(scene, protection, unanswered_percent(AFTER));
    let mut shapes = vec![Shape::new(
        "in the crowd the median is at least three times that before, or a tenth of the readers gets no answer",
        median(AFTER, &none[0]) >= 3.0 * median(BEFORE, &none[0]) || unanswered(&none[0]) >= 10.0,
    )];
    for (mode, protection) in NEWS_MODES.iter().zip(&hot_spot) {
        let quiet = median(BEFORE, protection);
        shapes.push(Shape::new(
            format!("{mode} with hot spots, once found: a median of at most {AS_QUIET} times that before"),
            median(AFTER, protection) <= AS_QUIET * quiet,
        ));
        shapes.push(Shape::new(
            format!("{mode} with hot spots, once found: at most one reader of 100 stays without an answer"),
            unanswered(protection) <= 1.0,
        ));
    }
    let mut notes = scale::notes();
    notes.push(format!(
        "Readers ({READERS_PER_S}/s of the paper's, 25 ms away) wait for at most {} s like everybody. A latency is from the moment a request \
         was to begin to the whole page, of those who got it; once found is from two intervals after the onset on, without protection as well.",
        scene.patience.as_secs()
    ));
    notes.extend(results.doubts(scene));
    plot(scene, results).finding(rows, shapes, Claim::Shape, notes)
}

fn plot(scene: &Scene, results: &Results) -> Plot {
    let line = |protection: Protection| {
        let hot = matches!(protection, Protection::News { hot_spots: true, .. });
        let name = protection.name() + if hot { ", hot spots" } else { "" };
        (name, results.over_time(scene, &protection, |second| second.beside_latency_s))
    };
    Plot {
        title: "Median latency of the readers beside the crowd",
        x_label: "seconds",
        y_label: "latency, s",
        lines: protections().into_iter().map(line).collect(),
        onset: Some(scene.onset_s() as f64),
    }
}

fn people(class: &'static str, of: impl Fn(&People) -> Option<f64>) -> impl Fn(&Record) -> Option<f64> {
    move |record| of(record.people.get(class)?)
}

fn unanswered_percent(class: &'static str) -> impl Fn(&Record) -> Option<f64> {
    people(class, |it| {
        (it.unique_offered > 0).then(|| 100.0 - it.completed as f64 / it.unique_offered as f64 * 100.0)
    })
}

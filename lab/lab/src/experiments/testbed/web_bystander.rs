//! NEWS-T3 on the testbed: readers of another server behind the same router.

use super::record::{People, Record};
use super::results::{InScene, Results};
use super::scale::{self, RATES};
use super::scene::{Beside, NEWS_MODES, Protection, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};

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
/// Names of the clients beside the crowd, by the time they came.
pub(super) const BEFORE: &str = "beside, before";
pub(super) const AFTER: &str = "beside, once found";
/// The paper's median before the crowd.
const PAPERS_QUIET_S: f64 = 0.18;
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

fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    scene(scope).runs(scope, protections())
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &scene(scope);
    let ours = results.in_scene(scene);
    let none = [Protection::None];
    let [everybody, hot_spot] = [false, true].map(|hot_spots| NEWS_MODES.map(|mode| news(mode, hot_spots)));
    let mut rows = Vec::new();
    for (what, class, protections, [mean, median]) in [
        ("before the crowd", BEFORE, &none[..], [0.22, PAPERS_QUIET_S]),
        ("in the crowd", AFTER, &none[..], [24.44, 9.53]),
        ("with NEWS", AFTER, &everybody[..], [7.03, 3.15]),
        ("with NEWS and hot spots", AFTER, &hot_spot[..], [0.42, 0.32]),
    ] {
        let mut row = |what_of_it, paper, value: &dyn Fn(&Record) -> Option<f64>| {
            rows.push(ours.row(format!("{what}: {what_of_it}"), paper, protections, value));
        };
        row("mean, s", Some(mean), &people(class, |it| it.mean_s));
        row("median, s", Some(median), &people(class, |it| it.median_s));
        if class == AFTER {
            row("median over that before", Some(median / PAPERS_QUIET_S), &over_before);
        }
        row("without an answer, %", None, &unanswered_percent(class));
    }
    let median = |class| ours.seeds(&none[0], people(class, |it: &People| it.median_s));
    let unanswered = |protection| ours.seeds(protection, unanswered_percent(AFTER));
    // Readers without an answer are no longer in the median: a harm that is hidden there is seen in their
    // number.
    let harm = median(AFTER).over(&median(BEFORE)).map(|times| times / 3.0);
    let harm = harm.with(&unanswered(&none[0]).map(|percent| percent / 10.0), f64::max);
    let mut shapes = vec![Shape::new(
        "in the crowd the median is at least three times that before, or a tenth of the readers gets no answer",
        [harm.at_least(1.0).named("the larger of both, over what is required")],
    )];
    for (mode, protection) in NEWS_MODES.iter().zip(&hot_spot) {
        shapes.push(Shape::new(
            format!("{mode} with hot spots, once found: a median of at most {AS_QUIET} times that before"),
            [ours.seeds(protection, over_before).at_most(AS_QUIET)],
        ));
        shapes.push(Shape::new(
            format!("{mode} with hot spots, once found: at most one reader of 100 stays without an answer"),
            [unanswered(protection).at_most(1.0).named("%")],
        ));
    }
    let mut notes = scale::notes();
    notes.push(format!(
        "Readers ({READERS_PER_S}/s of the paper's, 25 ms away) wait for at most {} s like everybody. A latency is from the moment a request \
         was to begin to the whole page, of those who got it; once found is from two intervals after the onset on, without protection as well.",
        scene.patience.as_secs()
    ));
    notes.extend(ours.doubts());
    plot(scene, ours).finding(rows, shapes, Claim::Shape, notes)
}

fn plot(scene: &Scene, ours: InScene<'_>) -> Plot {
    let line = |protection: Protection| {
        let hot = matches!(protection, Protection::News { hot_spots: true, .. });
        let name = protection.name() + if hot { ", hot spots" } else { "" };
        (name, ours.over_time(&protection, |second| second.beside_latency_s))
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

/// The median once the crowd is found over that before it came, in the same run.
fn over_before(record: &Record) -> Option<f64> {
    Some(record.people.get(AFTER)?.median_s? / record.people.get(BEFORE)?.median_s?)
}

fn unanswered_percent(class: &'static str) -> impl Fn(&Record) -> Option<f64> {
    people(class, |it| {
        (it.unique_offered > 0).then(|| 100.0 - it.completed as f64 / it.unique_offered as f64 * 100.0)
    })
}

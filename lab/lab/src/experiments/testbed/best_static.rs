//! NEWS-F21 on the testbed: NEWS and the best static limit that a search finds.

use super::interval::with_interval;
use super::network_limited::{per_second, protections, settled};
use super::peak::{BEYOND_MAX, LENGTH, looked_at_and_beyond};
use super::record::Record;
use super::results::{InScene, Results};
use super::scale::{self, RATES};
use super::scene::{Protection, REPAIRED, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F21",
        title: "NEWS and static limits",
        paper: "Figure 21 and §8.2: the fastest tenth does with NEWS as well as with a static limiter that was configured by hand",
    },
    runs,
    judge,
};

/// The search begins there, in the paper's requests a second, and goes to 34 above: from less than what NEWS
/// let in there, 56, to more than 2 Mb/s carry.
const LOWEST_PER_S: u32 = 46;
/// Of the best static limit's goodput.
const AS_GOOD: f64 = 0.95;

fn runs(scope: &Scope, results: &Results) -> Vec<TestbedRun> {
    let scene = Scene::network_limited(scope);
    let limits = searched(scope, results.in_scene(&scene));
    let all = protections().into_iter().chain([as_shipped()]).chain(limits.into_iter().map(limited_to));
    scene.runs(scope, all)
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let ours = results.in_scene(scene);
    let settled = settled(scene, scale::INTERVAL_S);
    let good = good(scope);
    let fastest = |record: &Record| record.fastest_kbps(settled.clone());
    let mut limits = searched(scope, ours);
    limits.sort_unstable();
    let by_limit: Vec<(u32, f64)> =
        limits.iter().map(|&limit| (limit, ours.mean(&limited_to(limit), &good))).collect();
    let found = by_limit.iter().filter(|(_, good)| good.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
    let (best_limit, best_good) = found.copied().unwrap_or((0, f64::NAN));
    let over_best = |record: &Record| Some(good(record)? / best_good).filter(|it| it.is_finite());
    let all = protections();
    let mut rows = Vec::new();
    for &limit in &limits {
        let only = [limited_to(limit)];
        rows.push(ours.row(format!("limit of {limit}/s: answered in time/s"), None, &only, &good));
        rows.push(ours.row(format!("limit of {limit}/s: fastest tenth, kb/s"), None, &only, fastest));
    }
    rows.push(ours.row("answered in time/s", None, &all, &good));
    rows.push(ours.row("answered in time over that of the best static limit", None, &all, over_best));
    rows.push(ours.row("fastest tenth, kb/s", None, &all, fastest));
    let shipped = [as_shipped()];
    rows.push(ours.row("with the router's own T, 1 s: answered in time/s", None, &shipped, &good));
    rows.push(ours.row(
        "with the router's own T: over that of the best static limit",
        None,
        &shipped,
        over_best,
    ));
    let best = ours.seeds(&limited_to(best_limit), &good);
    let over_best_of_seed =
        |protection: &Protection| ours.seeds(protection, &good).over(&best).at_least(AS_GOOD);
    let mut shapes = vec![inside(&limits, best_limit)];
    for protection in &all[1..] {
        shapes.push(Shape::new(
            format!("{}: goodput within 5 % of the best static limit's", protection.name()),
            [over_best_of_seed(protection)],
        ));
    }
    shapes.push(Shape::new(
        "repaired with the router's own T: goodput within 5 % of the best static limit's",
        [over_best_of_seed(&shipped[0])],
    ));
    let mut notes = scale::notes();
    notes.push(format!(
        "The best static limit found is {best_limit}/s, with {best_good:.1} answered in time/s: a search by Fibonacci's numbers \
         between {LOWEST_PER_S} and {}/s, and up to {BEYOND_MAX} limits beyond while the best is the lowest or the highest tried; {} limits tried.",
        LOWEST_PER_S + LENGTH,
        limits.len()
    ));
    notes.extend(ours.doubts());
    plot(ours, &by_limit, &good).finding(rows, shapes, Claim::Shape, notes)
}

fn plot(ours: InScene<'_>, by_limit: &[(u32, f64)], good: impl Fn(&Record) -> Option<f64>) -> Plot {
    let finite = |good: f64| Some(good).filter(|it| it.is_finite());
    let line = |good: &dyn Fn(f64) -> f64| {
        by_limit.iter().map(|&(limit, of_limit)| (f64::from(limit), finite(good(of_limit)))).collect()
    };
    let level = |protection: &Protection| {
        let mean = ours.mean(protection, &good);
        (protection.name(), line(&|_| mean))
    };
    let lines = protections().iter().map(level).chain([("static".to_owned(), line(&|it| it))]).collect();
    Plot {
        title: "Answered in time",
        x_label: "limit, requests/s of the paper",
        y_label: "requests/s of the paper",
        lines,
        onset: None,
    }
}

/// The limits that the search looks at, as far as the runs that there are lead it.
fn searched(scope: &Scope, ours: InScene<'_>) -> Vec<u32> {
    let good = good(scope);
    let value = |limit| Some(ours.mean(&limited_to(limit), &good)).filter(|it| it.is_finite());
    looked_at_and_beyond(LOWEST_PER_S, value)
}

/// Condition that the best of the limits, in ascending order, has limits on both sides: no search ends at an
/// edge.
fn inside(limits: &[u32], best: u32) -> Shape {
    let to_edge = limits
        .first()
        .zip(limits.last())
        .map(|(&lowest, &highest)| f64::from(best.saturating_sub(lowest).min(highest.saturating_sub(best))));
    Shape::new(
        "the best static limit found is neither the lowest nor the highest tried",
        // Of all rounds together: the search is for the best mean.
        [SeedValues::of([(0, to_edge)]).above(0.0).named("distance to the nearest edge, requests/s")],
    )
}

/// Answered in time, in the paper's requests a second: what the search is for.
fn good(scope: &Scope) -> impl Fn(&Record) -> Option<f64> {
    per_second(settled(&Scene::network_limited(scope), scale::INTERVAL_S), |it| it.good)
}

/// Protection of a router without settings.
fn as_shipped() -> Protection {
    with_interval(REPAIRED, 1)
}

fn limited_to(per_s: u32) -> Protection {
    Protection::Static { per_s: f64::from(per_s) * RATES }
}

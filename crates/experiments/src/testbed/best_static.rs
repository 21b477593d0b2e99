//! NEWS-F21 on the testbed: NEWS and the best static limit that a search finds.

use super::network_limited::{per_second, protections, settled};
use super::record::Record;
use super::results::Results;
use super::scale::{self, RATES};
use super::scene::{Protection, Run, Scene};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-F21",
        title: "NEWS and static limits",
        paper: "Figure 21 and §8.2: the fastest tenth does with NEWS as well as with a static limiter that was configured by hand",
    },
    runs,
    judge,
};

/// In the paper's requests a second: from NEWS's own 56 to well above what 2 Mb/s carry.
const LIMITS_PER_S: [f64; 5] = [40.0, 50.0, 60.0, 70.0, 80.0];
/// Of the best static limit's goodput.
const AS_GOOD: f64 = 0.95;

fn limits() -> impl Iterator<Item = (f64, Protection)> {
    LIMITS_PER_S.into_iter().map(|limit| (limit, Protection::Static { per_s: limit * RATES }))
}

fn runs(scope: &Scope) -> Vec<Run> {
    let scene = Scene::network_limited(scope);
    let all = protections().into_iter().chain(limits().map(|(_, protection)| protection));
    scope.runs(all.map(|protection| (&scene, protection)))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let settled = settled(scene, scale::INTERVAL_S);
    let good = per_second(settled.clone(), |it| it.good);
    let fastest = |record: &Record| record.fastest_kbps(settled.clone());
    let mean = |protection: &Protection, value: &dyn Fn(&Record) -> Option<f64>| {
        results.mean(scene, protection, value)
    };
    let mut rows = Vec::new();
    for (limit, protection) in limits() {
        let only = (scene, std::slice::from_ref(&protection));
        rows.push(results.row(format!("limit of {limit}/s: answered in time/s"), None, only, &good));
        rows.push(results.row(format!("limit of {limit}/s: fastest tenth, kb/s"), None, only, fastest));
    }
    let all = protections();
    rows.push(results.row("answered in time/s", None, (scene, &all), &good));
    rows.push(results.row("fastest tenth, kb/s", None, (scene, &all), fastest));
    let by_limit: Vec<(f64, f64)> = limits().map(|(limit, it)| (limit, mean(&it, &good))).collect();
    let best =
        by_limit.iter().copied().filter(|(_, good)| good.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
    let (best_limit, best_good) = best.unwrap_or((f64::NAN, f64::NAN));
    let inside = best_limit > LIMITS_PER_S[0] && best_limit < LIMITS_PER_S[LIMITS_PER_S.len() - 1];
    let mut shapes =
        vec![Shape::new("the best static limit is neither the lowest nor the highest tried", inside)];
    for protection in &all[1..] {
        shapes.push(Shape::new(
            format!("{}: goodput within 5 % of the best static limit's", protection.name()),
            mean(protection, &good) >= AS_GOOD * best_good,
        ));
    }
    let mut notes = scale::notes();
    notes.push(format!("The best static limit is {best_limit}/s, with {best_good:.1} answered in time/s."));
    notes.extend(results.doubts(scene));
    let news = all.iter().map(|protection| {
        let good = mean(protection, &good);
        (
            protection.name(),
            LIMITS_PER_S.map(|limit| (limit, Some(good).filter(|it| it.is_finite()))).to_vec(),
        )
    });
    let by_limit = by_limit.iter().map(|&(limit, good)| (limit, Some(good).filter(|it| it.is_finite())));
    let lines = news.chain([("static".to_owned(), by_limit.collect())]).collect();
    let plot = Plot {
        title: "Answered in time",
        x_label: "limit, requests/s of the paper",
        y_label: "requests/s of the paper",
        lines,
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

//! Outcome of one crowd of the comparison.

use super::scene::{GOLD, PATIENCE_S, Scene};
use crate::trials::percentile::admitted_ms;
use crate::{LoadResult, Second, Tally};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Goodput is back when it reaches this part of the capacity there is.
const BACK: f64 = 0.9;
/// Window of the average, seconds: one second alone says little at some tens of requests a second.
const BACK_OVER_S: u64 = 2;

/// Outcome of one run, from the second second of its crowd to the last. Shares are from 0 to 1; seconds are
/// those in which people came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOutcome {
    /// Completed within the target, over what the origin could have completed.
    pub goodput: f64,
    /// Completed after the target, over the same.
    pub late: f64,
    /// Share of the origin's time that went into answers in time ([`flashweir_core::measure::useful`]);
    /// absent where the origin does not have one worker that only computes.
    pub useful: Option<f64>,
    /// 99th percentile of those who were not refused, milliseconds; who gave up or got an error counts with
    /// the whole patience. Absent when every request was refused.
    pub p99_admitted_ms: Option<f64>,
    /// Part of the gold requests that were not refused.
    pub gold_admitted: f64,
    /// Part of the gold requests completed within the target.
    pub gold_in_time: f64,
    /// Part of all requests that were asked to come back later.
    pub refused: f64,
    /// Part of all requests that people gave up waiting for.
    pub timed_out: f64,
    /// Part of all requests that broke in other ways.
    pub failed: f64,
    /// Seconds from the loss of capacity until goodput was at 90 % of what was left.
    pub back_after_loss_s: Option<f64>,
    /// Seconds from the return of capacity until goodput was at 90 % of it.
    pub back_after_return_s: Option<f64>,
    /// The load generator could not keep up: the run says little.
    pub saturated: bool,
}

impl ComparisonOutcome {
    /// Reads a run of `scene` on an origin of `capacity_rps`, whose time was `useful` to that share.
    #[must_use]
    pub fn of(load: &LoadResult, scene: &Scene, capacity_rps: f64, useful: Option<f64>) -> Self {
        let judged = scene.crowd_from_s() + 1..scene.length_s();
        let all = Sums::of(&load.totals, &judged);
        let gold = load.classes.get(GOLD).map(|gold| Sums::of(gold, &judged)).unwrap_or_default();
        let possible: f64 = judged.clone().map(|second| scene.capacity_share(second) * capacity_rps).sum();
        let back = |place: usize| {
            let from = scene.changes.get(place)?.at_s;
            let to = scene.changes.get(place + 1).map_or(scene.length_s(), |next| next.at_s);
            back_after_s(&load.totals.series, from..to, scene.capacity_share(from) * capacity_rps)
        };
        Self {
            goodput: all.goodput as f64 / possible,
            useful,
            late: (all.completed - all.goodput) as f64 / possible,
            p99_admitted_ms: admitted_ms(within(&load.totals.series, &judged), 0.99, PATIENCE_S),
            gold_admitted: 1.0 - gold.share(gold.refused),
            gold_in_time: gold.share(gold.goodput),
            refused: all.share(all.refused),
            timed_out: all.share(all.timed_out),
            failed: all.share(all.errors),
            back_after_loss_s: back(0),
            back_after_return_s: back(1),
            saturated: load.saturated,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    offered: u64,
    completed: u64,
    goodput: u64,
    refused: u64,
    timed_out: u64,
    errors: u64,
}

impl Sums {
    fn of(tally: &Tally, judged: &Range<u64>) -> Self {
        let seconds = within(&tally.series, judged);
        seconds.fold(Self::default(), |sum, second| Self {
            offered: sum.offered + second.offered,
            completed: sum.completed + second.completed,
            goodput: sum.goodput + second.goodput,
            refused: sum.refused + second.refused,
            timed_out: sum.timed_out + second.timed_out + second.abandoned,
            errors: sum.errors + second.errors,
        })
    }

    fn share(&self, part: u64) -> f64 {
        part as f64 / self.offered.max(1) as f64
    }
}

fn within<'a>(series: &'a [Second], judged: &'a Range<u64>) -> impl Iterator<Item = &'a Second> {
    series.iter().filter(|second| judged.contains(&second.second))
}

/// Seconds from the beginning of `span` to the first of two seconds in a row that have, together, 90 % of
/// what the origin can do; `None` if there are none.
fn back_after_s(series: &[Second], span: Range<u64>, capacity_rps: f64) -> Option<f64> {
    let wanted = BACK * capacity_rps * BACK_OVER_S as f64;
    let is_back = |from: u64| {
        let together = from..from + BACK_OVER_S;
        within(series, &together).map(|second| second.goodput as f64).sum::<f64>() >= wanted
    };
    (span.start..=span.end.saturating_sub(BACK_OVER_S))
        .find(|&from| is_back(from))
        .map(|from| (from - span.start) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u64, goodput: u64) -> Second {
        Second { second, offered: goodput, completed: goodput, goodput, ..Second::default() }
    }

    fn run(series: Vec<Second>) -> LoadResult {
        LoadResult { totals: Tally { series, ..Tally::default() }, ..LoadResult::default() }
    }

    /// Quiet, the crowd's first second and the time after the crowd are not judged.
    #[test]
    fn only_the_crowd_from_its_second_second_counts() {
        let scene = Scene::overload(3.0, 3);
        let mut series: Vec<Second> = (0..8).map(|number| second(number, 1_000)).collect();
        series[3] = Second { offered: 150, completed: 60, goodput: 45, refused: 60, ..second(3, 45) };
        series[4] =
            Second { offered: 50, completed: 40, goodput: 35, timed_out: 6, errors: 4, ..second(4, 35) };
        let outcome = ComparisonOutcome::of(&run(series), &scene, 50.0, Some(0.7));
        assert_eq!((outcome.goodput, outcome.late, outcome.useful), (0.8, 0.2, Some(0.7)));
        assert_eq!((outcome.refused, outcome.timed_out, outcome.failed), (0.3, 0.03, 0.02));
        assert_eq!((outcome.back_after_loss_s, outcome.back_after_return_s), (None, None));
    }

    #[test]
    fn lost_capacity_is_not_asked_for() {
        let scene = Scene::change(3);
        let third = |number| scene.capacity_share(number) < 1.0;
        let series = (0..12).map(|number| second(number, if third(number) { 20 } else { 60 })).collect();
        let outcome = ComparisonOutcome::of(&run(series), &scene, 60.0, None);
        assert!((outcome.goodput - 1.0).abs() < 1e-9, "{outcome:?}");
        assert_eq!((outcome.back_after_loss_s, outcome.back_after_return_s), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn the_way_back_is_counted_from_the_change() {
        let series: Vec<Second> =
            [50, 0, 1, 9, 9, 10].into_iter().zip(0..).map(|(good, at)| second(at, good)).collect();
        assert_eq!(back_after_s(&series, 1..6, 10.0), Some(2.0));
        assert_eq!(back_after_s(&series, 1..4, 10.0), None);
        assert_eq!(back_after_s(&series, 1..1, 10.0), None);
    }

    #[test]
    fn gold_is_told_apart() {
        let mut load = run(vec![second(3, 50)]);
        let gold = vec![Second { offered: 20, completed: 18, goodput: 17, refused: 1, ..second(3, 17) }];
        load.classes.insert("gold".to_owned(), Tally { series: gold, ..Tally::default() });
        let outcome = ComparisonOutcome::of(&load, &Scene::overload(3.0, 2), 50.0, None);
        assert_eq!((outcome.gold_admitted, outcome.gold_in_time), (0.95, 0.85));
    }
}

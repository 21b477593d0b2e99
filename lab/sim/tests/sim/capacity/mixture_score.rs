//! Goodput of a mixture behind the sentry over that behind the best fixed limit for it, and requests refused
//! while there is room.
//!
//! The best fixed limit is one number for all requests in flight, found for each cell over a ladder and all
//! seeds together; it knows the cell, has the sentry's queue but for its length, and treats short and slow
//! requests alike, so a rule that distinguishes them can do better than it. Goodput counts pages, and slow
//! requests where they can be in time, within the target of their arrival; useful work weighs them by the
//! processor time that their class takes in the mean.

use super::mixture::{Mixture, PAGES, SLOW};
use flashweir_admission::sentry::Learning;
use flashweir_core::measure::Histogram;
use flashweir_sim::request::{CalmReport, Counts, RunOutcome};
use std::ops::Range;

/// Results of one cell, all seeds together.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    /// Goodput over the best fixed limit's.
    pub(crate) share: f64,
    /// The same in the worst seed.
    pub(crate) worst_share: f64,
    /// Work of requests in time, over the best fixed limit's for that.
    pub(crate) useful_share: f64,
    /// Slow requests completed, polls among them, over the best fixed limit's.
    pub(crate) slow_share: f64,
    /// The best fixed limit; none: no limit.
    pub(crate) best: Option<u32>,
    /// Goodput per second behind it.
    pub(crate) best_rps: f64,
    /// Pages refused in quiet, and offered.
    pub(crate) pages_in_quiet: (u64, u64),
    /// Slow requests and polls refused in quiet, and offered.
    pub(crate) slow_in_quiet: (u64, u64),
    /// 95th percentile of the pages over the target.
    pub(crate) p95_over_target: f64,
    /// Windows of calm, broken ones, and requests refused in those.
    pub(crate) calm: (usize, usize, u64),
}

impl Score {
    /// Runs the cell with each seed.
    pub(crate) fn of(cell: &Mixture, seeds: &[u64]) -> Self {
        let ours: Vec<RunOutcome> =
            seeds.iter().map(|seed| cell.run_checked(None, Learning::SHIPPED, *seed)).collect();
        Self::compare(cell, &ours, &Known::best(cell, seeds))
    }

    /// Compares runs, one for each seed, with the best fixed limit.
    pub(crate) fn compare(cell: &Mixture, ours: &[RunOutcome], known: &Known) -> Self {
        let bins = cell.scored_bins();
        let goodput: Vec<u64> = ours.iter().map(|run| goodput_of(cell, run)).collect();
        let slow_done: u64 = ours.iter().map(|run| slow(run, &bins).completed).sum();
        let useful_s: f64 = ours.iter().map(|run| useful_s(cell, run)).sum();
        let worst_share = goodput.iter().zip(&known.goodput).map(|(one, known)| ratio(*one, *known));
        let of_best: u64 = known.goodput.iter().sum();
        let quiet = cell.quiet_bins();
        let mut latency_us = Histogram::new();
        ours.iter().for_each(|run| latency_us.add(&run.classes[PAGES].latency_us));
        let refused = |count: fn(&RunOutcome, &Range<usize>) -> Counts| {
            ours.iter()
                .map(|run| count(run, &quiet))
                .fold((0, 0), |all, counts| (all.0 + counts.shed_total(), all.1 + counts.offered))
        };
        let calm: Vec<&CalmReport> = ours.iter().filter_map(|run| run.calm.as_ref()).collect();
        Self {
            share: ratio(goodput.iter().sum(), of_best),
            worst_share: worst_share.fold(f64::INFINITY, f64::min),
            useful_share: if known.useful_s > 0.0 { useful_s / known.useful_s } else { 1.0 },
            slow_share: ratio(slow_done, known.slow_completed),
            best: known.limit,
            best_rps: of_best as f64 / cell.scored_s().1 / ours.len() as f64,
            pages_in_quiet: refused(pages),
            slow_in_quiet: refused(slow),
            p95_over_target: latency_us.quantile(0.95).unwrap_or(0) as f64 / 1e6 / cell.target_s,
            calm: (
                calm.iter().map(|calm| calm.calm).sum(),
                calm.iter().map(|calm| calm.broken.len()).sum(),
                calm.iter().flat_map(|calm| &calm.refused).sum(),
            ),
        }
    }
}

/// The best fixed limits, by goodput and by useful work.
pub(crate) struct Known {
    limit: Option<u32>,
    /// Of each seed.
    goodput: Vec<u64>,
    slow_completed: u64,
    /// Seconds of work, of another limit perhaps.
    useful_s: f64,
}

impl Known {
    /// The fixed limit with the most goodput in all seeds together: the best of the ladder, and of what lies
    /// between it and its neighbours.
    pub(crate) fn best(cell: &Mixture, seeds: &[u64]) -> Self {
        let with = |limit: Option<u32>| -> Known {
            let runs: Vec<RunOutcome> = seeds.iter().map(|seed| cell.run_with_limit(limit, *seed)).collect();
            let bins = cell.scored_bins();
            Known {
                limit,
                goodput: runs.iter().map(|run| goodput_of(cell, run)).collect(),
                slow_completed: runs.iter().map(|run| slow(run, &bins).completed).sum(),
                useful_s: runs.iter().map(|run| useful_s(cell, run)).sum(),
            }
        };
        let total = |known: &Known| known.goodput.iter().sum::<u64>();
        let limits = cell.limits();
        let mut tried: Vec<Known> = limits.iter().map(|limit| with(*limit)).collect();
        // Of equal ones the first.
        let at = (0..tried.len()).rev().max_by_key(|at| total(&tried[*at])).unwrap_or(0);
        if let Some(found) = limits[at] {
            let around = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
            for neighbour in around.filter_map(|at| limits.get(at).copied().flatten()) {
                let between = (f64::from(found) * f64::from(neighbour)).sqrt().round() as u32;
                tried.push(with(Some(between)));
            }
        }
        let useful_s = tried.iter().map(|known| known.useful_s).fold(0.0, f64::max);
        let best = tried.into_iter().rev().max_by_key(total).expect("a limit");
        Known { useful_s, ..best }
    }
}

/// Seconds of work of requests that were in time, by the means of their classes.
fn useful_s(cell: &Mixture, run: &RunOutcome) -> f64 {
    let bins = cell.scored_bins();
    let slow_s = if cell.slow_counts() { cell.slow_work_s() } else { 0.0 };
    pages(run, &bins).goodput as f64 * cell.fast_s() + of_class(run, SLOW, &bins).goodput as f64 * slow_s
}

fn goodput_of(cell: &Mixture, run: &RunOutcome) -> u64 {
    let bins = cell.scored_bins();
    let slow = if cell.slow_counts() { of_class(run, SLOW, &bins).goodput } else { 0 };
    pages(run, &bins).goodput + slow
}

fn pages(run: &RunOutcome, bins: &Range<usize>) -> Counts {
    of_class(run, PAGES, bins)
}

/// Slow requests and polls.
fn slow(run: &RunOutcome, bins: &Range<usize>) -> Counts {
    let mut counts = Counts::default();
    (SLOW..run.classes.len()).for_each(|class| counts.add(&of_class(run, class, bins)));
    counts
}

fn of_class(run: &RunOutcome, class: usize, bins: &Range<usize>) -> Counts {
    let mut counts = Counts::default();
    run.classes[class].bins.iter().take(bins.end).skip(bins.start).for_each(|bin| counts.add(bin));
    counts
}

fn ratio(ours: u64, known: u64) -> f64 {
    if known == 0 { 1.0 } else { ours as f64 / known as f64 }
}

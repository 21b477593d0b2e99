//! Score of the sentry in a cell of the matrix against an oracle that knows the origin and has the same
//! queue.

use super::cell::{BIN_MS, Cell, at, bin};
use flashweir_core::measure::Histogram;
use flashweir_sim::request::{Counts, RunOutcome};
use std::ops::Range;

/// Score of the sentry, in all crowds of a cell together.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    /// Its goodput over the oracle's.
    pub(crate) share: f64,
    /// The same in the worst of the crowds.
    pub(crate) worst_share: f64,
    /// Its throughput over the oracle's: what counts where the target cannot be met.
    pub(crate) throughput_share: f64,
    /// The first, leaving the first second of the crowd and after each change out, and who came within a
    /// target of its end.
    pub(crate) settled_share: f64,
    /// The oracle's goodput per second.
    pub(crate) known_rps: f64,
    /// The 95th percentile of all responses over the target.
    pub(crate) p95_over_target: f64,
    /// The 99th.
    pub(crate) p99_over_target: f64,
    /// The longest that it took after a change (or the crowd's beginning) to nine tenths of the goodput known
    /// to be possible, seconds.
    pub(crate) recovery_s: f64,
    /// Requests refused before the crowd came, of how many.
    pub(crate) refused_in_quiet: (u64, u64),
    /// The share of the crowd, from its fourth second on, in which the target was reported infeasible.
    pub(crate) reported_infeasible: f64,
}

impl Score {
    /// Runs the cell with each seed.
    pub(crate) fn of(cell: &Cell, seeds: &[u64]) -> Self {
        let ours: Vec<RunOutcome> = seeds.iter().map(|seed| cell.run(*seed)).collect();
        Self::compare(cell, &ours, &cell.known(seeds))
    }

    /// Runs of the sentry, and of the oracle.
    pub(crate) fn compare(cell: &Cell, ours: &[RunOutcome], known: &[RunOutcome]) -> Self {
        let (begin_s, length_s) = cell.crowd_s();
        let crowd = cell.crowd_bins();
        let (mine, theirs) = (sum(ours, crowd.clone()), sum(known, crowd.clone()));
        let worst_share = ours.iter().zip(known).map(|(one, known)| {
            let (one, known) = (one.began_within(crowd.clone()), known.began_within(crowd.clone()));
            ratio(one.goodput, known.goodput)
        });
        let (mut settled, mut possible) = (0, 0);
        let changes = cell.changes_s();
        for (index, change) in changes.iter().enumerate() {
            // Who waits when the crowd goes is answered after it: that is the queue's length, not the limit.
            let end = changes.get(index + 1).copied().unwrap_or(begin_s + length_s - cell.target_s);
            settled += sum(ours, bin(change + 1.0)..bin(end)).goodput;
            possible += sum(known, bin(change + 1.0)..bin(end)).goodput;
        }
        let mut latency_us = Histogram::new();
        let classes = ours.iter().flat_map(|outcome| &outcome.classes);
        classes.for_each(|class| latency_us.add(&class.latency_us));
        let over_target = |share| latency_us.quantile(share).unwrap_or(0) as f64 / 1e6 / cell.target_s;
        let quiet = sum(ours, 0..crowd.start);
        let runs = ours.len() as f64;
        let reported_s: f64 = ours.iter().map(|outcome| reported_s(cell, outcome)).sum();
        Self {
            share: ratio(mine.goodput, theirs.goodput),
            worst_share: worst_share.fold(f64::INFINITY, f64::min),
            throughput_share: ratio(mine.completed, theirs.completed),
            settled_share: ratio(settled, possible),
            known_rps: theirs.goodput as f64 / length_s / runs,
            p95_over_target: over_target(0.95),
            p99_over_target: over_target(0.99),
            recovery_s: recovery_s(cell, ours, known),
            refused_in_quiet: (quiet.shed_total(), quiet.offered),
            reported_infeasible: reported_s / (length_s - 3.0) / runs,
        }
    }
}

fn sum(runs: &[RunOutcome], bins: Range<usize>) -> Counts {
    let mut all = Counts::default();
    runs.iter().for_each(|outcome| all.add(&outcome.began_within(bins.clone())));
    all
}

fn ratio(ours: u64, known: u64) -> f64 {
    ours as f64 / (known as f64).max(1.0)
}

/// For how long the target was reported infeasible, from the crowd's fourth second on.
fn reported_s(cell: &Cell, outcome: &RunOutcome) -> f64 {
    let (begin_s, length_s) = cell.crowd_s();
    let (from, end) = (at(begin_s + 3.0), at(begin_s + length_s));
    let mut reported_s = 0.0;
    for (index, taken) in outcome.limits.iter().enumerate() {
        let next = outcome.limits.get(index + 1).map_or(end, |next| next.at.min(end));
        if taken.plan.explanation.target_infeasible {
            reported_s += next.saturating_since(taken.at.max(from)).as_secs_f64();
        }
    }
    reported_s
}

fn recovery_s(cell: &Cell, ours: &[RunOutcome], known: &[RunOutcome]) -> f64 {
    let (begin_s, length_s) = cell.crowd_s();
    let changes = cell.changes_s();
    let goodput_rps = sum(known, cell.crowd_bins()).goodput as f64 / length_s;
    let width = bin((40.0 / goodput_rps.max(1e-3)).max(0.5)).max(1);
    let mut longest_s = 0.0_f64;
    for (index, change) in changes.iter().enumerate() {
        let end = bin(changes.get(index + 1).copied().unwrap_or(begin_s + length_s));
        let is_there = |from: usize| {
            let bins = from..(from + width).min(end);
            sum(ours, bins.clone()).goodput as f64 >= 0.9 * sum(known, bins).goodput as f64
        };
        let start = bin(*change);
        let found = (start..end).find(|from| is_there(*from)).unwrap_or(end);
        longest_s = longest_s.max((found - start) as f64 * BIN_MS as f64 / 1e3);
    }
    longest_s
}

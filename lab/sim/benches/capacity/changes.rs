//! Time until a change of the origin is found, counted in completions at the rate that there is after it. A
//! loss to a third is found with the first request after which the next twenty that are completed are in time
//! as often, but for a tenth, as behind the best fixed limit; three times the servers, when the limit is nine
//! tenths of their number.

use crate::cell::{Cell, Change, Spread, at};
use crate::threads;
use flashweir_core::Instant;
use flashweir_sim::request::{Counts, RunOutcome};
use std::collections::BTreeMap;
use std::ops::Range;

/// A loss to a third: bounds in completions, of regular requests and of exponential ones.
const LOSS_COMPLETIONS: [f64; 2] = [6.0, 20.0];
/// Three times as many servers: bounds in completions, and in response times.
const GAIN: [f64; 2] = [30.0, 4.0];

/// Completions that tell whether answers are in time.
const SOME: u64 = 20;

/// Time that it took in one run.
#[derive(Clone, Copy)]
struct Found {
    completions: f64,
    response_times: f64,
}

/// Runs the cells in which the origin changes, and prints a row of a Markdown table for each change and
/// spread of work.
pub(crate) fn print(cells: &[Cell], seeds: &[u64]) {
    let mut rows: BTreeMap<String, (Vec<Option<Found>>, Cell)> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.is_feasible()) {
        let Some(changed) = changed(cell) else { continue };
        let found = threads::on_all(seeds.to_vec(), |seed| find(cell, seed, &changed));
        let key = format!("{:?} | {:?} | {}", cell.change, cell.spread, cell.work_ms);
        rows.entry(key).or_insert_with(|| (Vec::new(), *cell)).0.extend(found);
    }
    println!(
        "| change | work | ms | runs | median, completions | nine in ten within, completions | never | within the bar |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (key, (found, cell)) in rows {
        let mut completions: Vec<f64> =
            found.iter().map(|found| found.map_or(f64::INFINITY, |found| found.completions)).collect();
        completions.sort_by(f64::total_cmp);
        let at = |share: f64| completions[((completions.len() - 1) as f64 * share).round() as usize];
        let within = found.iter().flatten().filter(|found| found.is_within_the_bar(&cell)).count();
        println!(
            "| {key} | {} | {:.0} | {:.0} | {} | {:.2} |",
            found.len(),
            at(0.5),
            at(0.9),
            found.iter().filter(|found| found.is_none()).count(),
            within as f64 / found.len() as f64,
        );
    }
}

impl Found {
    fn is_within_the_bar(&self, cell: &Cell) -> bool {
        match (cell.change, cell.spread) {
            (Change::MoreCores, _) => self.completions <= GAIN[0] || self.response_times <= GAIN[1],
            (_, Spread::Constant) => self.completions <= LOSS_COMPLETIONS[0],
            _ => self.completions <= LOSS_COMPLETIONS[1],
        }
    }
}

/// The moments between which the origin is another one, and what it can do then; none for a cell in which it
/// stays as it is.
fn changed(cell: &Cell) -> Option<(Range<Instant>, f64)> {
    let factor = match cell.change {
        Change::FewerCores => f64::from((cell.cores / 3).max(1)) / f64::from(cell.cores),
        Change::Slower => 1.0 / 3.0,
        Change::MoreCores => 3.0,
        _ => return None,
    };
    let (changes_s, (begin_s, length_s)) = (cell.changes_s(), cell.crowd_s());
    let end_s = changes_s.get(2).copied().unwrap_or(begin_s + length_s);
    Some((at(changes_s[1])..at(end_s), cell.capacity_rps() * factor))
}

fn find(cell: &Cell, seed: u64, (during, rate_rps): &(Range<Instant>, f64)) -> Option<Found> {
    let outcome = cell.run(seed);
    let took_s = match cell.change {
        Change::MoreCores => limit_found_s(cell, &outcome, during)?,
        _ => in_time_again_s(&outcome, &cell.known(&[seed])[0], during)?,
    };
    let before = outcome.limits.iter().rev().find(|taken| taken.at < during.start)?;
    let response_s = before.plan.explanation.in_flight / before.plan.explanation.completed_rps;
    Some(Found { completions: took_s * rate_rps, response_times: took_s / response_s })
}

/// To the limit that is enough for three times the servers, seconds; none where it never is.
fn limit_found_s(cell: &Cell, outcome: &RunOutcome, during: &Range<Instant>) -> Option<f64> {
    let is_enough = |limit: u32| f64::from(limit) >= 0.9 * 3.0 * f64::from(cell.cores);
    let before = outcome.limits.iter().rev().find(|taken| taken.at < during.start)?;
    let after = outcome.limits.iter().filter(|taken| during.contains(&taken.at));
    let moves = after.map(|taken| (taken.plan.limit, taken.at.saturating_since(during.start).as_secs_f64()));
    std::iter::once((before.plan.limit, 0.0))
        .chain(moves)
        .find(|(limit, _)| is_enough(*limit))
        .map(|(_, at_s)| at_s)
}

/// To the first request after which those who are answered are in time as often as behind the best fixed
/// limit, seconds; none where that is never.
fn in_time_again_s(ours: &RunOutcome, known: &RunOutcome, during: &Range<Instant>) -> Option<f64> {
    let bin_s = ours.bin.as_secs_f64();
    let bin = |at: Instant| (at.saturating_since(Instant::ZERO).as_secs_f64() / bin_s).round() as usize;
    let (start, end) = (bin(during.start), bin(during.end));
    let in_time = |counts: Counts| counts.goodput as f64 / counts.completed as f64;
    let wanted = 0.9 * in_time(known.began_within(start..end));
    let next = |from: usize| {
        let mut counts = (from + 1..=end).map(|to| ours.began_within(from..to));
        counts.find(|counts| counts.completed >= SOME).map(in_time)
    };
    (start..end)
        .find(|from| next(*from).is_some_and(|share| share >= wanted))
        .map(|from| (from - start) as f64 * bin_s)
}

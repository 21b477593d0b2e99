//! Calm windows of a run, and the broken ones among them.

use super::{CalmCheck, EXPOSURE_LEAST, Evidence, FULL_USE, LOOK_BACK, TOLERANCE, WINDOW};
use crate::request::fault::FaultKind;
use crate::request::server::Level;
use crate::request::{Discipline, Scenario};
use flashweir_core::{Duration, Instant};
use std::ops::Range;

/// Calm windows of a run; they slide by one bin of the scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalmReport {
    /// Calm windows.
    pub calm: usize,
    /// Of these, windows in which the sentry refused requests although the origin was not at full use, in
    /// their order.
    pub broken: Vec<BrokenWindow>,
    /// Requests refused in any of the broken windows while the origin was not at full use, each counted once,
    /// by class.
    pub refused: Vec<u64>,
}

/// A calm window in which the sentry refused requests.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenWindow {
    /// Its beginning and its end.
    pub during: Range<Instant>,
    /// Requests refused while the origin was not at full use, by class.
    pub refused: Vec<u64>,
    /// Completions expected within the window (E), by class.
    pub expected: Vec<f64>,
    /// Completions within the window (D), by class.
    pub completed: Vec<u64>,
}

impl CalmReport {
    /// Seconds that lie in broken windows.
    #[must_use]
    pub fn broken_s(&self) -> f64 {
        let mut end = Instant::ZERO;
        let mut broken = Duration::ZERO;
        for window in &self.broken {
            broken += window.during.end.saturating_since(window.during.start.max(end));
            end = window.during.end;
        }
        broken.as_secs_f64()
    }

    /// Broken windows in which enough was expected to judge them by themselves.
    pub fn exposed(&self) -> impl Iterator<Item = &BrokenWindow> {
        self.broken.iter().filter(|window| window.expected.iter().sum::<f64>() >= EXPOSURE_LEAST)
    }

    /// Description of the broken windows, for a test; none where there is none.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let first = self.broken.first()?;
        Some(format!(
            "{} of {} calm windows broken, {:?} requests refused by class; the first window: {first:?}",
            self.broken.len(),
            self.calm,
            self.refused
        ))
    }
}

impl CalmCheck {
    /// Judges the run: `levels` say how busy the origin was in each bin.
    pub(in crate::request) fn report(&self, scenario: &Scenario, levels: &[Level]) -> CalmReport {
        let bins = self.bins.first().map_or(0, Vec::len).min(levels.len());
        let (width, look_back) = (bins_of(WINDOW, scenario.bin), bins_of(LOOK_BACK, scenario.bin));
        let sums: Vec<Sums> = self.bins.iter().map(|bins| Sums::of(bins)).collect();
        let refused = self.refused_with_room(scenario, levels);
        let mut report = CalmReport { refused: vec![0; self.bins.len()], ..CalmReport::default() };
        let mut counted_to = 0;
        for end in width..=bins {
            let window = end - width..end;
            if !is_calm(&sums, window.clone(), look_back) {
                continue;
            }
            report.calm += 1;
            let of_window: Vec<u64> = sum_of(&refused, window.clone());
            if of_window.iter().all(|count| *count == 0) {
                continue;
            }
            let fresh = sum_of(&refused, window.start.max(counted_to)..end);
            report.refused.iter_mut().zip(fresh).for_each(|(all, fresh)| *all += fresh);
            counted_to = end;
            let at = |bin: usize| Instant::ZERO + scenario.bin * bin as u32;
            report.broken.push(BrokenWindow {
                during: at(window.start)..at(end),
                refused: of_window,
                expected: sums.iter().map(|sums| sums.expected_in(window.clone())).collect(),
                completed: sums.iter().map(|sums| sums.completed_in(window.clone())).collect(),
            });
        }
        report
    }

    /// Refusals by class and bin, without those of an origin at full use.
    fn refused_with_room(&self, scenario: &Scenario, levels: &[Level]) -> Vec<Vec<u64>> {
        let spans = FULL_USE_OVER.map(|time| bins_of(time, scenario.bin));
        let is_full_over = |bin: usize, span: usize| {
            is_at_full_use(scenario, levels, (bin + 1).saturating_sub(span)..bin + 1)
        };
        let is_full: Vec<bool> =
            (0..levels.len()).map(|bin| spans.iter().any(|span| is_full_over(bin, *span))).collect();
        let of_class = |bins: &Vec<Evidence>| {
            bins.iter().zip(&is_full).map(|(bin, full)| u64::from(bin.refused) * u64::from(!full)).collect()
        };
        self.bins.iter().map(of_class).collect()
    }
}

/// Sums over the bins before each.
struct Sums {
    expected: Vec<f64>,
    completed: Vec<u64>,
}

impl Sums {
    fn of(bins: &[Evidence]) -> Self {
        let (mut expected, mut completed) = (vec![0.0], vec![0]);
        for (index, bin) in bins.iter().enumerate() {
            expected.push(expected[index] + bin.expected);
            completed.push(completed[index] + u64::from(bin.completed));
        }
        Self { expected, completed }
    }

    fn expected_in(&self, bins: Range<usize>) -> f64 {
        self.expected[bins.end] - self.expected[bins.start]
    }

    fn completed_in(&self, bins: Range<usize>) -> u64 {
        self.completed[bins.end] - self.completed[bins.start]
    }

    /// Returns true if completions come as expected in the window, or in the shortest time up to its end that
    /// says so; none where no time does.
    fn is_as_expected(&self, window: Range<usize>, look_back: usize) -> Option<bool> {
        let wanted = self.expected[window.end] - EXPOSURE_LEAST;
        // The last start from which on enough is expected.
        let start = self.expected.partition_point(|before| *before <= wanted).checked_sub(1)?;
        if start + look_back < window.end {
            return None;
        }
        let judged = start.min(window.start)..window.end;
        let (expected, completed) = (self.expected_in(judged.clone()), self.completed_in(judged));
        Some((completed as f64 / expected - 1.0).abs() <= TOLERANCE)
    }
}

fn is_calm(sums: &[Sums], window: Range<usize>, look_back: usize) -> bool {
    let mut judged = sums.iter().filter_map(|sums| sums.is_as_expected(window.clone(), look_back)).peekable();
    judged.peek().is_some() && judged.all(|is_as_expected| is_as_expected)
}

fn sum_of(counts: &[Vec<u64>], bins: Range<usize>) -> Vec<u64> {
    counts.iter().map(|of_class| of_class[bins.clone()].iter().sum()).collect()
}

/// Returns true if the processors or the workers were busy to [`FULL_USE`] in the mean of these bins.
fn is_at_full_use(scenario: &Scenario, levels: &[Level], bins: Range<usize>) -> bool {
    let span = bins.len() as f64 * scenario.bin.as_nanos() as f64;
    let busy: u64 = levels[bins.clone()].iter().map(|level| level.busy_nanos).sum();
    let in_service: u64 = levels[bins.clone()].iter().map(|level| level.in_service_nanos).sum();
    let end = Instant::ZERO + scenario.bin * bins.end as u32;
    let server = &scenario.server;
    let processors = f64::from(processors(scenario, end));
    let places = match (server.workers, server.discipline) {
        (Some(workers), Discipline::Shared) => f64::from(workers.get()),
        (Some(workers), Discipline::FirstCome) => f64::from(workers.get()).min(processors),
        (None, Discipline::FirstCome) => processors,
        (None, Discipline::Shared) => f64::INFINITY,
    };
    busy as f64 >= FULL_USE * processors * span || in_service as f64 >= FULL_USE * places * span
}

/// Processors that there are at a moment; of several faults the last to begin counts.
fn processors(scenario: &Scenario, at: Instant) -> u32 {
    let faults = scenario.faults.iter().filter(|fault| fault.during.start < at && at <= fault.during.end);
    let changed = faults.filter_map(|fault| match fault.kind {
        FaultKind::Processors(processors) => Some((fault.during.start, processors)),
        _ => None,
    });
    let latest = changed.max_by_key(|(begins, _)| *begins);
    latest.map_or(scenario.server.processors, |(_, processors)| processors).get()
}

/// Bins that a time takes, at least one.
fn bins_of(time: Duration, bin: Duration) -> usize {
    (time.as_nanos() / bin.as_nanos().max(1)).max(1) as usize
}

/// Times before a refusal over which the origin's use is averaged: a request is refused at once, or after it
/// has queued.
const FULL_USE_OVER: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

//! The measurement window: what arrived and how responses fared lately.
//!
//! Counts and responses have windows of their own. Counts cover at least a second (or one interval), enough
//! for a rate. Responses cover the *shortest* recent stretch that holds thirty of them and is an interval
//! long: the fastest tenth of a longer stretch would still be the responses from before the crowd, and the
//! alarm would wait for them to leave (separate windows: the paper's own future work). After the ceiling moves, only
//! responses whose request was admitted since count: a decision must not be judged by what preceded it.

use super::latency_reference::Score;
use alloc::{collections::VecDeque, vec::Vec};
use flashweir_core::{Duration, Instant, limits::RESPONSES_PER_WINDOW};
use flashweir_measure::fastest::fastest;

/// Fewer responses than this are no measurement: a tenth of fewer is one or two.
pub(super) const RESPONSES_MIN: usize = 30;
/// The canaries: the fastest tenth (p of NEWS §4.1).
const FASTEST: f64 = 0.10;
/// Counts are averaged over at least this long.
const COUNT_SPAN: Duration = Duration::from_secs(1);
/// Responses older than this (or one interval) say nothing about now; at one request a second it still
/// gathers thirty.
const RESPONSE_AGE_MAX: Duration = Duration::from_secs(60);

/// Sliding counts and scored responses.
#[derive(Debug, Default)]
pub(super) struct Window {
    interval: Duration,
    ticks: VecDeque<Counts>,
    open: Counts,
    responses: VecDeque<ScoredResponse>,
    scratch: Vec<Score>,
    scratch_rates: Vec<f32>,
}

/// Sums of the gates' samples over one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) offered: u64,
    pub(super) unique_offered: u64,
    pub(super) admitted: u64,
    pub(super) completed: u64,
}

/// A response as kept in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredResponse {
    pub(super) observed: Instant,
    pub(super) started: Instant,
    pub(super) rate_bytes_per_s: Option<f32>,
    pub(super) score: Option<Score>,
}

/// One evaluation's view of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measurement {
    /// Seconds the counts cover.
    pub(super) span_s: f64,
    pub(super) offered_rps: f64,
    pub(super) unique_offered_rps: f64,
    /// What reached the service.
    pub(super) admitted_rps: f64,
    pub(super) completed_rps: f64,
    /// Rates of the fastest tenth, when at least a tenth of responses (and thirty) are large enough.
    pub(super) fast_rate: Option<Fastest>,
    /// Latency scores of the fastest tenth, when at least thirty responses are scored.
    pub(super) fast_score: Option<Fastest>,
    /// Mean time the fastest tenth waited beyond the usual, seconds: the backlog they met.
    pub(super) excess_s: f64,
    /// Responses looked at.
    pub(super) responses: usize,
}

/// A signal: what the fastest tenth say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fastest {
    /// Their mean.
    pub(super) mean: f64,
    /// How far chance alone moves that mean, as a variance: other responses of the same service would have had another.
    pub(super) chance: f64,
}

impl Fastest {
    /// Of `fastest`, the best [`FASTEST`] of all; not empty. O(fastest).
    fn of<T>(fastest: &[T], speed: impl Fn(&T) -> f32) -> Self {
        let speeds = || fastest.iter().map(|item| f64::from(speed(item)));
        let count = fastest.len() as f64;
        let mean = speeds().sum::<f64>() / count;
        let variance = speeds().map(|speed| (speed - mean) * (speed - mean)).sum::<f64>() / count;
        let least = speeds().fold(f64::INFINITY, f64::min);
        // The asymptotic variance of a mean above a quantile: theirs, and that of the quantile that chose them.
        Self { mean, chance: (variance + (1.0 - FASTEST) * (mean - least) * (mean - least)) / count }
    }
}

impl Measurement {
    /// Whether there is any signal to judge by.
    pub(super) fn is_valid(&self) -> bool {
        self.fast_rate.is_some() || self.fast_score.is_some()
    }

    /// Much was let in and nothing came back: no signal, and yet the worst there is.
    pub(super) fn is_stalled(&self) -> bool {
        self.completed_rps == 0.0 && self.admitted_rps * self.span_s >= RESPONSES_MIN as f64
    }
}

impl Window {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, ..Self::default() }
    }

    /// Adds to the open tick.
    pub(super) fn count(&mut self, counts: Counts) {
        self.open.offered += counts.offered;
        self.open.unique_offered += counts.unique_offered;
        self.open.admitted += counts.admitted;
        self.open.completed += counts.completed;
    }

    /// Adds a response; the oldest goes when [`RESPONSES_PER_WINDOW`] are kept.
    pub(super) fn push(&mut self, response: ScoredResponse) {
        if self.responses.len() == RESPONSES_PER_WINDOW {
            self.responses.pop_front();
        }
        self.responses.push_back(response);
    }

    /// Ends the open tick at `now` and measures: responses started before `evidence_from` are left out.
    pub(super) fn close(&mut self, now: Instant, evidence_from: Instant) -> Measurement {
        self.open.to = now;
        self.ticks.push_back(self.open);
        self.open = Counts { from: now, to: now, ..Counts::default() };
        let count_span = self.interval.max(COUNT_SPAN);
        while self.ticks.front().is_some_and(|tick| now.saturating_since(tick.to) >= count_span) {
            self.ticks.pop_front();
        }
        let age_max = self.interval.max(RESPONSE_AGE_MAX);
        while self.responses.front().is_some_and(|old| now.saturating_since(old.observed) > age_max) {
            self.responses.pop_front();
        }
        self.measure(now, evidence_from)
    }

    fn measure(&mut self, now: Instant, evidence_from: Instant) -> Measurement {
        let from = self.ticks.front().map_or(now, |tick| tick.from);
        let span_s = now.saturating_since(from).as_secs_f64();
        let per_second = |count: fn(&Counts) -> u64| {
            let total = self.ticks.iter().map(count).sum::<u64>();
            if span_s > 0.0 { total as f64 / span_s } else { 0.0 }
        };
        let (offered_rps, unique_offered_rps) = (per_second(|c| c.offered), per_second(|c| c.unique_offered));
        let (admitted_rps, completed_rps) = (per_second(|c| c.admitted), per_second(|c| c.completed));
        let responses = self.gather(now, evidence_from);
        let large_enough =
            self.scratch_rates.len() >= RESPONSES_MIN && self.scratch_rates.len() * 10 >= responses;
        let fast_rate = large_enough
            .then(|| Fastest::of(fastest(&mut self.scratch_rates, FASTEST, |&rate| rate), |&rate| rate));
        let scored = self.scratch.len() >= RESPONSES_MIN;
        let canaries = if scored { fastest(&mut self.scratch, FASTEST, |score| score.relative) } else { &[] };
        let excess_s = canaries.iter().map(|score| f64::from(score.excess_s)).sum::<f64>();
        Measurement {
            span_s,
            offered_rps,
            unique_offered_rps,
            admitted_rps,
            completed_rps,
            fast_rate,
            fast_score: scored.then(|| Fastest::of(canaries, |score| score.relative)),
            excess_s: excess_s / canaries.len().max(1) as f64,
            responses,
        }
    }

    /// Collects the newest responses until there are enough and they span an interval; returns how many.
    fn gather(&mut self, now: Instant, evidence_from: Instant) -> usize {
        self.scratch.clear();
        self.scratch_rates.clear();
        let mut looked_at = 0;
        for response in self.responses.iter().rev() {
            let enough = self.scratch.len().max(self.scratch_rates.len()) >= RESPONSES_MIN;
            if enough && now.saturating_since(response.observed) >= self.interval {
                break;
            }
            if response.started >= evidence_from {
                looked_at += 1;
                self.scratch.extend(response.score);
                self.scratch_rates.extend(response.rate_bytes_per_s);
            }
        }
        looked_at
    }
}

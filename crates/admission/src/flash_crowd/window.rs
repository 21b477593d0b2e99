//! The measurement window: what arrived and how responses fared lately.
//!
//! Counts and responses have separate windows. Counts cover at least a second (or one interval), enough for a
//! rate. Responses cover the *shortest* recent stretch that holds thirty of them and is an interval long: the
//! fastest tenth of a longer stretch would still be the responses from before the crowd, and the alarm would
//! wait for them to leave (separate windows: the paper's own future work). After the ceiling moves, only
//! responses whose request was admitted since count: a decision must not be judged by what preceded it.

use super::latency_reference::Score;
use super::sample::Counted;
use alloc::{collections::VecDeque, vec::Vec};
use flashweir_core::measure::fastest::{descending, fastest_count};
use flashweir_core::{Duration, Instant, limits::CELLS_PER_WINDOW};

/// Fewer responses than this are no measurement: a tenth of fewer is one or two.
pub(super) const RESPONSES_MIN: usize = 30;
/// Part of what goes in. While less than it comes out, requests wait behind what went in before.
pub(super) const FLOWS_FROM: f64 = 0.5;
/// The canaries: the fastest tenth (p of NEWS §4.1).
const FASTEST: f64 = 0.10;
/// The fewest latest responses that are judged: in calm the best of five is seldom far from the usual.
const LATEST_MIN: usize = 5;
/// Counts are averaged over at least this long.
pub(super) const COUNT_SPAN: Duration = Duration::from_secs(1);
/// Responses older than this (or one interval) say nothing about now; at one request a second it still
/// gathers thirty.
const RESPONSE_AGE_MAX: Duration = Duration::from_secs(60);

/// Sliding counts and scored responses.
#[derive(Debug, Default)]
pub(super) struct Window {
    interval: Duration,
    ticks: VecDeque<Counts>,
    open: Counts,
    responses: VecDeque<Responses>,
    scores: Speeds,
    rates: Speeds,
    latest_score: Option<f64>,
}

/// Sums of the gates' samples over one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) offered: u64,
    pub(super) unique_offered: u64,
    pub(super) admitted: u64,
    pub(super) entered: u64,
    pub(super) handed_over: u64,
    pub(super) completed: u64,
    pub(super) unfinished: u64,
}

/// Responses that are alike, as kept in the window.
#[derive(Clone, Copy, Debug)]
struct Responses {
    observed: Instant,
    /// Earliest time at which their requests were received.
    started: Instant,
    count: u32,
    value: ResponseValue,
}

/// Known value of a response. A response with both is in the window twice.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResponseValue {
    /// Its transfer rate, bytes per second.
    Rate(f32),
    /// Comparison of its latency with what is usual, where that is known.
    Latency(Option<Score>),
}

/// One evaluation's view of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measurement {
    /// Seconds the counts cover.
    pub(super) span_s: f64,
    pub(super) offered_rps: f64,
    pub(super) unique_offered_rps: f64,
    /// Let in.
    pub(super) admitted_rps: f64,
    /// Arrivals at the resource that is judged.
    pub(super) entered_rps: f64,
    /// Only delivery is judged, of most that entered: who leaves takes the rest of the response off the link.
    pub(super) judges_delivery: bool,
    pub(super) completed_rps: f64,
    /// Endings other than completion.
    pub(super) unfinished_rps: f64,
    /// Rates of the fastest tenth, when at least a tenth of responses (and thirty) are large enough.
    pub(super) fast_rate: Option<Fastest>,
    /// Latency scores of the fastest tenth, when at least thirty responses are scored.
    pub(super) fast_score: Option<Fastest>,
    /// The best latency score of the latest few responses, where these are scored.
    pub(super) latest_score: Option<f64>,
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
    /// Variance of that mean by chance alone: other responses of the same service would have had another.
    pub(super) chance: f64,
}

/// Speeds of responses, to be cut down to the fastest of them.
#[derive(Debug, Default)]
struct Speeds {
    items: Vec<Speed>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Speed {
    speed: f32,
    excess_s: f32,
    count: u32,
}

impl Speeds {
    fn clear(&mut self) {
        self.items.clear();
        self.count = 0;
    }

    fn push(&mut self, item: Speed) {
        self.items.push(item);
        self.count += item.count as usize;
    }

    /// Leaves only the best [`FASTEST`]. O(n log n) in items, not in responses.
    fn keep_fastest(&mut self) {
        self.items.sort_unstable_by(|one, other| {
            descending(one.speed, other.speed).then(one.excess_s.total_cmp(&other.excess_s))
        });
        self.count = fastest_count(self.count, FASTEST).unwrap_or(0);
        let mut left = self.count;
        self.items.retain_mut(|item| {
            item.count = item.count.min(u32::try_from(left).unwrap_or(u32::MAX));
            left -= item.count as usize;
            item.count > 0
        });
    }

    /// 0 of none.
    fn best(&self) -> f64 {
        self.items.iter().fold(0.0, |best, item| best.max(f64::from(item.speed)))
    }

    /// A mean over all; not of none.
    fn mean(&self, of: impl Fn(&Speed) -> f64) -> f64 {
        self.items.iter().map(|item| of(item) * f64::from(item.count)).sum::<f64>() / self.count as f64
    }
}

impl Fastest {
    /// Of the best [`FASTEST`] of all; not of none. O(fastest).
    fn of(fastest: &Speeds) -> Self {
        let mean = fastest.mean(|item| f64::from(item.speed));
        let variance = fastest.mean(|item| (f64::from(item.speed) - mean) * (f64::from(item.speed) - mean));
        let least = fastest.items.iter().fold(f64::INFINITY, |least, item| least.min(f64::from(item.speed)));
        // The asymptotic variance of a mean above a quantile: theirs, and that of the quantile that chose
        // them.
        let of_quantile = (1.0 - FASTEST) * (mean - least) * (mean - least);
        Self { mean, chance: (variance + of_quantile) / fastest.count as f64 }
    }
}

impl Measurement {
    /// Returns true if there is any signal to judge by.
    pub(super) fn is_valid(&self) -> bool {
        self.fast_rate.is_some() || self.fast_score.is_some()
    }

    /// Much was let in and nothing came back: no signal, and yet the worst there is.
    pub(super) fn is_stalled(&self) -> bool {
        self.completed_rps == 0.0 && self.entered_rps * self.span_s >= RESPONSES_MIN as f64
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
        self.open.entered += counts.entered;
        self.open.handed_over += counts.handed_over;
        self.open.completed += counts.completed;
        self.open.unfinished += counts.unfinished;
    }

    /// Adds responses observed at `now`, some of which began after `evidence_from`; the oldest go when
    /// [`CELLS_PER_WINDOW`] cells are kept.
    pub(super) fn push(
        &mut self,
        observed: Instant,
        evidence_from: Instant,
        count: Counted,
        value: ResponseValue,
    ) {
        for (started, count) in [(Instant::ZERO, count.before), (evidence_from, count.since)] {
            if count == 0 {
                continue;
            }
            if self.responses.len() == CELLS_PER_WINDOW {
                self.responses.pop_front();
            }
            self.responses.push_back(Responses { observed, started, count, value });
        }
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
        let entered_rps = per_second(|c| c.entered);
        let handed_over_rps = per_second(|c| c.handed_over);
        let unfinished_rps = per_second(|c| c.unfinished);
        let responses = self.gather(now, evidence_from);
        let large_enough = self.rates.count >= RESPONSES_MIN && self.rates.count * 10 >= responses;
        self.rates.keep_fastest();
        let scored = self.scores.count >= RESPONSES_MIN;
        self.scores.keep_fastest();
        Measurement {
            span_s,
            offered_rps,
            unique_offered_rps,
            admitted_rps,
            entered_rps,
            judges_delivery: handed_over_rps > 0.5 * entered_rps,
            completed_rps,
            unfinished_rps,
            fast_rate: large_enough.then(|| Fastest::of(&self.rates)),
            fast_score: scored.then(|| Fastest::of(&self.scores)),
            latest_score: self.latest_score,
            excess_s: if scored { self.scores.mean(|item| f64::from(item.excess_s)) } else { 0.0 },
            responses,
        }
    }

    /// Collects the newest responses until there are enough and they span an interval; returns their number.
    /// Responses observed together are taken together, so their order does not matter.
    fn gather(&mut self, now: Instant, evidence_from: Instant) -> usize {
        self.scores.clear();
        self.rates.clear();
        self.latest_score = None;
        let (mut latencies, mut observed) = (0, now);
        for responses in self.responses.iter().rev() {
            if responses.observed != observed {
                observed = responses.observed;
                if self.latest_score.is_none() && self.scores.count >= LATEST_MIN {
                    self.latest_score = Some(self.scores.best());
                }
                let enough = self.scores.count.max(self.rates.count) >= RESPONSES_MIN;
                if enough && now.saturating_since(observed) >= self.interval {
                    break;
                }
            }
            if responses.started < evidence_from {
                continue;
            }
            let count = responses.count;
            match responses.value {
                ResponseValue::Rate(speed) => self.rates.push(Speed { speed, excess_s: 0.0, count }),
                ResponseValue::Latency(score) => {
                    latencies += count as usize;
                    if let Some(Score { relative: speed, excess_s }) = score {
                        self.scores.push(Speed { speed, excess_s, count });
                    }
                }
            }
        }
        // A response of known rate has a latency too, except where no latency is known at all.
        self.rates.count.max(latencies)
    }
}

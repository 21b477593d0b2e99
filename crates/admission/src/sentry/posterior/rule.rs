//! The limit that is worth most, and how fast it may move.

use super::capacity::Capacity;
use super::evidence::Seen;
use crate::sentry::learner::Learned;
use crate::sentry::look::Look;
use crate::sentry::measured::Measured;
use crate::sentry::plan::Rule;
use flashweir_core::limits::SENTRY_IN_FLIGHT;
use flashweir_core::{Duration, Instant};

/// The limit, and what is known.
#[derive(Debug)]
pub(in crate::sentry) struct PosteriorRule {
    learned: Learned,
    capacity: Capacity,
    /// Since the last window was closed.
    open: Measured,
    /// The limit moved by much; those who were there before may still be.
    moved_at: Option<Instant>,
    /// What the completed of the last window took, seconds.
    usual_s: f64,
    /// Work of a usual request, and over how many that is averaged.
    unit: f64,
    unit_count: f64,
}

impl PosteriorRule {
    pub(in crate::sentry) fn new() -> Self {
        Self {
            learned: Learned {
                limit: START,
                knee: None,
                alone_s: None,
                is_known: false,
                target_infeasible: false,
                window: Measured::default(),
                is_settling: false,
            },
            capacity: Capacity::new(),
            open: Measured::default(),
            moved_at: None,
            usual_s: 0.0,
            unit: 0.0,
            unit_count: 0.0,
        }
    }

    /// What is known.
    pub(in crate::sentry) fn learned(&self) -> Learned {
        Learned { is_settling: self.moved_at.is_some(), ..self.learned }
    }

    /// Takes a look; `seen` is the look's traffic by number in flight.
    pub(in crate::sentry) fn look(&mut self, look: &Look, seen: &[Seen]) -> Rule {
        let settles_within = Duration::from_secs_f64(look.age_s.min(SETTLE_MOST_TARGETS * look.target_s));
        self.moved_at = self.moved_at.filter(|moved_at| look.now < *moved_at + settles_within);
        if self.moved_at.is_some() {
            return Rule::None;
        }
        self.take(look, seen);
        if self.open.is_refused_by_origin(self.learned.limit) {
            let lower = REFUSED_STEP * self.open.in_flight().min(f64::from(self.learned.limit));
            self.move_to(look, round(lower));
            return Rule::Target;
        }
        if !self.is_window_over(look) {
            return Rule::None;
        }
        let open = core::mem::take(&mut self.open);
        if self.close(look, &open) {
            self.learned.window = open;
        }
        if !open.is_bound() {
            self.learned.window = Measured::default();
            return Rule::Quiet;
        }
        let (best, is_better) = self.best(look);
        match best.cmp(&self.learned.limit) {
            core::cmp::Ordering::Greater if is_better => {
                self.move_to(look, best);
                Rule::Raise
            }
            core::cmp::Ordering::Less if is_better => {
                self.move_to(look, best);
                Rule::Trim
            }
            _ => Rule::None,
        }
    }

    fn take(&mut self, look: &Look, seen: &[Seen]) {
        self.learned.window.add(&look.tick);
        self.open.add(&look.tick);
        if look.tick.completed > 0.0 {
            self.unit_count = (self.unit_count + look.tick.completed).min(UNIT_MEMORY);
            let unit = look.tick.work / look.tick.completed;
            self.unit += (unit - self.unit) * (look.tick.completed / self.unit_count).min(1.0);
        }
        let unit = self.unit.max(1e-12);
        seen.iter().for_each(|seen| self.capacity.see(&Seen { work: seen.work / unit, ..*seen }));
    }

    /// A window covers the stay of those who were there when it began: who is in flight now has been for half as long, on
    /// average, as they stay. If hardly any request is completed, it is over when 1.5 times as many were expected.
    fn is_window_over(&self, look: &Look) -> bool {
        let open = &self.open;
        let turnover = open.in_flight().max(COMPLETED_LEAST);
        let latency_s = if open.completed > 0.0 { open.latency_each_s() } else { 0.0 };
        let is_whole = open.completed >= turnover && open.span_s >= latency_s.max(2.0 * look.age_s);
        let is_overdue = self.capacity.is_informed()
            && self.capacity.expected() > OVERDUE * turnover
            && open.span_s >= OVERDUE * self.usual_s.max(latency_s);
        self.unit > 0.0 && (is_whole || is_overdue)
    }

    /// Learns from a window; whether the origin is another one.
    fn close(&mut self, look: &Look, open: &Measured) -> bool {
        let dispersion = look.variation.all.max(DISPERSION_LEAST);
        let mut work = open.work / self.unit;
        if open.completed > 0.0 {
            self.usual_s = open.latency_each_s();
            // Requests that are alike end together: how many ends fall into a short window is chance, what they took is not.
            let is_regular = look.variation.all < REGULAR && open.failed == 0.0;
            if is_regular && open.completed < TURNOVERS_MANY * open.in_flight() {
                work = open.work_rate(look.variation) * open.span_s / self.unit;
            }
        }
        let is_pinned = open.waiting_s > PINNED * open.span_s;
        let is_changed = is_pinned && self.capacity.close_pinned(work, dispersion);
        if !is_pinned {
            self.capacity.close_free(dispersion);
        }
        let (servers, spread) = self.capacity.servers();
        self.learned.is_known = spread < KNOWN_SPREAD;
        self.learned.knee = self.learned.is_known.then_some(servers);
        self.learned.alone_s = Some(self.capacity.alone_s() / self.unit);
        self.learned.target_infeasible =
            self.learned.is_known && self.capacity.alone_s() * look.quantile_over_mean > look.target_s;
        is_changed
    }

    /// The best limit within a step, and whether it is worth moving.
    fn best(&self, look: &Look) -> (u32, bool) {
        // Where the number of servers is not known, late answers may come from a limit that is too high.
        let late_worth = if self.learned.is_known { LATE_WORTH } else { 0.0 };
        let worth = |limit| self.capacity.worth(limit, look.quantile_over_mean, look.target_s, late_worth);
        let at_step =
            |step: i32| round(f64::from(self.learned.limit) * libm::exp2(f64::from(step) / STEPS_AN_OCTAVE));
        let candidates = (-STEPS_DOWN..=STEPS_UP).map(|step| at_step(step).min(SENTRY_IN_FLIGHT));
        let best =
            candidates.map(|limit| (limit, worth(limit))).max_by(|one, other| one.1.total_cmp(&other.1));
        let (limit, most) = best.unwrap_or((self.learned.limit, 0.0));
        (limit, most > worth(self.learned.limit) * (1.0 + WORTH_MOVING))
    }

    fn move_to(&mut self, look: &Look, limit: u32) {
        let change = libm::fabs(libm::log(f64::from(limit) / f64::from(self.learned.limit)));
        self.moved_at = (change > SMALL_MOVE).then_some(look.now);
        self.learned.limit = limit;
        self.learned.window = Measured::default();
        self.open = Measured::default();
        self.capacity.discard();
    }
}

fn round(value: f64) -> u32 {
    ((value + 0.5) as u32).max(1)
}

/// Requests in flight while nothing is known.
const START: u32 = 8;
/// Requests over which the usual cost is averaged.
const UNIT_MEMORY: f64 = 2_000.0;
/// Completions that make a window, at least.
const COMPLETED_LEAST: f64 = 3.0;
/// Over what was expected, in work and in time, when a window without completions ends.
const OVERDUE: f64 = 1.5;
/// Counts are never believed to be more even than this (variance over mean).
const DISPERSION_LEAST: f64 = 0.5;
/// The squared coefficient of variation of requests that are alike.
const REGULAR: f64 = 0.3;
/// Turnovers after which it does not matter any more that requests end together.
const TURNOVERS_MANY: f64 = 4.0;
/// The limit pins the number in flight if a request waits for room during this part of the time.
const PINNED: f64 = 0.8;
/// The number of servers is known if it is to a factor of 1.5 (standard deviation of the logarithm).
const KNOWN_SPREAD: f64 = 0.4;
/// A late answer is worth a tenth of one in time: where no limit meets the target, throughput decides.
const LATE_WORTH: f64 = 0.1;
/// One move goes up by a factor of 2 at most, and down by √2: raising is cheap, lowering costs throughput if it is wrong.
const STEPS_AN_OCTAVE: f64 = 8.0;
const STEPS_UP: i32 = 8;
const STEPS_DOWN: i32 = 4;
/// For less nothing is moved.
const WORTH_MOVING: f64 = 0.005;
/// After smaller moves nothing has to settle.
const SMALL_MOVE: f64 = 0.15;
/// In the longest case an age of those in flight is believed in up to here.
const SETTLE_MOST_TARGETS: f64 = 4.0;
/// An origin that refuses gets so much less.
const REFUSED_STEP: f64 = 0.75;

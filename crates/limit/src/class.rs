//! Class of requests: its base, its requests of the last tick, and what it has done of late.

use crate::base::Base;
use crate::grid::{CENTRE, STEP, STRETCHES, TIME_BINS, bin_middle_s};
use crate::recent::{LATE_STEPS, Recent, is_late};
use crate::row::{Age, Row};
use alloc::vec::Vec;

/// Base and counts of one class.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) id: u32,
    pub(crate) base: Base,
    /// Bins of time with requests of this tick or in flight before it, ascending; [`TIME_BINS`] at most.
    pub(crate) ages: Vec<Age>,
    /// Index of the one that was counted last.
    latest: usize,
    pub(crate) in_flight: f32,
    pub(crate) is_long: bool,
    /// See [`prompt`](crate::prompt).
    pub(crate) recent: Recent,
    pub(crate) is_late: bool,
    pub(crate) is_prompt: bool,
    /// Completions that the base was learned from while the origin was not busy.
    pub(crate) calm: f64,
    /// Steps of stretch by which the base has been moved.
    pub(crate) moved_steps: isize,
    /// Completions of late, how many were expected of an origin that is not busy, and those of the completed
    /// alone: Σ Λ(t).
    pub(crate) lately: f64,
    pub(crate) expected_lately: f64,
    pub(crate) took: f64,
    /// Completions and requests in flight, faded: part of this class in the mix.
    pub(crate) share: f64,
}

impl Class {
    /// A class of which nothing is known, while bases have been moved by `moved_steps`.
    pub(crate) fn new(id: u32, moved_steps: isize) -> Self {
        Self {
            id,
            base: Base::new(),
            ages: Vec::new(),
            latest: 0,
            in_flight: 0.0,
            is_long: false,
            recent: Recent::default(),
            is_late: false,
            is_prompt: false,
            calm: 0.0,
            moved_steps,
            lately: 0.0,
            expected_lately: 0.0,
            took: 0.0,
            share: 0.0,
        }
    }

    /// True if requests hold a place among those that the limit is for.
    pub(crate) fn holds_place(&self) -> bool {
        !self.is_long && !self.is_prompt
    }

    /// Completions of this tick.
    pub(crate) fn completed(&self) -> f64 {
        self.ages.iter().map(|age| age.completed).sum::<i64>() as f64
    }

    /// Index of the stretch at which times are those before bases were moved.
    pub(crate) fn centre(&self) -> usize {
        CENTRE.saturating_add_signed(self.moved_steps).min(STRETCHES - 1)
    }

    pub(crate) fn count_recent(&mut self, expected: f32) {
        self.recent.add(self.completed(), expected.into());
        let at = self.centre().saturating_sub(LATE_STEPS);
        for age in self.ages.iter().filter(|age| is_late(self.base.hazard(age.bin, at))) {
            self.recent.add_late(age.completed as f64, age.in_flight as f64, bin_middle_s(age.bin));
        }
    }

    /// Median time before bases were moved, seconds. O([`TIME_BINS`]).
    pub(crate) fn median_s(&self) -> f64 {
        self.base.median_s() * libm::exp(-STEP * self.moved_steps as f64)
    }

    /// Returns true if completions come about as soon as from an origin that is not busy.
    pub(crate) fn is_usual(&self, much: f64) -> bool {
        self.lately > 2.0 && self.expected_lately < much * self.lately + 1.5
    }

    /// Σ Λ(t) of the completed of this tick.
    pub(crate) fn took_now(&self) -> f64 {
        let done = self.ages.iter().filter(|age| age.completed > 0);
        done.map(|age| age.completed as f64 * f64::from(self.base.hazard(age.bin, CENTRE))).sum()
    }

    /// Returns true if requests in flight are late and those that complete take their usual times.
    pub(crate) fn is_overtaken(&self, much: f64) -> bool {
        let at = self.centre().saturating_sub(LATE_STEPS);
        let mut present = self.ages.iter().filter(|age| age.in_flight > 0);
        self.lately > 2.0
            && self.took < much * self.lately
            && present.any(|age| is_late(self.base.hazard(age.bin, at)))
    }

    /// Begins a tick: requests in flight become those before.
    pub(crate) fn begin(&mut self) {
        self.ages.retain_mut(|age| {
            *age = Age { net: -age.in_flight, ..Age::zero(age.bin) };
            age.net < 0
        });
    }

    /// Counts a row of this tick.
    pub(crate) fn add(&mut self, row: &Row) {
        let bin = usize::from(row.bin).min(TIME_BINS - 1);
        // Rows of a class ascend as a rule.
        let from = self.ages.get(self.latest).map_or(0, |age| if age.bin <= bin { self.latest } else { 0 });
        let at = from + self.ages[from..].iter().take_while(|age| age.bin < bin).count();
        self.latest = at;
        if self.ages.get(at).is_none_or(|age| age.bin > bin) {
            self.ages.insert(at, Age::zero(bin));
        }
        let age = &mut self.ages[at];
        age.net += i64::from(row.in_flight) + i64::from(row.completed) + i64::from(row.left);
        age.completed += i64::from(row.completed);
        age.in_flight += i64::from(row.in_flight);
    }
}

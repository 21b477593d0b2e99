//! Evidence: completions beside expected completions, by number in flight.
//!
//! While the age of a request goes from a to b, an origin that stretches times by s is expected to complete Λ(b/s) − Λ(a/s) of it, for any
//! distribution of times. Over a tick this telescopes to
//!
//! ```text
//! E(s) = Σ now in flight Λ(age/s) − Σ in flight before Λ(age/s) + Σ ended meanwhile Λ(time/s)
//!      = Σ_b m_b Λ(t_b/s)        m_b: net count of bin b (now in flight − before + ended)
//! ```
//!
//! beside the D that completed. Both go to the number in flight under which the requests have aged: its mean over about the age of what is
//! in flight.

use crate::base::Base;
use crate::grid::{CENTRE, LEVELS, STEP, STRETCHES, TIME_BINS, level_of};
use crate::numbers::Numbers;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Most classes that have separate bases; the rest share one.
pub const CLASSES_MAX: usize = 64;

/// Counts of one class in one bin of time over a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Class of the requests.
    pub class: u32,
    /// Bin of time, see [`time_bin`](crate::time_bin).
    pub bin: u8,
    /// Requests that completed after this time.
    pub completed: u32,
    /// Requests that ended after this time without a response, for example because the client left.
    pub left: u32,
    /// Requests of this age in flight at the end of the tick.
    pub in_flight: u32,
}

/// Completions and expected completions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// D.
    pub(crate) completed: f32,
    /// E at each stretch.
    pub(crate) expected: [f32; STRETCHES],
}

/// What one class is known by.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) id: u32,
    pub(crate) base: Base,
    ages: Box<[f32; TIME_BINS]>,
    net: Box<[f32; TIME_BINS]>,
    done: Box<[f32; TIME_BINS]>,
    pub(crate) in_flight: f32,
    pub(crate) is_long: bool,
    /// Completions of late, and how many were expected of an origin that is not busy.
    pub(crate) lately: f64,
    expected_lately: f64,
    /// Completions and requests in flight, faded: part of this class in the mix.
    pub(crate) share: f64,
    is_touched: bool,
}

/// Collector of the evidence.
#[derive(Debug)]
pub struct Evidence {
    numbers: Numbers,
    pub(crate) classes: Vec<Class>,
    /// By number in flight, faded by new completions.
    pub(crate) levels: Vec<Counts>,
    /// Weights of the numbers in flight at which bases were learned.
    pub(crate) learned_at: [f64; LEVELS],
    /// Number in flight under which present requests have aged.
    pub(crate) aged_at: f64,
    /// The last tick, and the part of it that is evidence.
    pub(crate) tick: Counts,
    fresh: Counts,
    /// A base has changed since this was last reset.
    pub(crate) is_mix_new: bool,
}

/// What bases may learn from a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guard {
    /// The origin is not busy: every base may go on learning.
    pub(crate) is_idle: bool,
    /// Stretch believed in, for bases that have hardly begun, bins.
    pub(crate) shift: usize,
}

impl Counts {
    pub(crate) const ZERO: Self = Self { completed: 0.0, expected: [0.0; STRETCHES] };

    pub(crate) fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.expected.iter_mut().zip(other.expected).for_each(|(sum, expected)| *sum += expected);
    }

    pub(crate) fn fade(&mut self, part: f32) {
        self.completed *= part;
        self.expected.iter_mut().for_each(|sum| *sum *= part);
    }

    /// Whether there is anything to learn from.
    pub(crate) fn is_evidence(&self) -> bool {
        self.completed > 0.3 || self.expected[CENTRE] > 0.3
    }

    /// Poisson log-likelihoods D ln E(s) − E(s) of all stretches, over 1 + I ε²: I is the Fisher information of ln s, and ε the model
    /// error, so that ln s is never known better than to ε. O([`STRETCHES`]).
    pub(crate) fn log_likelihoods(&self, error: f64) -> [f32; STRETCHES] {
        let completed = self.completed;
        // No stretch makes a completion impossible: one in a hundred is not the model's.
        let floor = 0.01 * completed + 1e-3;
        let mut logs = [0.0; STRETCHES];
        let mut best = (f32::NEG_INFINITY, 0);
        for (at, (log, expected)) in logs.iter_mut().zip(self.expected).enumerate() {
            let expected = expected.max(0.0) + floor;
            *log = completed * libm::logf(expected) - expected;
            if *log > best.0 {
                best = (*log, at);
            }
        }
        let information = |at: usize| {
            let (low, high) = (at.saturating_sub(1), (at + 1).min(STRETCHES - 1));
            let expected = |at: usize| self.expected[at].max(0.0) + floor;
            let slope = libm::logf(expected(high) / expected(low)) / ((high - low) as f32 * STEP as f32);
            f64::from(expected(at) * slope * slope)
        };
        // Requests that began together are late together: what an unstretched origin would show counts, too.
        let information = information(best.1).max(information(CENTRE));
        let weight = (1.0 / (1.0 + information * error * error)) as f32;
        logs.iter_mut().for_each(|log| *log = (*log - best.0) * weight);
        logs
    }
}

impl Class {
    fn new(id: u32) -> Self {
        let zeros = || Box::new([0.0; TIME_BINS]);
        Self {
            id,
            base: Base::new(),
            ages: zeros(),
            net: zeros(),
            done: zeros(),
            in_flight: 0.0,
            is_long: false,
            lately: 0.0,
            expected_lately: 0.0,
            share: 0.0,
            is_touched: false,
        }
    }

    /// Whether completions come about as soon as from an origin that is not busy.
    pub(crate) fn is_usual(&self, much: f64) -> bool {
        self.lately > 2.0 && self.expected_lately < much * self.lately + 1.5
    }

    /// Ends a tick: ages become those before, and net counts are those of this tick until the next.
    fn settle(&mut self) {
        self.in_flight = 0.0;
        for (net, ages) in self.net.iter_mut().zip(self.ages.iter_mut()) {
            // `ages` holds minus the requests before plus those now; see `Evidence::take`.
            *net += *ages;
            self.in_flight += *ages;
        }
    }
}

impl Evidence {
    /// Nothing is known.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            classes: Vec::new(),
            levels: alloc::vec![Counts::ZERO; LEVELS],
            learned_at: [0.0; LEVELS],
            aged_at: 1.0,
            tick: Counts::ZERO,
            fresh: Counts::ZERO,
            is_mix_new: true,
        }
    }

    /// Index of a class; a place is made for a new one, or taken from an idle one that is hardly known.
    fn index(&mut self, id: u32) -> usize {
        if let Some(at) = self.classes.iter().position(|class| class.id == id) {
            return at;
        }
        if self.classes.len() < CLASSES_MAX {
            self.classes.push(Class::new(id));
            return self.classes.len() - 1;
        }
        if let Some(at) = self.classes.iter().position(|class| class.in_flight <= 0.0 && class.share < 0.05) {
            self.classes[at] = Class::new(id);
            return at;
        }
        if self.classes.len() == CLASSES_MAX {
            self.classes.push(Class::new(REST));
        }
        CLASSES_MAX
    }

    /// Takes a tick of `span_s` seconds with `in_flight` requests that hold a place, as these see it. Ages that are missing in `rows` are those
    /// of requests that have ended. O(rows · [`STRETCHES`] + classes · [`TIME_BINS`]).
    pub(crate) fn take(&mut self, rows: &[Row], in_flight: f64, span_s: f64, guard: Guard) {
        for class in &mut self.classes {
            class.is_touched = class.in_flight > 0.0;
            if class.is_touched {
                // Before, with its sign turned; rows add what is in flight now.
                for (net, age) in class.net.iter_mut().zip(class.ages.iter_mut()) {
                    *net = -core::mem::take(age);
                }
            }
        }
        for row in rows {
            let at = self.index(row.class);
            let class = &mut self.classes[at];
            let bin = usize::from(row.bin).min(TIME_BINS - 1);
            class.is_touched = true;
            class.ages[bin] += row.in_flight as f32;
            class.net[bin] += row.completed as f32 + row.left as f32;
            class.done[bin] += row.completed as f32;
        }
        let mean_age_s = self.mean_age_s(rows);
        let part = if mean_age_s > 0.0 { 1.0 - libm::exp(-span_s / mean_age_s) } else { 1.0 };
        let log = libm::log(self.aged_at);
        self.aged_at = libm::exp(log + (libm::log(in_flight.max(1.0)) - log) * part);
        (self.tick, self.fresh) = (Counts::ZERO, Counts::ZERO);
        for at in 0..self.classes.len() {
            if self.classes[at].is_touched {
                self.count(at, guard);
            }
        }
        let level = level_of(self.aged_at);
        let part = -f64::from(self.tick.completed) / self.numbers.memory;
        let part = libm::exp(part.max(-FADE_MAX)) as f32;
        self.levels.iter_mut().for_each(|counts| counts.fade(part));
        let fresh = self.fresh;
        self.levels[level].add(&fresh);
    }

    fn mean_age_s(&self, rows: &[Row]) -> f64 {
        let is_short = |row: &&Row| !self.classes.iter().any(|class| class.id == row.class && class.is_long);
        let (mut sum, mut count) = (0.0, 0.0);
        for row in rows.iter().filter(is_short) {
            // A request that ended was half as old on average.
            let ended = f64::from(row.completed) + f64::from(row.left);
            let weight = f64::from(row.in_flight) + ended;
            sum += crate::bin_middle_s(row.bin.into()) * (f64::from(row.in_flight) + 0.5 * ended);
            count += weight;
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    fn count(&mut self, at: usize, guard: Guard) {
        let (memory, few, first) = (self.numbers.memory, self.numbers.enough, self.first());
        let level = level_of(self.aged_at);
        let bases: f64 = self.learned_at.iter().sum();
        let near = self.learned_at[level.saturating_sub(1)..(level + 2).min(LEVELS)].iter().sum::<f64>();
        let class = &mut self.classes[at];
        class.settle();
        let completed: f32 = class.done.iter().sum();
        // The first completions of the first class are taken as they come, at about one number in flight; those of later classes are divided
        // by the stretch believed in.
        let is_first = bases < few || near > 0.5 * bases;
        let shift = if bases < first { 0 } else { guard.shift };
        let is_new = class.base.weight < few || class.base.weight < first && (is_first || shift > 0);
        let learns = is_new || guard.is_idle;
        if learns && !class.is_long || class.is_long && is_new {
            class.base.learn(&class.net, &class.done, if is_new { shift } else { 0 }, memory);
            if !class.is_long && (shift == 0 || !is_new) {
                self.learned_at[level] += f64::from(completed) + 1e-3 * f64::from(class.in_flight);
            }
        }
        if class.base.is_stale() {
            class.base.fit();
            self.is_mix_new = true;
        }
        let mut tick = Counts::ZERO;
        tick.completed = completed;
        for (bin, net) in class.net.iter().enumerate().filter(|(_, net)| **net != 0.0) {
            class.base.add_expected(bin, *net, &mut tick.expected);
        }
        class.net.fill(0.0);
        class.done.fill(0.0);
        // What is expected by the prior alone is no expectation.
        if class.base.weight >= few {
            let part = libm::exp(-f64::from(completed) / first);
            class.lately = class.lately * part + f64::from(completed);
            class.expected_lately = class.expected_lately * part + f64::from(tick.expected[CENTRE]);
        }
        class.share = class.share * libm::exp(-f64::from(completed + 0.02 * class.in_flight) / memory)
            + f64::from(completed + 0.02 * class.in_flight);
        if class.base.weight >= few && !class.is_long {
            self.tick.add(&tick);
            // What a young base was learned from says nothing but that it is so at this number in flight.
            if !is_new || shift > 0 {
                self.fresh.add(&tick);
            }
        }
        let all: f64 = self.learned_at.iter().sum();
        if all > 2.0 * memory {
            self.learned_at.iter_mut().for_each(|weight| *weight *= 0.5);
        }
    }

    /// Completions from which on a base is known.
    fn first(&self) -> f64 {
        FIRST * self.numbers.enough
    }

    /// Whether any base is known.
    pub(crate) fn is_informed(&self) -> bool {
        self.classes.iter().any(|class| class.base.weight >= self.numbers.enough)
    }

    /// Completions that bases were learned from.
    pub(crate) fn learned(&self) -> f64 {
        self.learned_at.iter().sum()
    }

    /// Whether short classes complete about as soon as at an origin that is not busy.
    pub(crate) fn is_usual(&self) -> bool {
        let short = || self.classes.iter().filter(|class| !class.is_long);
        let completed: f64 = short().map(|class| class.lately).sum();
        let expected: f64 = short().map(|class| class.expected_lately).sum();
        completed > 3.0 && expected < self.numbers.much * completed + 1.5
    }

    /// The origin is another one: evidence of before is of no use, but for `last`.
    pub(crate) fn forget(&mut self, last: &Counts) {
        self.levels.fill(Counts::ZERO);
        self.levels[level_of(self.aged_at)] = *last;
    }

    /// Share of requests of the mix of short classes that take longer than each edge of the bins of time.
    pub(crate) fn survivals(&self) -> Box<[f32; TIME_BINS + 1]> {
        let mut mix = Box::new([0.0; TIME_BINS + 1]);
        let short = self.classes.iter().filter(|class| !class.is_long && class.share > 0.0);
        let all: f64 = short.clone().map(|class| class.share).sum();
        for class in short {
            let part = (class.share / all) as f32;
            mix.iter_mut().zip(class.base.survivals()).for_each(|(sum, share)| *sum += part * share);
        }
        if all <= 0.0 {
            mix.fill(1.0);
        }
        mix
    }

    /// Whether half of the requests of a class come back within a third of `bound_s`, about as soon as always.
    pub(crate) fn has_short(&self, bound_s: f64, scale: f64) -> bool {
        self.classes.iter().any(|class| {
            class.base.weight >= self.numbers.enough
                && class.base.survival(bound_s / scale / 3.0) < 0.5
                && class.is_usual(self.numbers.much)
        })
    }

    /// Tells long classes from short ones: those whose requests take longer than `bound_s` while requests of others come back within a third of it,
    /// about as soon as always. Requests of long classes hold no place. Returns whether that changed.
    pub(crate) fn find_long(&mut self, bound_s: f64, scale: f64, is_busy: bool) -> bool {
        let are_others_short = self.has_short(bound_s, scale);
        // Bases are of times under load; alone they would be so much shorter.
        let bound_s = bound_s / scale;
        let mut is_changed = false;
        for class in &mut self.classes {
            let is_seen = class.base.reached(bound_s) >= 0.5;
            let left = class.base.survival(bound_s);
            let is_long = if class.is_long {
                left > 0.3 && (is_busy || are_others_short || class.in_flight > 0.0)
            } else {
                is_seen && left > 0.5 && are_others_short && !is_busy
            };
            is_changed |= is_long != class.is_long;
            class.is_long = is_long;
        }
        is_changed
    }
}

/// Class of all requests beyond the most classes.
pub(crate) const REST: u32 = u32::MAX;
/// A base is known after this many times as many completions as are enough to be evidence.
const FIRST: f64 = 8.0;
/// One tick fades what is remembered by this part at most.
const FADE_MAX: f64 = 0.01;

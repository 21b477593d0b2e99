//! Evidence: completions beside expected completions, by number in flight.
//!
//! While the age of a request goes from a to b, an origin that stretches times by s is expected to complete
//! Λ(b/s) − Λ(a/s) of it, for any distribution of times. Over a tick this telescopes to
//!
//! ```text
//! E(s) = Σ now in flight Λ(age/s) − Σ in flight before Λ(age/s) + Σ ended meanwhile Λ(time/s)
//!      = Σ_b m_b Λ(t_b/s)        m_b: net count of bin b (now in flight − before + ended)
//! ```
//!
//! beside the D that completed. Both go to the number in flight under which the requests have aged: its mean
//! over about the age of what is in flight.

use crate::class::Class;
use crate::grid::{CENTRE, LEVELS, STEP, STRETCHES, TIME_BINS, bin_middle_s, level_of, position};
use crate::numbers::Numbers;
use crate::row::Row;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Most classes that have separate bases; the rest share one.
pub const CLASSES_MAX: usize = 64;

/// Completions and expected completions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// D.
    pub(crate) completed: f32,
    /// E at each stretch.
    pub(crate) expected: [f32; STRETCHES],
}

/// Collector of the evidence.
#[derive(Debug)]
pub struct Evidence {
    pub(crate) numbers: Numbers,
    pub(crate) classes: Vec<Class>,
    /// By number in flight, faded by new completions.
    pub(crate) levels: Vec<Counts>,
    /// Weights of the numbers in flight at which bases were learned.
    learned_at: [f64; LEVELS],
    /// Their sum: completions that bases were learned from.
    learned: f64,
    /// Number in flight under which present requests have aged.
    pub(crate) aged_at: f64,
    /// The last tick, and the part of it that is evidence.
    pub(crate) tick: Counts,
    fresh: Counts,
    /// Steps of stretch by which bases have been moved.
    moved_steps: isize,
    /// A base has changed since this was last reset.
    pub(crate) is_mix_new: bool,
}

/// Conditions under which bases learn from a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guard {
    /// The origin is not busy: every base may go on learning.
    pub(crate) is_idle: bool,
    /// No request waits: those in flight are all that there are.
    pub(crate) has_room: bool,
    /// Stretch believed in, for bases that have hardly begun, bins.
    pub(crate) shift: usize,
}

impl Counts {
    pub(crate) const ZERO: Self = Self { completed: 0.0, expected: [0.0; STRETCHES] };

    pub(crate) fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.expected.iter_mut().zip(&other.expected).for_each(|(sum, expected)| *sum += expected);
    }

    /// Scales all counts by `part`. Counts next to zero become zero: arithmetic on subnormal numbers takes
    /// many times as long.
    pub(crate) fn fade(&mut self, part: f32) {
        let faded = |count: f32| if (count * part).abs() < NOTHING { 0.0 } else { count * part };
        self.completed = faded(self.completed);
        self.expected.iter_mut().for_each(|sum| *sum = faded(*sum));
    }

    /// Returns true if there is anything to learn from.
    pub(crate) fn is_evidence(&self) -> bool {
        self.completed > 0.3 || self.expected[CENTRE] > 0.3
    }

    /// Poisson log-likelihoods D ln E(s) − E(s) of all stretches, over 1 + I ε²: I is the Fisher information
    /// of ln s, and ε the model error, so that ln s is never known better than to ε. O([`STRETCHES`]).
    pub(crate) fn log_likelihoods(&self, error: f64) -> [f32; STRETCHES] {
        let completed = self.completed;
        // No stretch makes a completion impossible: one in a hundred is not the model's.
        let floor = 0.01 * completed + 1e-3;
        let mut logs = [0.0; STRETCHES];
        let mut best = (f32::NEG_INFINITY, 0);
        for (at, (log, expected)) in logs.iter_mut().zip(&self.expected).enumerate() {
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

impl Evidence {
    /// Nothing is known.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            classes: Vec::new(),
            levels: alloc::vec![Counts::ZERO; LEVELS],
            learned_at: [0.0; LEVELS],
            learned: 0.0,
            aged_at: 1.0,
            tick: Counts::ZERO,
            fresh: Counts::ZERO,
            moved_steps: 0,
            is_mix_new: true,
        }
    }

    /// Index of a class; a place is made for a new one, or taken from an idle one that is hardly known.
    fn index(&mut self, id: u32) -> usize {
        if let Some(at) = self.classes.iter().position(|class| class.id == id) {
            return at;
        }
        if self.classes.len() < CLASSES_MAX {
            self.classes.push(Class::new(id, self.moved_steps));
            return self.classes.len() - 1;
        }
        // The class of the rest stays where it is.
        let is_idle = |class: &Class| class.in_flight <= 0.0 && class.share < 0.05;
        if let Some(at) = self.classes[..CLASSES_MAX].iter().position(is_idle) {
            self.classes[at] = Class::new(id, self.moved_steps);
            return at;
        }
        if self.classes.len() == CLASSES_MAX {
            self.classes.push(Class::new(REST, self.moved_steps));
        }
        CLASSES_MAX
    }

    /// Takes a tick of `span_s` seconds with `in_flight` requests that hold a place, as these see it. Ages
    /// that are missing in `rows` are those of requests that have ended. O(rows · [`STRETCHES`] + classes),
    /// and O([`TIME_BINS`]) for each base that learns.
    pub(crate) fn take(&mut self, rows: &[Row], in_flight: f64, span_s: f64, guard: Guard) {
        for class in &mut self.classes {
            class.begin();
            class.recent.fade(span_s);
        }
        let (mut at, mut ages_s, mut requests) = (0, 0.0, 0);
        for row in rows {
            // Rows of one class are neighbours as a rule.
            if self.classes.get(at).is_none_or(|class| class.id != row.class) {
                at = self.index(row.class);
            }
            let class = &mut self.classes[at];
            class.add(row);
            if class.holds_place() || class.id != row.class {
                // A request that ended was half as old on average.
                let (ended, present) =
                    (i64::from(row.completed) + i64::from(row.left), i64::from(row.in_flight));
                ages_s += bin_middle_s(row.bin.into()) * (present as f64 + 0.5 * ended as f64);
                requests += present + ended;
            }
        }
        let mean_age_s = if requests > 0 { ages_s / requests as f64 } else { 0.0 };
        let part = if mean_age_s > 0.0 { 1.0 - libm::exp(-span_s / mean_age_s) } else { 1.0 };
        let log = libm::log(self.aged_at);
        self.aged_at = libm::exp(log + (libm::log(in_flight.max(1.0)) - log) * part);
        (self.tick, self.fresh) = (Counts::ZERO, Counts::ZERO);
        let level = level_of(self.aged_at);
        for at in 0..self.classes.len() {
            if !self.classes[at].ages.is_empty() {
                self.count(at, level, guard);
            }
        }
        let part = -f64::from(self.tick.completed) / self.numbers.memory;
        let part = libm::exp(part.max(-FADE_MAX)) as f32;
        self.levels.iter_mut().for_each(|counts| counts.fade(part));
        let fresh = self.fresh;
        self.levels[level].add(&fresh);
    }

    fn count(&mut self, at: usize, level: usize, guard: Guard) {
        let (memory, few, first) = (self.numbers.memory, self.numbers.enough, self.first());
        let near = self.learned_at[level.saturating_sub(1)..(level + 2).min(LEVELS)].iter().sum::<f64>();
        let class = &mut self.classes[at];
        class.in_flight = class.ages.iter().map(|age| age.in_flight).sum::<i64>() as f32;
        let completed = class.completed() as f32;
        // The first completions of the first class are taken as they come, at about one number in flight, or
        // while they take as long as those before; those of later classes are divided by the stretch believed
        // in.
        let is_first = self.learned < few || near > 0.5 * self.learned;
        let shift = if self.learned < first { 0 } else { guard.shift };
        let is_new = class.base.weight < few
            || class.base.weight < first
                && (is_first || shift > 0 || guard.has_room && class.is_overtaken(self.numbers.much));
        let learns = is_new || guard.is_idle;
        if learns && class.holds_place() || class.is_long && is_new {
            class.base.learn(&class.ages, if is_new { shift } else { 0 }, memory);
            class.calm += if guard.is_idle { f64::from(completed) } else { 0.0 };
            if class.holds_place() && (shift == 0 || !is_new) {
                self.learned_at[level] += f64::from(completed) + 1e-3 * f64::from(class.in_flight);
                self.learned = self.learned_at.iter().sum();
                if self.learned > 2.0 * memory {
                    self.learned_at.iter_mut().for_each(|weight| *weight *= 0.5);
                    self.learned = self.learned_at.iter().sum();
                }
            }
        }
        if class.base.is_stale() {
            class.base.fit();
            self.is_mix_new = true;
        }
        let mut tick = Counts::ZERO;
        tick.completed = completed;
        for age in class.ages.iter().filter(|age| age.net != 0) {
            class.base.add_expected(age.bin, age.net as f32, &mut tick.expected);
        }
        // An expectation from the prior alone does not count.
        if class.base.weight >= few {
            let part = libm::exp(-f64::from(completed) / first);
            class.lately = class.lately * part + f64::from(completed);
            class.took = class.took * part + class.took_now();
            class.expected_lately = class.expected_lately * part + f64::from(tick.expected[CENTRE]);
            class.count_recent(tick.expected[class.centre()]);
        }
        class.share = class.share * libm::exp(-f64::from(completed + 0.02 * class.in_flight) / memory)
            + f64::from(completed + 0.02 * class.in_flight);
        if class.base.weight >= few && class.holds_place() {
            self.tick.add(&tick);
            // Completions from which a new base was learned only show that it holds at this number in flight.
            if !is_new || shift > 0 {
                self.fresh.add(&tick);
            }
        }
    }

    /// Completions from which on a base is known.
    pub(crate) fn first(&self) -> f64 {
        FIRST * self.numbers.enough
    }

    /// Returns true if any base is known.
    pub(crate) fn is_informed(&self) -> bool {
        self.classes.iter().any(|class| class.base.weight >= self.numbers.enough)
    }

    /// Completions of the last tick, those of long and prompt classes left out.
    pub(crate) fn completed(&self) -> f64 {
        self.classes.iter().filter(|class| class.holds_place()).map(Class::completed).sum()
    }

    /// Completions that bases were learned from.
    pub(crate) fn learned(&self) -> f64 {
        self.learned
    }

    /// Parts of them by number in flight, hardly any left out.
    pub(crate) fn learned_at(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let known = self.learned_at.iter().enumerate().filter(|(_, weight)| **weight > 1e-3 * self.learned);
        known.map(|(level, weight)| (level, weight / self.learned))
    }

    /// Returns true if short classes complete about as soon as at an origin that is not busy.
    pub(crate) fn is_usual(&self) -> bool {
        let short = || self.classes.iter().filter(|class| class.holds_place());
        let completed: f64 = short().map(|class| class.lately).sum();
        let expected: f64 = short().map(|class| class.expected_lately).sum();
        completed > 3.0 && expected < self.numbers.much * completed + 1.5
    }

    /// Short classes with requests in flight, or with completions of late.
    fn present(&self) -> impl Iterator<Item = &Class> {
        self.classes
            .iter()
            .filter(|class| class.holds_place() && (class.in_flight > 0.0 || class.lately > 2.0))
    }

    /// Returns true if all short classes complete about as soon as expected, or none does: what slows only
    /// some may be in the way of the others.
    pub(crate) fn are_alike(&self) -> bool {
        let mut are_usual = self.present().map(|class| class.is_usual(self.numbers.much));
        are_usual.next().is_none_or(|first| are_usual.all(|is_usual| is_usual == first))
    }

    /// Returns true if each short class is known: one that has not completed yet may be in the way of the
    /// others.
    pub(crate) fn are_known(&self) -> bool {
        self.present().all(|class| class.lately > 2.0 && class.base.weight >= self.first())
    }

    /// The origin is another one: evidence of before is of no use, but for `last`.
    pub(crate) fn forget(&mut self, last: &Counts) {
        self.levels.fill(Counts::ZERO);
        self.levels[level_of(self.aged_at)] = *last;
    }

    /// Makes the times of all bases longer than at first by this many steps of stretch, or shorter where it
    /// is negative, but for those of prompt classes; evidence of before is of no use.
    pub(crate) fn rebase(&mut self, steps: isize) {
        self.moved_steps = steps;
        for class in self.classes.iter_mut().filter(|class| !class.is_prompt) {
            class.base.shift((steps - class.moved_steps) * BINS_A_STEP);
            class.moved_steps = steps;
            (class.lately, class.expected_lately, class.took) = (0.0, 0.0, 0.0);
        }
        self.forget(&Counts::ZERO);
        self.is_mix_new = true;
    }

    /// Share of requests of the mix of short classes that take longer than each edge of the bins of time.
    pub(crate) fn survivals(&self) -> Box<[f32; TIME_BINS + 1]> {
        let mut mix = Box::new([0.0; TIME_BINS + 1]);
        let short = self.classes.iter().filter(|class| class.holds_place() && class.share > 0.0);
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

    /// Returns true if half of the requests of a class come back within a third of `bound_s`, about as soon
    /// as always.
    pub(crate) fn has_short(&self, bound_s: f64, scale: f64) -> bool {
        let third = position(bound_s / scale / 3.0);
        self.classes.iter().any(|class| {
            class.base.weight >= self.numbers.enough
                && class.base.survival(third) < 0.5
                && class.is_usual(self.numbers.much)
        })
    }

    /// Separates long classes from short ones: those whose requests take longer than `bound_s` while requests
    /// of others come back within a third of it, about as soon as always. Requests of long classes hold no
    /// place. Returns whether that changed.
    pub(crate) fn find_long(&mut self, bound_s: f64, scale: f64, is_busy: bool) -> bool {
        let are_others_short = self.has_short(bound_s, scale);
        // Bases are of times under load; alone they would be so much shorter.
        let bound = position(bound_s / scale);
        let mut is_changed = false;
        for class in &mut self.classes {
            let is_seen = class.base.reached(bound) >= 0.5;
            let left = class.base.survival(bound);
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

/// Bins of time a step of stretch.
const BINS_A_STEP: isize = 2;
/// Class of all requests beyond the most classes.
pub(crate) const REST: u32 = u32::MAX;
/// A base is known after this many times as many completions as are enough to be evidence.
const FIRST: f64 = 8.0;
/// Counts below this are nothing.
const NOTHING: f32 = 1e-30;
/// One tick fades what is remembered by this part at most.
const FADE_MAX: f64 = 0.01;

//! Policy: the limit worth most under the posterior, within bounds on a step.
//!
//! ```text
//! worth(N) = mean of  N/s · (λ + (1 − λ) P(T s ≤ ¾ R)) · (1 − μ min(1, E[T] s/R)),    s = σ f(N; c, κ)
//! ```
//!
//! over the posterior: work done a second (N requests, each s times slower than its base), late answers worth
//! λ, a line at the origin as long as the target R costing μ. T is the mix of bases. Of limits whose worth is
//! within an indifference of the best, the lowest is taken.

use crate::grid::{BINS_AN_OCTAVE, TIME_BINS, bin_middle_s, position};
use crate::numbers::Numbers;
use crate::posterior::{Posterior, Tabulated};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Steps an octave between limits that are compared, and the number of steps down.
const STEPS_AN_OCTAVE: i32 = 4;
const STEPS_DOWN: i32 = 12;

/// Numbers and tables by which limits are compared.
#[derive(Debug)]
pub struct Policy {
    pub(crate) numbers: Numbers,
    /// Share of the mix that takes longer than each edge of the bins of time.
    survivals: Box<[f32; TIME_BINS + 1]>,
    mean_s: f64,
    /// Worth of one request in flight, and shares in time within the origin's part of the target and within
    /// all of it, by ln s.
    worth: Tabulated,
    in_part: Tabulated,
    in_target: Tabulated,
    pub(crate) target_s: f64,
}

/// The best limit, and what is thought of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) best: u32,
    /// A lower limit than now is worth as much, or a higher one more, beyond indifference.
    pub(crate) is_better: bool,
}

impl Policy {
    /// A policy for a target.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        let nothing = || Tabulated::new(|_| 0.0);
        Self {
            numbers,
            survivals: Box::new([1.0; TIME_BINS + 1]),
            mean_s: 1.0,
            worth: nothing(),
            in_part: nothing(),
            in_target: nothing(),
            target_s: 1.0,
        }
    }

    /// Takes the mix of times.
    pub(crate) fn set_mix(&mut self, survivals: Box<[f32; TIME_BINS + 1]>, target_s: f64) {
        let densities = survivals.windows(2).map(|pair| f64::from(pair[0] - pair[1]));
        let (mut sum, mut all) = (0.0, 1e-9);
        for (bin, density) in densities.enumerate() {
            sum += density * bin_middle_s(bin).min(8.0 * target_s);
            all += density;
        }
        self.mean_s = sum / all;
        self.survivals = survivals;
        self.target_s = target_s;
        self.tabulate();
    }

    /// The share of requests whose times are below a position on the scale of bins.
    fn within(&self, bin_position: f64) -> f64 {
        let at = bin_position.clamp(0.0, TIME_BINS as f64);
        let bin = (at as usize).min(TIME_BINS - 1);
        let (low, high) = (self.survivals[bin], self.survivals[bin + 1]);
        1.0 - f64::from(low + (high - low) * (at - bin as f64) as f32)
    }

    fn tabulate(&mut self) {
        let k = self.numbers;
        let [part, all] = [k.target_share, 1.0].map(|share| position(share * self.target_s));
        let within =
            |bound: f64, log: f64| self.within(bound - log * (BINS_AN_OCTAVE / core::f64::consts::LN_2));
        let worth = Tabulated::new(|log| {
            let s = libm::exp(log);
            let in_time = k.late_worth + (1.0 - k.late_worth) * within(part, log);
            in_time * (1.0 - k.line_cost * (self.mean_s * s / self.target_s).min(1.0)) / s
        });
        let in_part = Tabulated::new(|log| within(part, log));
        let in_target = Tabulated::new(|log| within(all, log));
        (self.worth, self.in_part, self.in_target) = (worth, in_part, in_target);
    }

    /// Worth of a limit. O(origins · stretches).
    pub(crate) fn worth(&self, posterior: &Posterior, limit: u32) -> f64 {
        f64::from(limit) * posterior.mean(limit.into(), &self.worth)
    }

    /// Share of answers expected within the origin's part of the target.
    pub(crate) fn in_part(&self, posterior: &Posterior, in_flight: f64) -> f64 {
        posterior.mean(in_flight, &self.in_part)
    }

    /// Share of answers expected within the target.
    pub(crate) fn in_target(&self, posterior: &Posterior, in_flight: f64) -> f64 {
        posterior.mean(in_flight, &self.in_target)
    }

    /// Compares limits from an eighth of `limit`, if it may fall, to `times_max` of it, or one more. O(18 ·
    /// origins · stretches).
    pub(crate) fn choose(&self, posterior: &Posterior, limit: u32, times_max: f64, may_fall: bool) -> Choice {
        let up = (libm::log2(times_max) * f64::from(STEPS_AN_OCTAVE) + 0.5) as i32;
        let at_step = |step: i32| {
            let times = libm::exp2(f64::from(step) / f64::from(STEPS_AN_OCTAVE));
            round(f64::from(limit) * times)
        };
        let down = if may_fall { -STEPS_DOWN } else { 0 };
        let mut worths: Vec<(u32, f64)> = Vec::new();
        for limit in (down..=up).map(at_step).chain([limit + 1]) {
            if worths.last().is_none_or(|last| last.0 < limit) {
                worths.push((limit, self.worth(posterior, limit)));
            }
        }
        let most = worths.iter().map(|(_, worth)| *worth).fold(0.0, f64::max);
        let enough = most * (1.0 - self.numbers.indifference);
        let best = worths.iter().find(|(_, worth)| *worth >= enough).map_or(limit, |best| best.0);
        let own = worths.iter().find(|(one, _)| *one == limit).map_or(0.0, |(_, worth)| *worth);
        // Where nearly all are late with half as many in flight, too, half is not low enough.
        let half = at_step(-STEPS_AN_OCTAVE);
        let best =
            if best < half && self.in_part(posterior, f64::from(half)) >= HALF_LATE { half } else { best };
        Choice { best, is_better: best < limit || best > limit && own < enough }
    }
}

pub(crate) fn round(value: f64) -> u32 {
    ((value + 0.5) as u32).max(1)
}

/// Share of answers in time below which nearly all are late.
const HALF_LATE: f64 = 0.37;

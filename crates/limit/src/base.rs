//! Base of a class: the distribution of its times as hazards, from censored counts.
//!
//! ```text
//! h_b = d_b / (r_b + α) + h₀ (α / (r_b + α))²     hazard of bin b: d_b ended there of r_b that reached it (Kaplan and Meier, 1958)
//! S_b = Π (1 − h_i), i < b            survival, smoothed over log-time, so that equal times are no certainty
//! Λ(t) = −ln S(t)                     cumulative hazard; its expected value at the end of a request is 1
//! ```
//!
//! Requests still in flight, and those that left without a response, count in r_b of the bins that they
//! reached. The prior hazard h₀ counts where hardly any request came (α: a tenth of one): while nothing has
//! ended, the median is about twice the oldest age.

use crate::grid::{BINS_AN_OCTAVE, STRETCHES, TIME_BINS, bin_middle_s};
use crate::row::Age;
use alloc::boxed::Box;
use core::ops::Range;

/// Weight of the prior, requests.
const PRIOR: f32 = 0.1;
/// Its hazard a bin: half of what reaches an age ends within the next octave.
const PRIOR_HAZARD: f32 = 0.083;
/// Width of the smoothing over log-time, bins; eight draws of a coin, spread √2 bins or an eighth.
const KERNEL: [f32; 9] = [1.0, 8.0, 28.0, 56.0, 70.0, 56.0, 28.0, 8.0, 1.0];
const KERNEL_SUM: f32 = 256.0;
/// Λ is tabulated this many bins beyond both ends of the grid of times: the largest shift by a stretch.
pub(crate) const PAD: usize = STRETCHES - 1;
/// Entries of each of the two tables of Λ, of even and of odd bins.
const HALF: usize = (TIME_BINS + 2 * PAD) / 2;
const SURVIVAL_MIN: f32 = 1e-6;

/// Hazards of one class.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    ended: Box<[f32; TIME_BINS]>,
    reached: Box<[f32; TIME_BINS]>,
    /// Completions learned, faded.
    pub(crate) weight: f64,
    /// Counts since Λ was last computed.
    stale: f64,
    /// Λ at the middles of bins, even and odd bins each in a row: neighbours differ by one step of stretch.
    hazards: Box<[[f32; HALF]; 2]>,
    /// Smoothed survival at the lower edges of bins.
    survival: Box<[f32; TIME_BINS + 1]>,
}

impl Base {
    pub(crate) fn new() -> Self {
        let mut base = Self {
            ended: Box::new([0.0; TIME_BINS]),
            reached: Box::new([0.0; TIME_BINS]),
            weight: 0.0,
            stale: 0.0,
            hazards: Box::new([[0.0; HALF]; 2]),
            survival: Box::new([1.0; TIME_BINS + 1]),
        };
        base.fit();
        base
    }

    /// Takes net counts of a stretch of time, see [`Evidence`](crate::Evidence), ascending by age, moved to
    /// shorter times by `shift` bins because they were measured stretched.
    pub(crate) fn learn(&mut self, ages: &[Age], shift: usize, memory: f64) {
        let (mut end, mut reached, mut count) = (TIME_BINS, 0.0, 0.0);
        // Where bins are moved, the first counts what reached the shift, and all of it once more.
        let mut at_shift = 0.0;
        for age in ages.iter().rev() {
            let to = age.bin.saturating_sub(shift);
            // A request that reached a later bin has reached those before it.
            self.reach(to + 1..end, reached);
            (end, reached) = (to + 1, reached + age.net as f32);
            self.ended[to] += age.completed as f32;
            count += age.completed as f64;
            at_shift = if age.bin >= shift { reached } else { at_shift };
        }
        if shift > 0 {
            self.reach(0..1, at_shift);
        }
        self.reach(0..end, reached);
        self.weight += count;
        self.stale += count + 0.1;
        if self.weight > 2.0 * memory {
            self.ended.iter_mut().chain(self.reached.iter_mut()).for_each(|count| *count *= 0.5);
            self.weight *= 0.5;
        }
    }

    /// Makes all times of the base longer by this many bins, or shorter where it is negative.
    /// O([`TIME_BINS`]).
    pub(crate) fn shift(&mut self, bins: isize) {
        let all = self.reached[0];
        let moved = |counts: &[f32; TIME_BINS], below: f32, at: usize| match at.checked_add_signed(-bins) {
            Some(from) => counts.get(from).copied().unwrap_or(0.0),
            None => below,
        };
        *self.ended = core::array::from_fn(|at| moved(&self.ended, 0.0, at));
        *self.reached = core::array::from_fn(|at| moved(&self.reached, all, at));
        self.fit();
    }

    fn reach(&mut self, bins: Range<usize>, count: f32) {
        if count != 0.0 {
            self.reached[bins].iter_mut().for_each(|reached| *reached = (*reached + count).max(0.0));
        }
    }

    /// Returns true if enough was learned since the last [`fit`](Self::fit) to make a difference.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale >= 1.0 && self.stale > 0.05 * self.weight
    }

    /// Computes Λ. O([`TIME_BINS`]).
    pub(crate) fn fit(&mut self) {
        self.stale = 0.0;
        let mut hazards = [0.0_f32; TIME_BINS];
        for ((hazard, reached), ended) in hazards.iter_mut().zip(self.reached.iter()).zip(self.ended.iter()) {
            let reached = reached.max(*ended);
            let unseen = PRIOR / (reached + PRIOR);
            *hazard = (ended / (reached + PRIOR) + PRIOR_HAZARD * unseen * unseen).min(1.0);
        }
        let mut densities = [0.0_f32; TIME_BINS + KERNEL.len() - 1];
        let mut left = 1.0_f32;
        for (density, hazard) in densities[KERNEL.len() / 2..].iter_mut().zip(hazards) {
            *density = left * hazard;
            left -= *density;
        }
        let mut sums = [0.0_f32; TIME_BINS];
        for (at, weight) in KERNEL.iter().enumerate() {
            sums.iter_mut().zip(&densities[at..]).for_each(|(sum, density)| *sum += weight * density);
        }
        let hazard_max = -libm::logf(SURVIVAL_MIN);
        let mut left = 1.0_f32;
        let mut hazard = 0.0;
        for (bin, sum) in sums.into_iter().enumerate() {
            let smooth = sum / KERNEL_SUM;
            self.survival[bin] = left;
            hazard = match left > SURVIVAL_MIN {
                true => -libm::logf((left - 0.5 * smooth).max(SURVIVAL_MIN)),
                false => hazard_max,
            };
            self.put(bin + PAD, hazard);
            left = (left - smooth).max(SURVIVAL_MIN);
        }
        self.survival[TIME_BINS] = left;
        (TIME_BINS..TIME_BINS + PAD).for_each(|bin| self.put(bin + PAD, hazard));
    }

    fn put(&mut self, padded: usize, hazard: f32) {
        self.hazards[padded % 2][padded / 2] = hazard;
    }

    /// Adds Λ(t/s) of `count` requests of a bin of time, at all stretches. O([`STRETCHES`]).
    pub(crate) fn add_expected(&self, bin: usize, count: f32, expected: &mut [f32; STRETCHES]) {
        let row = &self.hazards[bin % 2][bin / 2..bin / 2 + STRETCHES];
        for (sum, hazard) in expected.iter_mut().zip(row) {
            *sum += count * hazard;
        }
    }

    /// Λ(t/s) of a bin of time at one stretch.
    pub(crate) fn hazard(&self, bin: usize, stretch: usize) -> f32 {
        self.hazards[bin % 2][bin / 2 + stretch]
    }

    /// The share of requests that take longer than a time, by its [`position`](crate::grid::position).
    pub(crate) fn survival(&self, position: f64) -> f64 {
        let at = position.clamp(0.0, TIME_BINS as f64);
        let bin = (at as usize).min(TIME_BINS - 1);
        let (low, high) = (self.survival[bin], self.survival[bin + 1]);
        f64::from(low + (high - low) * (at - bin as f64) as f32)
    }

    /// Median time, seconds. O([`TIME_BINS`]).
    pub(crate) fn median_s(&self) -> f64 {
        bin_middle_s(self.survival.partition_point(|left| *left >= 0.5).saturating_sub(1))
    }

    /// Survival at the edges of bins.
    pub(crate) fn survivals(&self) -> &[f32; TIME_BINS + 1] {
        &self.survival
    }

    /// Requests that were seen to reach an age, by its [`position`](crate::grid::position).
    pub(crate) fn reached(&self, position: f64) -> f64 {
        f64::from(self.reached[(position.max(0.0) as usize).min(TIME_BINS - 1)])
    }
}

const _: () =
    assert!((TIME_BINS + 2 * PAD).is_multiple_of(2) && BINS_AN_OCTAVE == 8.0, "two bins a step of stretch");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::grid::{CENTRE, position, time_bin};
    use crate::row::Row;
    use alloc::vec;
    use alloc::vec::Vec;

    fn learned(times_s: &[f64], in_flight_s: &[f64]) -> Base {
        let mut class = Class::new(0, 0);
        let row = |time_s: f64| Row { bin: time_bin(time_s) as u8, ..Row::default() };
        times_s.iter().for_each(|&time| class.add(&Row { completed: 1, ..row(time) }));
        in_flight_s.iter().for_each(|&age| class.add(&Row { in_flight: 1, ..row(age) }));
        class.base.learn(&class.ages, 0, 400.0);
        class.base.fit();
        class.base
    }

    fn expected(base: &Base, times_s: &[f64]) -> [f32; STRETCHES] {
        let mut sums = [0.0; STRETCHES];
        times_s.iter().for_each(|&time| base.add_expected(time_bin(time), 1.0, &mut sums));
        sums
    }

    #[test]
    fn a_request_expects_one_completion_at_the_stretch_of_its_base() {
        let uneven: Vec<f64> = (1..200).map(|i| -0.1 * libm::log(f64::from(i) / 200.0)).collect();
        for times_s in [vec![0.1; 50], uneven] {
            let sums = expected(&learned(&times_s, &[]), &times_s);
            let each = sums[CENTRE] / times_s.len() as f32;
            assert!((0.6..1.4).contains(&each), "{each}");
            assert!(sums.is_sorted(), "the larger the stretch, the fewer are expected");
        }
    }

    #[test]
    fn equal_times_show_a_stretch_of_a_fifth() {
        let base = learned(&[0.1; 50], &[]);
        let sums = expected(&base, &[0.2; 10]);
        assert!(sums[CENTRE] > 30.0 && sums[CENTRE - 8] < 1.0, "{sums:?}");
    }

    #[test]
    fn requests_in_flight_count_with_their_ages() {
        let base = learned(&[], &[1.0; 8]);
        let survival = |base: &Base, seconds: f64| base.survival(position(seconds));
        assert!(
            survival(&base, 0.8) > 0.9 && survival(&base, 2.2) < 0.7 && base.reached(position(0.9)) == 8.0
        );
        let censored = learned(&[0.1; 4], &[1.0; 4]);
        let left = survival(&censored, 0.5);
        assert!((0.4..0.6).contains(&left), "{left}");
    }
}

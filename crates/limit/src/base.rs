//! Base of a class: the distribution of its times as hazards, from censored counts.
//!
//! ```text
//! h_b = d_b / (r_b + α) + h₀ (α / (r_b + α))²     hazard of bin b: d_b ended there of r_b that reached it (Kaplan and Meier, 1958)
//! S_b = Π (1 − h_i), i < b            survival, smoothed over log-time, so that equal times are no certainty
//! Λ(t) = −ln S(t)                     cumulative hazard; its expected value at the end of a request is 1
//! ```
//!
//! Requests still in flight, and those that left without a response, count in r_b of the bins that they reached. The prior hazard h₀
//! counts where hardly any request came (α: a tenth of one): while nothing has ended, the median is about twice the oldest age.

use crate::grid::{BINS_AN_OCTAVE, STRETCHES, TIME_BINS, position};
use alloc::boxed::Box;

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

    /// Takes net counts of a stretch of time, see [`Evidence`](crate::Evidence): `net` by age, `completed` by time, both moved to shorter times
    /// by `shift` bins because they were measured stretched.
    pub(crate) fn learn(
        &mut self,
        net: &[f32; TIME_BINS],
        completed: &[f32; TIME_BINS],
        shift: usize,
        memory: f64,
    ) {
        let mut reached = 0.0;
        let mut count = 0.0;
        for bin in (0..TIME_BINS).rev() {
            reached += net[bin];
            let to = bin.saturating_sub(shift);
            // What reached a later bin has reached this one.
            if bin >= shift || bin == 0 {
                self.reached[to] = (self.reached[to] + reached).max(0.0);
            }
            self.ended[to] += completed[bin];
            count += f64::from(completed[bin]);
        }
        self.weight += count;
        self.stale += count + 0.1;
        if self.weight > 2.0 * memory {
            self.ended.iter_mut().chain(self.reached.iter_mut()).for_each(|count| *count *= 0.5);
            self.weight *= 0.5;
        }
    }

    /// Whether enough was learned since the last [`fit`](Self::fit) to make a difference.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale >= 1.0 && self.stale > 0.05 * self.weight
    }

    /// Computes Λ. O([`TIME_BINS`]).
    pub(crate) fn fit(&mut self) {
        self.stale = 0.0;
        let mut density = [0.0_f32; TIME_BINS];
        let mut left = 1.0_f32;
        for (bin, density) in density.iter_mut().enumerate() {
            let reached = self.reached[bin].max(self.ended[bin]);
            let unseen = PRIOR / (reached + PRIOR);
            let hazard = self.ended[bin] / (reached + PRIOR) + PRIOR_HAZARD * unseen * unseen;
            *density = left * hazard.min(1.0);
            left -= *density;
        }
        let half = KERNEL.len() / 2;
        let mut left = 1.0_f32;
        let mut hazard = 0.0;
        for bin in 0..TIME_BINS {
            let smooth: f32 = KERNEL
                .iter()
                .enumerate()
                .filter_map(|(at, weight)| Some(weight * density.get((bin + at).checked_sub(half)?)?))
                .sum::<f32>()
                / KERNEL_SUM;
            self.survival[bin] = left;
            hazard = -libm::logf((left - 0.5 * smooth).max(SURVIVAL_MIN));
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

    /// The share of requests that take longer than this, seconds.
    pub(crate) fn survival(&self, seconds: f64) -> f64 {
        let at = position(seconds).clamp(0.0, TIME_BINS as f64);
        let bin = (at as usize).min(TIME_BINS - 1);
        let (low, high) = (self.survival[bin], self.survival[bin + 1]);
        f64::from(low + (high - low) * (at - bin as f64) as f32)
    }

    /// Survival at the edges of bins.
    pub(crate) fn survivals(&self) -> &[f32; TIME_BINS + 1] {
        &self.survival
    }

    /// Requests that were seen to reach this age, seconds.
    pub(crate) fn reached(&self, seconds: f64) -> f64 {
        f64::from(self.reached[(position(seconds).max(0.0) as usize).min(TIME_BINS - 1)])
    }
}

const _: () =
    assert!((TIME_BINS + 2 * PAD).is_multiple_of(2) && BINS_AN_OCTAVE == 8.0, "two bins a step of stretch");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{CENTRE, time_bin};
    use alloc::vec;
    use alloc::vec::Vec;

    fn learned(times_s: &[f64], in_flight_s: &[f64]) -> Base {
        let (mut net, mut completed) = ([0.0; TIME_BINS], [0.0; TIME_BINS]);
        for &time in times_s {
            net[time_bin(time)] += 1.0;
            completed[time_bin(time)] += 1.0;
        }
        in_flight_s.iter().for_each(|&age| net[time_bin(age)] += 1.0);
        let mut base = Base::new();
        base.learn(&net, &completed, 0, 400.0);
        base.fit();
        base
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
        assert!(base.survival(0.8) > 0.9 && base.survival(2.2) < 0.7 && base.reached(0.9) == 8.0);
        let censored = learned(&[0.1; 4], &[1.0; 4]);
        assert!((0.4..0.6).contains(&censored.survival(0.5)), "{}", censored.survival(0.5));
    }
}

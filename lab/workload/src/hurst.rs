//! Estimate of the Hurst parameter, the burstiness of arrivals over long times, made as they pass.
//!
//! **What.** Where H is 0.5, as for Poisson arrivals, counts over longer times even out as fast as
//! independent ones do; between 0.5 and 1 they stay uneven (long-range dependence); below 0.5 they are more
//! regular.
//!
//! **How.** The wavelet estimator of P. Abry and D. Veitch ("Wavelet analysis of long-range-dependent
//! traffic", 1998): arrivals are counted in bins, the counts go through a pyramid of Daubechies filters with
//! two vanishing moments, and the mean energy of each octave's details grows as 2^(octave · (2H − 1)). A
//! weighted regression of its logarithm on the octave, each corrected for the logarithm's bias, gives H.
//!
//! **Why not something simpler.** Rescaled range and variance over time are biased by 0.05 and more at these
//! lengths and give no confidence interval; the Haar wavelet (one vanishing moment) takes a steadily rising
//! rate for burstiness, which two vanishing moments do not see. A rate that jumps is still seen as
//! burstiness.
//!
//! **Octaves used.** Never the first two: they are distorted by the counting. Then from the first octave on
//! from which a straight line fits (chi-squared against the interval's own variances), for at times shorter
//! than those of a session, say, counts scale in another way; up to the last with sixteen coefficients.
//!
//! **Error.** With enough data the bias is below 0.01 and the interval that of Gaussian counts, widened where
//! the coefficients' fourth moment is larger than Gaussian. Ten thousand bins give about ±0.04.
//!
//! **Cost.** About 15 ns for each bin; O(log bins) memory, bounded.

use flashweir_core::limits::HURST_BINS;
use std::f64::consts::LN_2;
use std::time::Duration;

/// Octaves kept: a pyramid over all bins there may be is no higher.
const OCTAVES: usize = HURST_BINS.ilog2() as usize;
/// The first octave used (from 1): those before differ from the limit by how counts stand in for the
/// wavelet's own averages, at most 0.005 in H from here on.
const FIRST_OCTAVE: usize = 3;
/// Octaves a line is fitted to at least; two fit always.
const OCTAVES_LEAST: usize = 3;
/// Coefficients below which an octave's energy is too uncertain to be of use.
const COEFFICIENTS_LEAST: u64 = 16;
/// Standard deviations by which the chi-squared of a line that is accepted may exceed its mean.
const MISFIT: f64 = 4.0;
/// Deviation of the octaves of real processes from a straight line that is assumed besides noise (standard
/// deviation of the base-two logarithm: 1.4 % of the energy). Without it, much data would refute any line and
/// any interval.
const MODEL_DEVIATION: f64 = 0.02;
/// Quantile of the normal distribution for an interval that holds the truth 95 % of the time.
const NORMAL_95: f64 = 1.96;
/// A detail of so small a share of the values it is taken from is rounding: a thousand times their precision.
const ROUNDING: f64 = 1e-13;
/// Daubechies' scaling filter with two vanishing moments: (1 ± √3)/(4√2) and (3 ± √3)/(4√2).
const FILTER: [f64; 4] =
    [0.482_962_913_144_534_1, 0.836_516_303_737_807_9, 0.224_143_868_042_013_4, -0.129_409_522_551_260_38];

/// Estimates the Hurst parameter of arrivals as they pass.
///
/// ```
/// use flashweir_workload::{ArrivalProcess, HurstEstimator, RateProfile};
/// use std::time::Duration;
/// let people = ArrivalProcess::Poisson(RateProfile::constant(1000.0, Duration::from_secs(200))?);
/// let mut estimator = HurstEstimator::new(Duration::from_millis(10));
/// people.moments(1).for_each(|moment| estimator.arrive(moment));
/// let hurst = estimator.estimate().ok_or("too few arrivals")?;
/// assert!(hurst.low < 0.5 && 0.5 < hurst.high, "{hurst:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HurstEstimator {
    bin_ns: u128,
    /// Bins that are complete.
    bins: u64,
    /// Arrivals in the bin under way.
    count: u64,
    octaves: [Octave; OCTAVES],
}

/// An estimate of the Hurst parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Hurst {
    /// The estimate; noise may carry it beyond 0 and 1.
    pub h: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The octaves it rests on: octave j compares times of bin · 2^j.
    pub octaves: std::ops::RangeInclusive<u32>,
}

impl HurstEstimator {
    /// Counts in bins of this width, at least 1 ns. For self-similar arrivals the gap of their sessions
    /// serves best, for others what holds a few arrivals; narrower bins cost time, wider ones leave fewer
    /// octaves.
    #[must_use]
    pub fn new(bin: Duration) -> Self {
        let octaves = [Octave::default(); OCTAVES];
        Self { bin_ns: bin.as_nanos().max(1), bins: 0, count: 0, octaves }
    }

    /// Counts an arrival at an offset from the start. One before the bin under way counts in that. Costs the
    /// bins passed since the one before; arrivals beyond [`HURST_BINS`] bins are left out.
    pub fn arrive(&mut self, moment: Duration) {
        self.advance(moment);
        self.count += u64::from(self.bins < HURST_BINS);
    }

    /// Advances without an arrival: empty bins up to the end of a run count too.
    pub fn advance(&mut self, moment: Duration) {
        let bin = u64::try_from(moment.as_nanos() / self.bin_ns).unwrap_or(u64::MAX).min(HURST_BINS);
        while self.bins < bin {
            let count = std::mem::take(&mut self.count);
            self.complete(count as f64);
            self.bins += 1;
        }
    }

    /// H by all complete bins; `None` if they are too few (fewer than 574), or so regular that nothing
    /// varies.
    #[must_use]
    pub fn estimate(&self) -> Option<Hurst> {
        let points: Vec<_> =
            self.octaves.iter().zip(1..).skip(FIRST_OCTAVE - 1).map_while(Point::new).collect();
        // At least half of the octaves: one odd energy among the last must not throw away all the certain
        // ones.
        let lines = (0..=points.len() / 2).map_while(|first| Line::fit(&points[first..]));
        let lines: Vec<_> = lines.collect();
        let best = || lines.iter().min_by(|one, other| one.misfit.total_cmp(&other.misfit));
        let line = lines.iter().find(|line| line.misfit <= MISFIT).or_else(best)?;
        let half_width = NORMAL_95 * line.slope_deviation / 2.0;
        let h = (line.slope + 1.0) / 2.0;
        Some(Hurst { h, low: h - half_width, high: h + half_width, octaves: line.octaves.clone() })
    }

    /// Feeds a bin's count to the pyramid: each octave hands one value on for each two it gets.
    fn complete(&mut self, count: f64) {
        let mut value = count;
        for octave in &mut self.octaves {
            match octave.push(value) {
                Some(average) => value = average,
                None => break,
            }
        }
    }
}

/// One step of the pyramid.
#[derive(Clone, Copy, Debug, Default)]
struct Octave {
    latest: [f64; FILTER.len()],
    values: u64,
    coefficients: u64,
    /// Sums of the coefficients' second and fourth powers.
    squares: f64,
    fourths: f64,
}

impl Octave {
    /// Takes a value; at each second one, once the filter is filled, keeps the detail and yields the average.
    fn push(&mut self, value: f64) -> Option<f64> {
        self.latest.rotate_left(1);
        self.latest[FILTER.len() - 1] = value;
        self.values += 1;
        if self.values < FILTER.len() as u64 || self.values % 2 == 1 {
            return None;
        }
        let [a, b, c, d] = self.latest;
        let [p, q, r, s] = FILTER;
        let detail = s * a - r * b + q * c - p * d;
        // Counts that are all the same have no detail but what rounding leaves, and that has no slope.
        let rounding = ROUNDING * (a.abs() + b.abs() + c.abs() + d.abs());
        let square = if detail.abs() > rounding { detail * detail } else { 0.0 };
        self.coefficients += 1;
        self.squares += square;
        self.fourths += square * square;
        Some(p * a + q * b + r * c + s * d)
    }
}

/// An octave's place in the regression.
#[derive(Clone, Copy, Debug)]
struct Point {
    octave: u32,
    /// Base-two logarithm of the mean energy, its bias taken away.
    log_energy: f64,
    /// One over its variance if coefficients were Gaussian.
    weight: f64,
    /// Its variance as it seems to be.
    variance: f64,
}

impl Point {
    fn new((octave, place): (&Octave, u32)) -> Option<Self> {
        if octave.coefficients < COEFFICIENTS_LEAST || octave.squares <= 0.0 {
            return None;
        }
        let coefficients = octave.coefficients as f64;
        let energy = octave.squares / coefficients;
        // The logarithm of a mean of n squared Gaussians: mean ψ(n/2) − ln(n/2) and variance ζ(2, n/2), both
        // by their asymptotic series, good to 1e-5 from n = 16 on.
        let half = coefficients / 2.0;
        let bias = -1.0 / (2.0 * half) - 1.0 / (12.0 * half * half);
        let gaussian = (1.0 / half + 1.0 / (2.0 * half * half) + 1.0 / (6.0 * half.powi(3))) / (LN_2 * LN_2);
        let kurtosis = octave.fourths / coefficients / (energy * energy);
        Some(Self {
            octave: place,
            log_energy: libm::log2(energy) - bias / LN_2,
            weight: 1.0 / gaussian,
            // A Gaussian's is 3. Never narrower: in few coefficients the kurtosis seems smaller than it is.
            variance: gaussian * ((kurtosis - 1.0) / 2.0).max(1.0) + MODEL_DEVIATION * MODEL_DEVIATION,
        })
    }
}

/// A weighted least-squares line through points.
#[derive(Clone, Debug)]
struct Line {
    slope: f64,
    slope_deviation: f64,
    /// Chi-squared of the residuals: how many of its standard deviations it is above its mean.
    misfit: f64,
    octaves: std::ops::RangeInclusive<u32>,
}

impl Line {
    fn fit(points: &[Point]) -> Option<Self> {
        let [first, .., last] = points else { return None };
        if points.len() < OCTAVES_LEAST {
            return None;
        }
        let sum = |term: &dyn Fn(&Point) -> f64| points.iter().map(term).sum::<f64>();
        let weights = sum(&|point| point.weight);
        let mean_x = sum(&|point| point.weight * f64::from(point.octave)) / weights;
        let mean_y = sum(&|point| point.weight * point.log_energy) / weights;
        let x = |point: &Point| f64::from(point.octave) - mean_x;
        let spread = sum(&|point| point.weight * x(point).powi(2));
        let slope = sum(&|point| point.weight * x(point) * (point.log_energy - mean_y)) / spread;
        let slope_variance = sum(&|point| (point.weight * x(point) / spread).powi(2) * point.variance);
        let residual = |point: &Point| point.log_energy - mean_y - slope * x(point);
        let chi_squared = sum(&|point| residual(point).powi(2) / point.variance);
        let freedom = points.len() as f64 - 2.0;
        Some(Self {
            slope,
            slope_deviation: slope_variance.sqrt(),
            misfit: (chi_squared - freedom) / (2.0 * freedom).sqrt(),
            octaves: first.octave..=last.octave,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::{ArrivalProcess, SelfSimilarity};
    use crate::profile::RateProfile;

    const GAP: Duration = Duration::from_millis(10);

    fn estimate(process: &ArrivalProcess, bin: Duration, seed: u64) -> Hurst {
        let mut estimator = HurstEstimator::new(bin);
        process.moments(seed).for_each(|moment| estimator.arrive(moment));
        estimator.estimate().unwrap()
    }

    fn self_similar(alpha: f64, rate: f64, seconds: u64) -> ArrivalProcess {
        let profile = RateProfile::constant(rate, Duration::from_secs(seconds)).unwrap();
        ArrivalProcess::self_similar(profile, SelfSimilarity::new(alpha, GAP).unwrap()).unwrap()
    }

    fn poisson(rate: f64, seconds: u64) -> ArrivalProcess {
        ArrivalProcess::Poisson(RateProfile::constant(rate, Duration::from_secs(seconds)).unwrap())
    }

    #[test]
    fn poisson_arrivals_have_half_for_each_seed() {
        for seed in 0..10 {
            let hurst = estimate(&poisson(1000.0, 600), GAP, seed);
            assert!((hurst.h - 0.5).abs() < 0.03, "seed {seed}: {hurst:?}");
        }
    }

    /// Sessions with α = 1.4 have H = 0.80 ± 0.04.
    #[test]
    fn self_similar_arrivals_have_what_theory_says_for_each_seed() {
        for seed in 0..10 {
            let hurst = estimate(&self_similar(1.4, 1000.0, 600), GAP, seed);
            assert!((hurst.h - 0.8).abs() < 0.04, "seed {seed}: {hurst:?}");
        }
    }

    #[test]
    fn heavier_tails_are_burstier() {
        for (alpha, wanted) in [(1.2, 0.9), (1.6, 0.7)] {
            for seed in 0..3 {
                let hurst = estimate(&self_similar(alpha, 1000.0, 300), GAP, seed);
                assert!((hurst.h - wanted).abs() < 0.05, "{alpha}, seed {seed}: {hurst:?}");
            }
        }
    }

    /// At times well below a gap the requests of different sessions are independent, so the finest octaves
    /// show 0.5. The line must begin above them.
    #[test]
    fn octaves_that_scale_otherwise_are_left_out() {
        let hurst = estimate(&self_similar(1.4, 1000.0, 300), GAP / 16, 1);
        assert!((hurst.h - 0.8).abs() < 0.05 && *hurst.octaves.start() > 4, "{hurst:?}");
    }

    /// The use of two vanishing moments.
    #[test]
    fn a_steady_rise_is_no_burstiness() {
        let length = Duration::from_secs(300);
        let ramp = RateProfile::ramp(500.0, 1500.0, length, length).unwrap();
        let hurst = estimate(&ArrivalProcess::Poisson(ramp), GAP, 2);
        assert!((hurst.h - 0.5).abs() < 0.03, "{hurst:?}");
    }

    /// An interval that says 95 % must hold the truth about that often: at least 85 of 100 short runs, where
    /// a true 95 % would fail once in ten thousand times.
    #[test]
    fn the_interval_holds_the_truth_nearly_always() {
        let held = |seed: &u64| {
            let hurst = estimate(&poisson(500.0, 20), GAP, *seed);
            hurst.low < 0.5 && 0.5 < hurst.high
        };
        let count = (0..100).filter(held).count();
        assert!(count >= 85, "{count} of 100");
    }

    #[test]
    fn too_little_or_too_regular_data_give_no_estimate() {
        let mut estimator = HurstEstimator::new(GAP);
        assert_eq!(estimator.estimate(), None);
        (0..300).for_each(|bin| estimator.arrive(GAP * (bin + bin * bin % 7)));
        assert_eq!(estimator.estimate(), None);
        let mut regular = HurstEstimator::new(GAP);
        regular.advance(GAP * 100_000);
        assert_eq!(regular.estimate(), None);
        let mut even = HurstEstimator::new(GAP);
        let profile = RateProfile::constant(1000.0, Duration::from_secs(100)).unwrap();
        ArrivalProcess::Constant(profile).moments(1).for_each(|moment| even.arrive(moment));
        assert_eq!(even.estimate(), None);
    }

    /// A moment centuries away must not keep the estimator counting empty bins.
    #[test]
    fn a_huge_pause_is_bounded() {
        let mut estimator = HurstEstimator::new(Duration::from_nanos(1));
        estimator.bins = HURST_BINS - 3;
        estimator.arrive(Duration::MAX);
        assert_eq!((estimator.bins, estimator.count), (HURST_BINS, 0));
    }
}

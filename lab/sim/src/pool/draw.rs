//! Counts and sums drawn as a whole.

use flashweir_core::Rng;

/// Above this mean a Poisson number is drawn as a rounded normal one: its skewness is then below 0.15.
const NORMAL_FROM: f64 = 50.0;

/// A Poisson number of this mean. O(mean) below 50, O(1) above.
pub(super) fn poisson(rng: &mut Rng, mean: f64) -> u64 {
    if mean <= 0.0 || mean.is_nan() {
        return 0;
    }
    if mean >= NORMAL_FROM {
        // `as` saturates at zero.
        return libm::round(mean + libm::sqrt(mean) * normal(rng)) as u64;
    }
    let least = libm::exp(-mean);
    let mut product = rng.unit_f64();
    let mut count = 0;
    while product > least {
        product *= rng.unit_f64();
        count += 1;
    }
    count
}

/// The sum of `count` times of this mean and squared coefficient of variation, as a normal number; never less
/// than a tenth of its mean.
pub(super) fn sum_s(rng: &mut Rng, count: u64, mean_s: f64, squared_variation: f64) -> f64 {
    let count = count as f64;
    let expected_s = count * mean_s;
    (expected_s + libm::sqrt(count * squared_variation) * mean_s * normal(rng)).max(0.1 * expected_s)
}

/// A standard normal number (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(2.0 * rng.exponential(1.0));
    radius * libm::cos(core::f64::consts::TAU * rng.unit_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_mean_and_variance_asked_for() {
        let mut rng = Rng::new(1);
        for mean in [0.3, 5.0, 49.0, 51.0, 2_000.0] {
            let drawn: Vec<f64> = (0..20_000).map(|_| poisson(&mut rng, mean) as f64).collect();
            moments(&drawn, mean, mean);
        }
        assert_eq!((poisson(&mut rng, 0.0), poisson(&mut rng, f64::NAN)), (0, 0));
        let drawn: Vec<f64> = (0..20_000).map(|_| sum_s(&mut rng, 400, 0.01, 2.0)).collect();
        moments(&drawn, 4.0, 400.0 * 2.0 * 1e-4);
    }

    fn moments(drawn: &[f64], mean: f64, variance: f64) {
        let count = drawn.len() as f64;
        let found = drawn.iter().sum::<f64>() / count;
        let spread = drawn.iter().map(|value| (value - found).powi(2)).sum::<f64>() / count;
        assert!((found - mean).abs() < 5.0 * (variance / count).sqrt() + 0.01 * mean, "{found} for {mean}");
        assert!((spread / variance - 1.0).abs() < 0.06, "{spread} for {variance}");
    }
}

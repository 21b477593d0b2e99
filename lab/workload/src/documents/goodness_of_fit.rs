//! Do draws fit a distribution? Both tests at the 1 % level, for tests with fixed seeds.

/// Pearson's chi-square: do the counts fit the probabilities? Those of probability zero must have none.
pub(crate) fn chi_square_fits(counts: &[u64], probabilities: &[f64]) -> bool {
    assert_eq!(counts.len(), probabilities.len());
    let total = counts.iter().sum::<u64>() as f64;
    let (mut statistic, mut cells) = (0.0, 0.0);
    for (count, probability) in counts.iter().zip(probabilities) {
        let expected = probability * total;
        if expected == 0.0 {
            if *count > 0 {
                return false;
            }
            continue;
        }
        assert!(expected >= 5.0, "a cell that expects {expected} draws makes the test invalid: draw more");
        statistic += (*count as f64 - expected).powi(2) / expected;
        cells += 1.0;
    }
    statistic < chi_square_critical(cells - 1.0)
}

/// Kolmogorov and Smirnov: does the sample fit the continuous distribution? (Asymptotic: 1.628/√n.)
pub(crate) fn kolmogorov_smirnov_fits(sample: &[f64], distribution: impl Fn(f64) -> f64) -> bool {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let distance = sorted.iter().enumerate().map(|(index, value)| {
        let (below, above) = (index as f64 / count, (index + 1) as f64 / count);
        let expected = distribution(*value);
        (expected - below).abs().max((above - expected).abs())
    });
    distance.fold(0.0, f64::max) < 1.628 / count.sqrt()
}

/// The 99 % quantile by Wilson and Hilferty's cube, within 1 % from two degrees of freedom on.
fn chi_square_critical(degrees: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + 2.326 * ninth.sqrt()).powi(3)
}

#[test]
fn critical_values_are_those_of_the_tables() {
    for (degrees, table) in [(3.0, 11.345), (10.0, 23.209), (100.0, 135.807), (1000.0, 1106.969)] {
        assert!((chi_square_critical(degrees) / table - 1.0).abs() < 0.01, "{degrees}");
    }
}

//! One number over several seeds.

/// Mean, least and most of a number over the seeds that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// Seeds without the number: a crowd that was not found has no delay.
    pub missing: u32,
}

impl Spread {
    /// Of some numbers, one for each seed; not a number where a seed has none. None where no seed has one.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (values, missing): (Vec<f64>, Vec<f64>) = values.into_iter().partition(|value| !value.is_nan());
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self { mean, least, most, missing: missing.len() as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_mean_least_and_most_and_counts_seeds_without_a_number() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        let spread = Spread { mean: 2.0, least: 1.0, most: 3.0, missing: 0 };
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(spread));
        assert_eq!(Spread::of([3.0, f64::NAN, 1.0]), Some(Spread { missing: 1, ..spread }));
    }
}

//! Drawing one of many weighted alternatives in constant time.

use super::popularity_error::PopularityError;
use flashweir_core::Rng;
use flashweir_core::limits::DOCUMENTS;
use std::sync::Arc;

/// A table from which alternative `i` is drawn with a probability proportional to its weight.
///
/// Walker's alias method ("An efficient method for generating discrete random variables with general
/// distributions", ACM TOMS 3(3), 1977) with Vose's linear construction (IEEE TSE 17(9), 1991): every column
/// holds one alternative up to a threshold and one other above it, so a draw is one random number, one
/// comparison and one look-up, however many alternatives there are. Thresholds are 32-bit, so a probability
/// is off by less than 2⁻³² of a column. Clones share the table: 8 bytes an alternative.
///
/// ```
/// use flashweir_core::Rng;
/// use flashweir_workload::documents::Alias;
/// let dice = Alias::new([1.0, 0.0, 3.0])?;
/// let mut rng = Rng::new(1);
/// assert!((0..100).all(|_| dice.draw(&mut rng) != 1));
/// # Ok::<(), flashweir_workload::documents::PopularityError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Never empty, and no longer than [`DOCUMENTS`].
    columns: Arc<[Column]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    /// The column is its own alternative below this many parts in 2³² ...
    threshold: u32,
    /// ... and this one from there on.
    other: u32,
}

impl Alias {
    /// A table of the given weights; they need not sum to one. O(n) time; 20 bytes a weight while it is made.
    ///
    /// # Errors
    /// No weights, more than [`DOCUMENTS`], one that is negative, infinite or not a number, or all of them
    /// zero.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Result<Self, PopularityError> {
        let mut shares: Vec<f64> = weights.into_iter().take(DOCUMENTS + 1).collect();
        scale_to_mean_one(&mut shares)?;
        Ok(Self { columns: columns(&mut shares).into() })
    }

    /// Number of alternatives, those of weight zero included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// One alternative, counted from zero. O(1): one random number; about 5 ns while the table fits the
    /// cache.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let product = u128::from(rng.next_u64()) * self.columns.len() as u128;
        // The whole part is the column; with at most 2²⁴ columns the next 32 bits are as good as fresh ones.
        let (index, part) = ((product >> 64) as usize, (product >> 32) as u32);
        let column = self.columns[index];
        if part < column.threshold { index as u32 } else { column.other }
    }
}

/// Checks the weights and divides them by their mean.
fn scale_to_mean_one(weights: &mut [f64]) -> Result<(), PopularityError> {
    if weights.is_empty() {
        return Err(PopularityError::NoDocuments);
    }
    if weights.len() > DOCUMENTS {
        return Err(PopularityError::TooManyDocuments);
    }
    if let Some(index) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        return Err(PopularityError::NotAWeight { index, weight: weights[index] });
    }
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(PopularityError::AllZero);
    }
    // By the largest first: the sum of huge weights would be infinite.
    weights.iter_mut().for_each(|weight| *weight /= largest);
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    Ok(())
}

/// Fills every column that is short with part of one that has more than enough. The shares have mean one.
fn columns(shares: &mut [f64]) -> Vec<Column> {
    // A column left over at the end is full but for rounding, and is its own alternative throughout.
    let mut columns: Vec<_> =
        (0..shares.len() as u32).map(|own| Column { threshold: u32::MAX, other: own }).collect();
    let (mut short, mut ample): (Vec<u32>, Vec<u32>) =
        (0..shares.len() as u32).partition(|index| shares[*index as usize] < 1.0);
    while let (Some(small), Some(&large)) = (short.pop(), ample.last()) {
        let share = shares[small as usize];
        columns[small as usize] = Column { threshold: (share * TWO_TO_32) as u32, other: large };
        let rest = (shares[large as usize] + share) - 1.0;
        shares[large as usize] = rest;
        if rest < 1.0 {
            ample.pop();
            short.push(large);
        }
    }
    columns
}

const TWO_TO_32: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::chi_square_fits;
    use flashweir_core::Rng;
    use proptest::prelude::*;

    /// The probabilities with which the table really draws: the sum over its columns, exact but for the
    /// 32-bit thresholds.
    fn probabilities(table: &Alias) -> Vec<f64> {
        let mut sums = vec![0.0; table.count()];
        for (index, column) in table.columns.iter().enumerate() {
            let own = f64::from(column.threshold) / TWO_TO_32;
            sums[index] += own / table.count() as f64;
            sums[column.other as usize] += (1.0 - own) / table.count() as f64;
        }
        sums
    }

    #[test]
    fn draws_fit_their_weights_and_no_others() {
        let table = Alias::new([5.0, 1.0, 0.5, 3.5]).unwrap();
        let mut rng = Rng::new(11);
        let mut counts = [0u64; 4];
        (0..100_000).for_each(|_| counts[table.draw(&mut rng) as usize] += 1);
        assert!(chi_square_fits(&counts, &[0.5, 0.1, 0.05, 0.35]));
        assert!(!chi_square_fits(&counts, &[0.49, 0.11, 0.05, 0.35]));
    }

    #[test]
    fn one_alternative_is_always_drawn() {
        let table = Alias::new([f64::MIN_POSITIVE]).unwrap();
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| table.draw(&mut rng) == 0));
    }

    #[test]
    fn huge_and_tiny_weights_are_weighed() {
        let table = Alias::new([f64::MAX, f64::MAX, f64::MIN_POSITIVE]).unwrap();
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| table.draw(&mut rng) < 2));
    }

    #[test]
    fn wrong_weights_are_refused() {
        assert_eq!(Alias::new([]), Err(PopularityError::NoDocuments));
        assert_eq!(Alias::new([0.0, 0.0]), Err(PopularityError::AllZero));
        assert_eq!(Alias::new(std::iter::repeat(1.0)), Err(PopularityError::TooManyDocuments));
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            let said = Alias::new([1.0, wrong]).unwrap_err().to_string();
            assert!(said.contains("document 1") && said.contains(&wrong.to_string()), "{said}");
        }
    }

    proptest! {
        #[test]
        fn the_table_has_the_probabilities_asked_for(
            weights in proptest::collection::vec(prop_oneof![Just(0.0), 1e-9..1e9f64, 0.0..1.0f64], 1..300)
        ) {
            let sum: f64 = weights.iter().sum();
            prop_assume!(sum > 0.0);
            let table = Alias::new(weights.iter().copied()).unwrap();
            for (drawn, weight) in probabilities(&table).iter().zip(&weights) {
                prop_assert!((drawn - weight / sum).abs() < 1e-9, "{drawn} for {}", weight / sum);
            }
            let mut rng = Rng::new(weights.len() as u64);
            for _ in 0..1000 {
                prop_assert!(weights[table.draw(&mut rng) as usize] > 0.0);
            }
        }
    }
}

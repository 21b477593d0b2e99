//! A settled histogram in few bytes: only the counters that are not zero.

use super::bucket::{BUCKETS, Bucket};
use super::{Histogram, quantile};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A counter and its place share one word: 9 bits suffice for 465 places, and the other 55 for a count.
const COUNT_BITS: u32 = 55;
/// The highest count kept for one bucket, 2⁵⁵ − 1: a thousand million a second for a year.
pub const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const _: () = assert!(BUCKETS < 1 << (u64::BITS - COUNT_BITS));

/// A histogram nothing is recorded into any more: 8 bytes for each bucket in use (a second of latencies uses
/// 20 to 60), where the dense form takes 3.7 kB. Exact: it turns back into the [`Histogram`] it was made
/// from.
///
/// ```
/// use flashweir_core::measure::histogram::{Histogram, Sparse};
/// let mut second = Histogram::new();
/// second.record(1_500);
/// let settled = Sparse::from_dense(&second);
/// let mut run = Histogram::new();
/// settled.add_to(&mut run);
/// assert_eq!(run, second);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse(Box<[u64]>);

/// Pairs that are no histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairsError {
    /// No such bucket.
    #[error("pair {position} names bucket {index}, but the last one is {}", BUCKETS - 1)]
    Index {
        /// Number of the pair, from 0.
        position: usize,
        /// The bucket it names.
        index: u64,
    },
    /// A bucket twice, or after a higher one.
    #[error("pair {position} names bucket {index}, which is not above the bucket before it")]
    Order {
        /// Number of the pair, from 0.
        position: usize,
        /// The bucket it names.
        index: u64,
    },
    /// More than [`COUNT_MAX`].
    #[error("pair {position} counts {count}, more than the {COUNT_MAX} that can be")]
    Count {
        /// Number of the pair, from 0.
        position: usize,
        /// The count it gives.
        count: u64,
    },
}

impl Sparse {
    /// The same counts; those above [`COUNT_MAX`] become that. O([`BUCKETS`]).
    #[must_use]
    pub fn from_dense(dense: &Histogram) -> Self {
        Self(dense.buckets().map(|bucket| pack(bucket.index, bucket.count)).collect())
    }

    /// A histogram from bucket indices and counts, as [`pairs`](Self::pairs) gives them; zeros are left out.
    ///
    /// # Errors
    /// [`PairsError`] for the first pair whose index is out of range or not above the one before, or whose
    /// count is too high. No more than [`BUCKETS`] pairs are read before that must happen.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, PairsError> {
        let mut words = Vec::new();
        let mut next = 0;
        for (position, (index, count)) in pairs.into_iter().enumerate() {
            // An index that does not fit 16 bits is far beyond the last bucket.
            let place = u16::try_from(index).ok().filter(|&place| usize::from(place) < BUCKETS);
            let place = place.ok_or(PairsError::Index { position, index })?;
            if index < next {
                return Err(PairsError::Order { position, index });
            }
            if count > COUNT_MAX {
                return Err(PairsError::Count { position, count });
            }
            if count > 0 {
                words.push(pack(place, count));
            }
            next = index + 1;
        }
        Ok(Self(words.into_boxed_slice()))
    }

    /// Bucket indices and counts, lowest first, for writing to a file.
    pub fn pairs(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().map(|&word| unpack(word))
    }

    /// The buckets in use, lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.pairs().map(|(index, count)| Bucket::at(index, count))
    }

    /// Adds every count to `dense`. O(buckets in use).
    pub fn add_to(&self, dense: &mut Histogram) {
        self.pairs().for_each(|(index, count)| dense.add_count(index, count));
    }

    /// Number of recorded values. O(buckets in use).
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pairs().fold(0, |total, (_, count)| total.saturating_add(count))
    }

    /// As [`Histogram::quantile`].
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        quantile(self.buckets(), self.count(), share)
    }
}

impl From<&Histogram> for Sparse {
    fn from(dense: &Histogram) -> Self {
        Self::from_dense(dense)
    }
}

const fn pack(index: u16, count: u64) -> u64 {
    (index as u64) << COUNT_BITS | if count > COUNT_MAX { COUNT_MAX } else { count }
}

const fn unpack(word: u64) -> (u16, u64) {
    ((word >> COUNT_BITS) as u16, word & COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn pairs_from_a_file_are_checked() {
        let check = |pairs: &[(u64, u64)]| Sparse::from_pairs(pairs.iter().copied());
        assert_eq!(check(&[(3, 1), (464, 9)]).map(|read| read.count()), Ok(10));
        assert_eq!(check(&[(3, 0), (4, 1)]).map(|read| read.pairs().count()), Ok(1));
        assert_eq!(check(&[(465, 1)]), Err(PairsError::Index { position: 0, index: 465 }));
        assert_eq!(check(&[(0, 1), (65_536, 1)]), Err(PairsError::Index { position: 1, index: 65_536 }));
        assert_eq!(check(&[(4, 1), (4, 1)]), Err(PairsError::Order { position: 1, index: 4 }));
        assert_eq!(check(&[(4, 0), (3, 1)]), Err(PairsError::Order { position: 1, index: 3 }));
        let too_many = check(&[(4, u64::MAX)]).expect_err("no run counts as far");
        assert_eq!(
            too_many.to_string(),
            "pair 0 counts 18446744073709551615, more than the 36028797018963967 that can be"
        );
    }

    #[test]
    fn nothing_is_nothing() {
        let nothing = Sparse::from_dense(&Histogram::new());
        assert_eq!((nothing.count(), nothing.quantile(0.5), nothing.buckets().count()), (0, None, 0));
        assert_eq!(nothing, Sparse::default());
    }
}

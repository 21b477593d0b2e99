//! Small sets of indices: which places of a table are in use, so that a pass visits these alone.

/// A set of indices below 64 · `WORDS`, one bit each.
///
/// ```
/// use flashweir_core::BitSet;
/// let mut used = BitSet::<2>::default();
/// [70, 3, 3].into_iter().for_each(|index| used.insert(index));
/// assert!(used.iter().eq([3, 70]));
/// used.remove(3);
/// assert!(used.iter().eq([70]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSet<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for BitSet<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl<const WORDS: usize> BitSet<WORDS> {
    /// Adds an index.
    ///
    /// # Panics
    /// If it is not below 64 · `WORDS`.
    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.0[index / BITS] |= 1 << (index % BITS);
    }

    /// Takes an index out.
    ///
    /// # Panics
    /// If it is not below 64 · `WORDS`.
    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.0[index / BITS] &= !(1 << (index % BITS));
    }

    /// Takes all out.
    #[inline]
    pub fn clear(&mut self) {
        self.0 = [0; WORDS];
    }

    /// Number of indices.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns true if there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The indices, ascending, as they are now. O(`WORDS` + indices).
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(place, word)| {
            let words = core::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)));
            words.take_while(|&word| word != 0).map(move |word| place * BITS + word.trailing_zeros() as usize)
        })
    }
}

const BITS: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(changes in proptest::collection::vec((any::<bool>(), 0_usize..192), 0..300)) {
            let (mut set, mut model) = (BitSet::<3>::default(), BTreeSet::new());
            for (adds, index) in changes {
                if adds {
                    set.insert(index);
                    model.insert(index);
                } else {
                    set.remove(index);
                    model.remove(&index);
                }
                prop_assert!(set.iter().eq(model.iter().copied()));
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            }
            set.clear();
            prop_assert_eq!(set, BitSet::default());
        }
    }
}

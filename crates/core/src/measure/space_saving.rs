//! Heavy hitters in fixed memory: Space-Saving (Metwally, Agrawal, El Abbadi 2005).
//!
//! NEWS §4.4 replaces the smallest entry and starts the newcomer at one, so a busy table churns for ever;
//! here the newcomer **inherits the victim's count**. Guarantees with N entries over `total` hits: a reported
//! count exceeds the truth by at most `total / N`, and every key with more than `total / N` hits is in the
//! table.
//!
//! Cost: a scan of N keys (64 keys: about 20 ns); 16·N bytes; no allocation.

/// The N busiest keys.
///
/// ```
/// use flashweir_core::measure::SpaceSaving;
/// let mut table = SpaceSaving::<2>::default();
/// for key in [7, 7, 7, 8, 9] {
///     table.hit(key, 1);
/// }
/// assert_eq!(table.iter().max_by_key(|entry| entry.1), Some((7, 3)));
/// ```
#[derive(Clone, Debug)]
pub struct SpaceSaving<const N: usize> {
    keys: [u64; N],
    hits: [u64; N],
    used: usize,
    replaced: u64,
}

impl<const N: usize> Default for SpaceSaving<N> {
    fn default() -> Self {
        Self { keys: [0; N], hits: [0; N], used: 0, replaced: 0 }
    }
}

impl<const N: usize> SpaceSaving<N> {
    /// Counts `hits` for `key`. Returns its index, and whether it was there before: a caller that keeps more
    /// about each key keeps it by index and resets it where the key is new. None for a table without entries.
    pub fn hit(&mut self, key: u64, hits: u64) -> Option<(usize, bool)> {
        if let Some(index) = self.position(key) {
            self.hits[index] = self.hits[index].saturating_add(hits);
            return Some((index, true));
        }
        let index = if self.used < N {
            self.hits[self.used] = 0;
            self.used += 1;
            self.used - 1
        } else {
            let victim = (0..N).min_by_key(|&index| self.hits[index])?;
            self.replaced += 1;
            victim
        };
        self.keys[index] = key;
        self.hits[index] = self.hits[index].saturating_add(hits);
        Some((index, false))
    }

    /// The index of a key that is in the table.
    #[must_use]
    pub fn position(&self, key: u64) -> Option<usize> {
        self.keys[..self.used].iter().position(|&known| known == key)
    }

    /// The entries in the order of their indices: key and count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.keys[..self.used].iter().copied().zip(self.hits[..self.used].iter().copied())
    }

    /// Scales every count by `numerator` / 65,536: 32,768 halves them. Keys that were busy long ago then make
    /// room.
    pub fn scale(&mut self, numerator: u32) {
        for hits in &mut self.hits[..self.used] {
            *hits = ((u128::from(*hits) * u128::from(numerator)) >> 16) as u64;
        }
    }

    /// Number of times, since the table was made, a key had to make room for another one.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Forgets every key.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

//! Heavy hitters in fixed memory: Space-Saving (Metwally, Agrawal, El Abbadi 2005).
//!
//! NEWS §4.4 replaces the smallest entry and starts the newcomer at one, so a busy table churns for ever; here
//! the newcomer **inherits the victim's count**. Guarantees with N entries over `total` hits: a reported count
//! exceeds the truth by at most `total / N`, and every key with more than `total / N` hits is in the table.
//!
//! Cost: a scan of N keys (64 keys: about 20 ns); 16·N bytes; no allocation.

/// The N busiest keys.
///
/// ```
/// use flashweir_measure::SpaceSaving;
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
}

impl<const N: usize> Default for SpaceSaving<N> {
    fn default() -> Self {
        Self { keys: [0; N], hits: [0; N], used: 0 }
    }
}

impl<const N: usize> SpaceSaving<N> {
    /// Counts `hits` for `key`.
    pub fn hit(&mut self, key: u64, hits: u64) {
        if let Some(place) = self.keys[..self.used].iter().position(|&known| known == key) {
            self.hits[place] = self.hits[place].saturating_add(hits);
        } else if self.used < N {
            self.keys[self.used] = key;
            self.hits[self.used] = hits;
            self.used += 1;
        } else if let Some(victim) = (0..N).min_by_key(|&place| self.hits[place]) {
            self.keys[victim] = key;
            self.hits[victim] = self.hits[victim].saturating_add(hits);
        }
    }

    /// The entries, in no order: key and count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.keys[..self.used].iter().copied().zip(self.hits[..self.used].iter().copied())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

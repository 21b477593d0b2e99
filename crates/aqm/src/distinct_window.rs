//! The number of distinct flows over a sliding window: a ring of sketches, each of a part of the window.
//!
//! The paper starts a new sketch each second (Fig. 3). **P-4:** where the fair share is below a packet a
//! second most flows are silent in any one second: with 4000 flows at 10 Mb/s a count of one second sees
//! about 1200 of them, so their share looks three times as large. Here the window follows the count, and what
//! slides out of it is one part at a time.
//!
//! Cost: an update is [`MinSketch::insert`], twice for a flow that the part has not seen; the first
//! estimate of a part merges the parts (about 20 µs), the others read what they made (2 µs), or nothing
//! where no flow is new. Memory: [`PARTS`] + 1 sketches, 108 KB. A clock that steps back counts as no time
//! passed; a jump beyond the window empties it.

use crate::min_sketch::{KEPT, MinSketch};
use flashweir_core::{Duration, Instant};

/// Parts of the window: the count covers between 7/8 of it and all of it.
pub const PARTS: usize = 8;

/// Distinct flows of a sliding window.
///
/// ```
/// use flashweir_aqm::DistinctWindow;
/// use flashweir_core::{Duration, Instant, Hasher64};
/// let mut flows = DistinctWindow::new(Instant::ZERO, Duration::from_secs(2));
/// flows.insert(Instant::ZERO, 7 << 40);
/// assert_eq!(flows.distinct(Instant::from_secs(1)), 1.0);
/// assert_eq!(flows.distinct(Instant::from_secs(4)), 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct DistinctWindow {
    parts: [MinSketch; PARTS],
    /// The part that takes what comes now.
    current: usize,
    ends: Instant,
    part: Duration,
    /// Parts that have seen a flow.
    used: [bool; PARTS],
    /// All parts together, unless one has ended since it was made.
    merged: MinSketch,
    is_merged: bool,
    /// Estimate of `merged` as it is, where it was asked for.
    distinct: Option<f64>,
}

impl DistinctWindow {
    /// An empty window of this length (at least [`PARTS`] ns) that begins at `now`.
    #[must_use]
    pub fn new(now: Instant, span: Duration) -> Self {
        let part = (span / PARTS as u32).max(Duration::from_nanos(1));
        let parts = core::array::from_fn(|_| MinSketch::new());
        Self {
            parts,
            current: 0,
            ends: now + part,
            part,
            used: [false; PARTS],
            merged: MinSketch::new(),
            is_merged: true,
            distinct: None,
        }
    }

    /// Takes the hash of a packet's flow.
    #[inline]
    pub fn insert(&mut self, now: Instant, hash: u64) {
        if now >= self.ends {
            self.advance(now);
        }
        // What changes no part changes no union of parts.
        if self.parts[self.current].keep_hash(hash) {
            self.used[self.current] = true;
            self.merged.insert(hash);
            self.distinct = None;
        }
    }

    /// Takes what a sketch that is kept elsewhere saw until `now` ([`MinSketch::merge_residues`]).
    pub fn merge_residues(&mut self, now: Instant, residues: &[[u32; KEPT]]) {
        if now >= self.ends {
            self.advance(now);
        }
        self.parts[self.current].merge_residues(residues);
        self.used[self.current] = true;
        self.merged.merge_residues(residues);
        self.distinct = None;
    }

    /// Number of distinct flows in the window that ends at `now`.
    pub fn distinct(&mut self, now: Instant) -> f64 {
        self.merge(now);
        *self.distinct.get_or_insert_with(|| self.merged.distinct())
    }

    /// The same by the published estimator.
    pub fn distinct_as_published(&mut self, now: Instant) -> f64 {
        self.merge(now);
        self.merged.distinct_as_published()
    }

    /// The length of the window from the next part on. A window that grows keeps what it has; one that
    /// shrinks forgets it as its parts come round.
    pub fn set_span(&mut self, span: Duration) {
        self.part = (span / PARTS as u32).max(Duration::from_nanos(1));
    }

    /// Bytes that its sketches keep.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.parts.iter().chain([&self.merged]).map(MinSketch::memory_bytes).sum()
    }

    fn merge(&mut self, now: Instant) {
        if now >= self.ends {
            self.advance(now);
        }
        if self.is_merged {
            return;
        }
        self.merged.clear();
        let used = self.parts.iter().zip(self.used).filter(|(_, is_used)| *is_used);
        used.for_each(|(part, _)| self.merged.merge(part));
        (self.is_merged, self.distinct) = (true, None);
    }

    /// Begins the part in which `now` lies. At most [`PARTS`] parts are cleared.
    #[cold]
    fn advance(&mut self, now: Instant) {
        let late = now.saturating_since(self.ends).as_nanos();
        let ended = late / self.part.as_nanos() + 1;
        for _ in 0..ended.min(PARTS as u128) {
            self.current = (self.current + 1) % PARTS;
            // Without what an empty part had, the union is as it was.
            if core::mem::take(&mut self.used[self.current]) {
                self.parts[self.current].clear();
                self.is_merged = false;
            }
        }
        let into_part = Duration::from_nanos((late % self.part.as_nanos()) as u64);
        self.ends = now + self.part.saturating_sub(into_part);
    }
}

//! Documents of which it is known that waiting for their response is no use, for a while ("hit for miss").

use flashweir_core::limits::CACHE_MARKS;
use flashweir_core::{Duration, Instant};

/// Mark of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its response may not be shared: each request goes to the origin by itself.
    Alone,
    /// It may not be shared where the request had a cookie; others may fetch it.
    AloneWithCookie,
}

/// A response that becomes cacheable is noticed after this long; one that does not costs one request's wait
/// each time.
const LASTS: Duration = Duration::from_secs(10);

/// A table of fixed size: a later mark takes the place of another whose hash ends alike, which costs that
/// document a wait.
#[derive(Debug)]
pub struct Marks(Box<[(u64, Instant, Mark)]>);

impl Default for Marks {
    fn default() -> Self {
        Self(vec![(0, Instant::ZERO, Mark::Alone); CACHE_MARKS].into())
    }
}

impl Marks {
    /// The mark of the document with this hash.
    #[must_use]
    pub fn find(&self, now: Instant, hash: u64) -> Option<Mark> {
        let (known, until, mark) = self.0[slot(hash)];
        (known == hash && now < until).then_some(mark)
    }

    /// Remembers it for ten seconds.
    pub fn put(&mut self, now: Instant, hash: u64, mark: Mark) {
        self.0[slot(hash)] = (hash, now + LASTS, mark);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.fill((0, Instant::ZERO, Mark::Alone));
    }
}

fn slot(hash: u64) -> usize {
    // The table is smaller than any usize.
    (hash % CACHE_MARKS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_lasts_for_a_while_and_is_one_documents_own() {
        let (mut marks, start) = (Marks::default(), Instant::from_secs(5));
        assert_eq!(marks.find(start, 0), None, "an empty table knows nothing of hash 0");
        marks.put(start, 7, Mark::AloneWithCookie);
        assert_eq!(marks.find(Instant::from_secs(14), 7), Some(Mark::AloneWithCookie));
        assert_eq!(marks.find(Instant::from_secs(15), 7), None);
        assert_eq!(marks.find(start, 7 + CACHE_MARKS as u64), None);
        marks.put(start, 7 + CACHE_MARKS as u64, Mark::Alone);
        assert_eq!(marks.find(start, 7), None, "displaced");
    }
}

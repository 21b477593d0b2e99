//! Rows of evidence: requests that ended and requests in flight, by URL class and time.

use alloc::vec::Vec;
use flashweir_core::{Duration, Instant};
use flashweir_limit::{Row, TIME_BINS, time_bin_nanos};

/// Requests that ended since the last drain.
#[derive(Debug)]
pub(super) struct Ended(Vec<Row>);

impl Ended {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(ENDED_MAX))
    }

    /// A request is over after this time at the origin; true if its classes had to be merged. Nothing is
    /// allocated; O(1), and O([`ENDED_MAX`] log) each time that many have ended.
    pub(super) fn add(&mut self, url_class: u16, took: Duration, is_completed: bool) -> bool {
        let is_merged = self.0.len() == ENDED_MAX && bound(&mut self.0, ENDED_MAX / 2);
        let (completed, left) = (u32::from(is_completed), u32::from(!is_completed));
        self.0.push(Row { class: url_class.into(), bin: bin(took), completed, left, in_flight: 0 });
        is_merged
    }

    /// Rows of a drain at `now`, with those present by URL class and start, each pair of class and time once;
    /// true if classes had to be merged. O(n log n).
    pub(super) fn drain(
        &mut self,
        now: Instant,
        present: impl Iterator<Item = (u16, Instant)>,
    ) -> (Vec<Row>, bool) {
        let present = present.map(|(url_class, started)| Row {
            class: url_class.into(),
            bin: bin(now.saturating_since(started)),
            in_flight: 1,
            ..Row::default()
        });
        let mut rows: Vec<Row> = self.0.drain(..).chain(present).collect();
        let is_merged = bound(&mut rows, ROWS_MAX);
        (rows, is_merged)
    }
}

fn bin(time: Duration) -> u8 {
    time_bin_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) as u8
}

/// Adds up the rows of each class and time; where more than `most` are left, all become one class, and the
/// result is true.
fn bound(rows: &mut Vec<Row>, most: usize) -> bool {
    compact(rows);
    let is_beyond = rows.len() > most;
    if is_beyond {
        rows.iter_mut().for_each(|row| row.class = REST);
        compact(rows);
    }
    is_beyond
}

/// Adds up the rows of each class and time.
pub(super) fn compact(rows: &mut Vec<Row>) {
    rows.sort_unstable_by_key(|row| (row.class, row.bin));
    rows.dedup_by(|next, kept| {
        let is_same = (next.class, next.bin) == (kept.class, kept.bin);
        if is_same {
            kept.completed = kept.completed.saturating_add(next.completed);
            kept.left = kept.left.saturating_add(next.left);
            kept.in_flight = kept.in_flight.saturating_add(next.in_flight);
        }
        is_same
    });
}

/// Rows of one drain, at most.
pub(super) const ROWS_MAX: usize = 2_048;
/// The class of requests that are not distinguished.
const REST: u32 = u32::MAX;

/// Rows of ends that are kept before they are added up.
const ENDED_MAX: usize = 1_024;
const _: () = assert!(TIME_BINS <= ENDED_MAX / 2, "the rows of one class leave room for others");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_and_are_bounded() {
        let mut ended = Ended::new();
        let ms = Duration::from_millis;
        [(3, ms(10), true), (3, ms(10), true), (1, ms(200), false)]
            .into_iter()
            .for_each(|(class, took, is_completed)| assert!(!ended.add(class, took, is_completed)));
        let (few, is_merged) = ended.drain(Instant::ZERO, [].into_iter());
        let counts = |row: &Row| (row.class, row.completed, row.left);
        assert_eq!(few.iter().map(counts).collect::<Vec<_>>(), [(1, 0, 1), (3, 2, 0)]);
        assert!(!is_merged);
        let merged = (0..8_000u16).filter(|i| ended.add(i % 1_000, ms(1 << (i % 11)), true)).count();
        assert!((6..=8).contains(&merged), "{merged}");
        let (many, _) = ended.drain(Instant::ZERO, [].into_iter());
        assert!(many.len() <= ROWS_MAX, "{}", many.len());
        assert_eq!(many.iter().map(|row| row.completed).sum::<u32>(), 8_000);
    }
}

//! Usual latency of a response, so that small responses can be judged at all.
//!
//! The transfer rate of a response that fits one congestion window is noise, and a slow script behind a fast
//! network has an excellent rate. Latency, in contrast, differs by URL and size, so each class (a hash of URL
//! class and `floor(log2(bytes))`) has a running median learned in quiet times, and a response scores
//! `min(1, median / latency)`: 1 is as usual or better, 0.1 is ten times slower.
//!
//! The cap at 1 is ours. With uncapped scores the fastest tenth of a service with varied requests are its
//! trivial ones, and any wait at all looks tenfold: a service with exponential requests was held near its
//! quiet load. Capped, the canary is "even the fastest tenth is slower than the usual median", which a
//! service meets only close to its capacity.
//!
//! Latencies under 10 ms all score 1; gates count them as 10 ms, so that is the lowest median.
//!
//! Responses come as counts by class and bucket. A whole sample is scored by what was known before it, then
//! learned from: as many of its latencies as the class may learn from, spread evenly over their distribution.
//!
//! A class learns from a bounded number of responses a tick. Without the bound a busy page's median, which
//! moves by a hundredth for each response, would follow a crowd's latency within the very tick that is to
//! judge it, and the crowd would never be seen.
//!
//! Until a class has seen eight responses, they are compared with the median of the whole service: on a site
//! of many pages most have not been seen so often, and a crowd would hide among them. That a page may be
//! slower than most by nature does no harm, for it is the fastest tenth of all scores that is judged. A class
//! learns from its first eight responses in any state: a crowd usually comes to a new page. Memory: 9 bytes
//! for each of 1,024 classes. Cost: one multiplication and one look-up.

use super::sample::{LatencyCell, Response, UNCLASSED};
use alloc::{boxed::Box, vec, vec::Vec};
use flashweir_core::Duration;
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::measure::RunningMedian;
use flashweir_core::measure::log_buckets::middle_of;

/// A latency below this is as good as any: users do not notice it, and on a busy machine the scheduler alone
/// adds as much. Without it, a service that answers in a fifth of a millisecond would be "five times slower"
/// at one.
const UNNOTICED_S: f32 = UNNOTICED_US as f32 / 1e6;
/// The same, microseconds.
pub(super) const UNNOTICED_US: u64 = 10_000;

/// A class learns from one response in so much time: at 1 % each its median drifts by at most 10 % a second,
/// slower than the latency of any service that a crowd is about to overload.
const LEARNS_EVERY: Duration = Duration::from_millis(100);
/// Maximum for one tick, however long: 16 % is within the margin of what is judged.
const LEARNED_A_TICK_MOST: u128 = 16;

/// Running medians of latency by class.
#[derive(Debug)]
pub(super) struct LatencyReference {
    classes: Box<[RunningMedian]>,
    /// Responses each class has learned from in the tick under way…
    learned: Box<[u8]>,
    /// …and may learn from.
    learned_most: u8,
    /// The median over all classes.
    service: RunningMedian,
    service_learned: u8,
    /// Position in a distribution to learn from next: multiples of the golden ratio, which come close to
    /// every quantile soon and favour none.
    quantile: u64,
}

/// Comparison of a response with its class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// Median of the class over this latency, at most 1.
    pub(super) relative: f32,
    /// This latency less the median, at least zero: the time it waited that others usually don't.
    pub(super) excess_s: f32,
}

impl LatencyReference {
    /// Starts from the medians of an earlier run; entries outside the table or not positive are ignored.
    /// Ticks come every `interval`.
    pub(super) fn new(known: &[(u16, f64)], interval: Duration) -> Self {
        let mut classes = vec![RunningMedian::default(); URL_CLASSES].into_boxed_slice();
        for &(class, seconds) in known.iter().filter(|(_, seconds)| seconds.is_finite() && *seconds > 0.0) {
            if let Some(median) = classes.get_mut(usize::from(class)) {
                *median = RunningMedian::seeded(seconds);
            }
        }
        let a_tick = interval.as_nanos() / LEARNS_EVERY.as_nanos();
        Self {
            classes,
            learned: vec![0; URL_CLASSES].into_boxed_slice(),
            // At most 16, so it fits.
            learned_most: a_tick.clamp(1, LEARNED_A_TICK_MOST) as u8,
            service: RunningMedian::default(),
            service_learned: 0,
            quantile: 0,
        }
    }

    /// A tick was judged: classes may learn again. O([`URL_CLASSES`]), a kilobyte cleared.
    pub(super) fn begin_tick(&mut self) {
        self.learned.fill(0);
        self.service_learned = 0;
    }

    /// Scores the responses of a sample, in the order of their classes, and, when `learning` or while their
    /// class is untrained, learns from them. O(cells).
    pub(super) fn score(
        &mut self,
        cells: &[LatencyCell],
        learning: bool,
        mut scored: impl FnMut(&LatencyCell, Option<Score>),
    ) {
        for of_class in cells.chunk_by(|one, other| one.class == other.class) {
            let class = of_class[0].class;
            let usual_s = self.usual_s(class);
            of_class
                .iter()
                .for_each(|cell| scored(cell, usual_s.map(|usual_s| Score::of(latency_s(cell), usual_s))));
            if class != UNCLASSED {
                self.learn(usize::from(class) % URL_CLASSES, of_class, learning);
            }
        }
        let count = total(cells);
        for _ in 0..count {
            if !learning || self.service_learned == self.learned_most {
                break;
            }
            self.service_learned += 1;
            let latency_s = self.pick(cells, count);
            self.service.observe(latency_s);
        }
    }

    fn usual_s(&self, class: u16) -> Option<f32> {
        let of_class = self.classes.get(usize::from(class)).and_then(RunningMedian::value);
        of_class.or_else(|| self.service.value()).map(|usual_s| usual_s.max(UNNOTICED_S))
    }

    /// From at most as many as there are.
    fn learn(&mut self, class: usize, cells: &[LatencyCell], learning: bool) {
        let count = total(cells);
        for _ in 0..count {
            let may_learn = learning && self.learned[class] < self.learned_most;
            if self.classes[class].is_trained() && !may_learn {
                break;
            }
            self.learned[class] = self.learned[class].saturating_add(1);
            let latency_s = self.pick(cells, count);
            self.classes[class].observe(latency_s);
        }
    }

    /// One of `count` latencies, at the next quantile.
    fn pick(&mut self, cells: &[LatencyCell], count: u64) -> f32 {
        self.quantile = self.quantile.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut place = ((u128::from(self.quantile) * u128::from(count)) >> 64) as u64;
        for cell in cells {
            match place.checked_sub(cell.count.total()) {
                Some(further) => place = further,
                None => return latency_s(cell),
            }
        }
        // Not reached: the place is below the count of all cells.
        UNNOTICED_S
    }

    /// The trained medians, for the state file.
    pub(super) fn known(&self) -> Vec<(u16, f64)> {
        let trained = self.classes.iter().enumerate();
        trained.filter_map(|(class, median)| Some((class as u16, f64::from(median.value()?)))).collect()
    }
}

impl Score {
    fn of(latency_s: f32, usual_s: f32) -> Self {
        Self { relative: (usual_s / latency_s).min(1.0), excess_s: (latency_s - usual_s).max(0.0) }
    }
}

fn total(cells: &[LatencyCell]) -> u64 {
    cells.iter().map(|cell| cell.count.total()).sum()
}

fn latency_s(cell: &LatencyCell) -> f32 {
    // At least a microsecond: nothing is divided by zero.
    middle_of(cell.bucket).max(1) as f32 / 1e6
}

/// The latency class of a response, below [`URL_CLASSES`].
pub(super) fn class_of(response: &Response) -> u16 {
    let size_bucket = response.bytes.checked_ilog2().map_or(0, |log| log + 1);
    // Fibonacci hashing spreads neighbouring sizes of one URL over the table.
    let mixed = (response.url_class ^ (size_bucket << 26)).wrapping_mul(0x9E37_79B1);
    // Below 1,024, so it fits.
    ((mixed >> 16) as usize % URL_CLASSES) as u16
}

//! Outcome of the tries of each second, for runs of any length.

use crate::counts::Counts;
use crate::ledger::Change;
use flashweir_core::limits::LOAD_SERIES_BINS;
use flashweir_core::measure::Histogram;
use flashweir_core::measure::histogram::Sparse;

/// One class's run, second by second.
///
/// At most [`LOAD_SERIES_BINS`] bins (about half a KiB each): a run that needs more has its bins merged in
/// pairs, so that a bin then stands for two seconds, four, and so on. Memory is bounded however long the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    bin_s: u64,
    bins: Vec<Bin>,
}

/// The tries that were to begin in one bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bin {
    pub(crate) counts: Counts,
    /// Latencies of the completed, microseconds.
    pub(crate) latency: Sparse,
    pub(crate) lag_max_us: u64,
}

impl Series {
    pub(crate) fn new() -> Self {
        Self { bin_s: 1, bins: Vec::new() }
    }

    /// A series read from a file, of bins of `bin_s` seconds.
    pub(crate) fn from_bins(bin_s: u64, bins: Vec<Bin>) -> Self {
        Self { bin_s, bins }
    }

    /// Number of seconds that a bin stands for: a power of two.
    pub(crate) fn bin_s(&self) -> u64 {
        self.bin_s
    }

    /// From the first second of the run on, without gaps.
    pub(crate) fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Adds what happened to the tries of a second.
    pub(crate) fn add(&mut self, second: u64, change: &Change) {
        self.bin(second).add(&change.counts, change.lag_max_us, &change.latency);
    }

    /// Adds another series of the same run, such as another shard's.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.widen_to(other.bin_s);
        for (bin, index) in other.bins.iter().zip(0..) {
            let mut latency = Histogram::new();
            bin.latency.add_to(&mut latency);
            self.bin(index * other.bin_s).add(&bin.counts, bin.lag_max_us, &latency);
        }
    }

    /// Makes bins so wide, if they are narrower.
    pub(crate) fn widen_to(&mut self, bin_s: u64) {
        while self.bin_s < bin_s {
            self.widen();
        }
    }

    /// The bin of a second, made where the series does not reach so far yet.
    fn bin(&mut self, second: u64) -> &mut Bin {
        while second / self.bin_s >= LOAD_SERIES_BINS as u64 {
            self.widen();
        }
        // Below LOAD_SERIES_BINS, so it fits.
        let index = (second / self.bin_s) as usize;
        if self.bins.len() <= index {
            self.bins.resize_with(index + 1, Bin::default);
        }
        &mut self.bins[index]
    }

    fn widen(&mut self) {
        self.bin_s *= 2;
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| {
                let mut bin = pair[0].clone();
                if let Some(next) = pair.get(1) {
                    let mut latency = Histogram::new();
                    next.latency.add_to(&mut latency);
                    bin.add(&next.counts, next.lag_max_us, &latency);
                }
                bin
            })
            .collect();
    }
}

impl Bin {
    fn add(&mut self, counts: &Counts, lag_max_us: u64, latency: &Histogram) {
        self.counts.add(counts);
        self.lag_max_us = self.lag_max_us.max(lag_max_us);
        if !latency.is_empty() {
            let mut sum = latency.clone();
            self.latency.add_to(&mut sum);
            self.latency = Sparse::from_dense(&sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(offered: u64, latency_us: u64) -> Change {
        let mut change = Change::default();
        change.counts.offered = offered;
        change.latency.record(latency_us);
        change.lag_max_us = latency_us;
        change
    }

    /// A week has no more bins than two hours, and no try is lost on the way.
    #[test]
    fn a_long_run_has_wider_bins_and_no_more_of_them() {
        let mut series = Series::new();
        let week = 7 * 24 * 3600;
        let seconds = (0..week).step_by(97);
        let offered = seconds.clone().count() as u64;
        seconds.for_each(|second| series.add(second, &change(1, 1000 + second)));
        assert!(series.bins().len() <= LOAD_SERIES_BINS, "{}", series.bins().len());
        assert_eq!(series.bin_s(), 128);
        assert_eq!(series.bins().iter().map(|bin| bin.counts.offered).sum::<u64>(), offered);
        assert_eq!(series.bins().iter().map(|bin| bin.latency.count()).sum::<u64>(), offered);
    }

    #[test]
    fn series_of_different_lengths_merge_exactly() {
        let (mut short, mut long) = (Series::new(), Series::new());
        let last = LOAD_SERIES_BINS as u64;
        short.add(3, &change(2, 50));
        long.add(3, &change(5, 90));
        long.add(last, &change(7, 70));
        short.merge(&long);
        let offered = |index: usize| short.bins()[index].counts.offered;
        assert_eq!((short.bin_s(), offered(1), offered(last as usize / 2)), (2, 7, 7));
        assert_eq!((short.bins()[1].latency.count(), short.bins()[1].lag_max_us), (2, 90));
    }
}

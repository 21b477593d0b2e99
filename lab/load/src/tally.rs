//! Conversion of the books to a tally, and back again from a file.

use crate::counts::{Counts, ErrorKind};
use crate::distribution::{Distribution, Distributions};
use crate::ledger::ClassBook;
use crate::result::{Histograms, Second, Tally};
use crate::series::{Bin, Series};
use flashweir_core::Reason;
use flashweir_core::limits::LOAD_SERIES_BINS;
use flashweir_core::measure::histogram::Sparse;
use std::collections::BTreeMap;

/// All that is known of one class (or of all together): results are made of it, and merging adds it.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) totals: ClassBook,
    pub(crate) series: Series,
}

/// A bin as wide as this would make the series of a run longer than the longest: a week has fewer seconds.
const BIN_S_MOST: u64 = 1 << 20;
/// More than any machine does in one bin, and so little that the sums of all results cannot overflow.
const COUNT_MOST: u64 = 1 << 40;
/// Refusals that Flashweir did not make.
const OTHER: &str = "other";

impl Book {
    pub(crate) fn new() -> Self {
        Self { totals: ClassBook::new(), series: Series::new() }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.series.merge(&other.series);
    }

    /// The tally of this book.
    pub(crate) fn tally(&self) -> Tally {
        let ClassBook { counts, distributions } = &self.totals;
        let ratio =
            |part: u64| (counts.unique_offered > 0).then(|| part as f64 / counts.unique_offered as f64);
        Tally {
            offered: counts.offered,
            unique_offered: counts.unique_offered,
            sent: counts.sent,
            completed: counts.completed,
            goodput: counts.goodput,
            refused: counts.refused,
            refused_by_reason: refused_by_reason(counts),
            refused_by_status: [(429, counts.refused_429), (503, counts.refused - counts.refused_429)]
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .collect(),
            timed_out: counts.timed_out,
            abandoned: counts.abandoned,
            errors: counts.errors(),
            errors_by_kind: errors_by_kind(counts),
            in_flight: counts.in_flight(),
            body_bytes: counts.body_bytes,
            goodput_ratio: ratio(counts.goodput),
            retry_amplification: ratio(counts.offered),
            latency_ms: distributions.latency.percentiles(1e3),
            refusal_ms: distributions.refusal.percentiles(1e3),
            ttfb_ms: distributions.ttfb.percentiles(1e3),
            served_ms: distributions.served.percentiles(1e3),
            lag_us: distributions.lag.percentiles(1.0),
            series: self.seconds(),
            histograms: Histograms {
                latency_us: distributions.latency.pairs(),
                refusal_us: distributions.refusal.pairs(),
                ttfb_us: distributions.ttfb.pairs(),
                served_us: distributions.served.pairs(),
                lag_us: distributions.lag.pairs(),
            },
        }
    }

    /// The book a tally was made from, with bins of `bin_s` seconds.
    ///
    /// # Errors
    /// Names the part of the tally that no book can have.
    pub(crate) fn read(tally: &Tally, bin_s: u64) -> Result<Self, String> {
        if !bin_s.is_power_of_two() || bin_s > BIN_S_MOST {
            return Err(format!("series_bin_s is {bin_s}: expected 1, 2, 4, …"));
        }
        if tally.series.len() > LOAD_SERIES_BINS {
            return Err(format!("the series has more than {LOAD_SERIES_BINS} entries"));
        }
        let mut bins = Vec::new();
        let mut counts = Counts::default();
        for (second, place) in tally.series.iter().zip(0..) {
            let wrong = |why: String| format!("series, second {}: {why}", second.second);
            if second.second != place * bin_s {
                return Err(wrong(format!("expected second {}", place * bin_s)));
            }
            let bin = read_second(second).map_err(wrong)?;
            counts.add(&bin.counts);
            bins.push(bin);
        }
        let totals = [tally.offered, tally.completed, tally.goodput, tally.refused, tally.errors];
        if totals != [counts.offered, counts.completed, counts.goodput, counts.refused, counts.errors()] {
            return Err("the seconds of the series do not add up to the totals".to_owned());
        }
        let histograms = &tally.histograms;
        let distributions = Distributions {
            latency: Distribution::from_pairs(&histograms.latency_us),
            refusal: Distribution::from_pairs(&histograms.refusal_us),
            ttfb: Distribution::from_pairs(&histograms.ttfb_us),
            served: Distribution::from_pairs(&histograms.served_us),
            lag: Distribution::from_pairs(&histograms.lag_us),
        };
        let measured =
            [distributions.latency.count(), distributions.refusal.count(), distributions.lag.count()];
        if measured != [counts.completed, counts.refused, counts.offered] {
            return Err("the histograms do not hold one value for each try".to_owned());
        }
        Ok(Self { totals: ClassBook { counts, distributions }, series: Series::from_bins(bin_s, bins) })
    }

    fn seconds(&self) -> Vec<Second> {
        let bin_s = self.series.bin_s();
        let second = |(bin, place): (&Bin, u64)| {
            let quantile = |share| bin.latency.quantile(share).map(|us| us as f64 / 1e3);
            Second {
                second: place * bin_s,
                offered: bin.counts.offered,
                unique_offered: bin.counts.unique_offered,
                sent: bin.counts.sent,
                completed: bin.counts.completed,
                goodput: bin.counts.goodput,
                refused: bin.counts.refused,
                refused_by_reason: refused_by_reason(&bin.counts),
                refused_429: bin.counts.refused_429,
                timed_out: bin.counts.timed_out,
                abandoned: bin.counts.abandoned,
                errors: bin.counts.errors(),
                errors_by_kind: errors_by_kind(&bin.counts),
                body_bytes: bin.counts.body_bytes,
                latency_p50_ms: quantile(0.5),
                latency_p99_ms: quantile(0.99),
                lag_max_us: bin.lag_max_us,
                latency_buckets: bin
                    .latency
                    .pairs()
                    .map(|(index, count)| (u64::from(index), count))
                    .collect(),
            }
        };
        self.series.bins().iter().zip(0..).map(second).collect()
    }
}

fn read_second(second: &Second) -> Result<Bin, String> {
    let mut counts = Counts {
        offered: second.offered,
        unique_offered: second.unique_offered,
        sent: second.sent,
        completed: second.completed,
        goodput: second.goodput,
        refused: second.refused,
        refused_429: second.refused_429,
        timed_out: second.timed_out,
        abandoned: second.abandoned,
        body_bytes: second.body_bytes,
        ..Counts::default()
    };
    for (name, count) in second.refused_by_reason.iter().filter(|(name, _)| *name != OTHER) {
        let reason = Reason::ALL.into_iter().find(|reason| reason.as_str() == name);
        let reason = reason.ok_or_else(|| format!("\"{name}\" is no reason this version knows"))?;
        counts.refused_by_reason[reason as usize] = *count;
    }
    for (name, count) in &second.errors_by_kind {
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        let kind = kind.ok_or_else(|| format!("\"{name}\" is no kind of error this version knows"))?;
        counts.errors_by_kind[kind as usize] = *count;
    }
    if !is_possible(&counts) {
        return Err("a part is more than its whole".to_owned());
    }
    let latency =
        Sparse::from_pairs(second.latency_buckets.iter().copied()).map_err(|error| error.to_string())?;
    Ok(Bin { counts, latency, lag_max_us: second.lag_max_us })
}

/// Returns whether the counts of one bin can be those of a ledger.
fn is_possible(counts: &Counts) -> bool {
    let sum = |parts: &[u64]| parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part));
    let at_most = |parts: &[u64], whole: u64| sum(parts).is_some_and(|sum| sum <= whole);
    let Counts { offered, completed, refused, timed_out, abandoned, .. } = *counts;
    sum(&counts.errors_by_kind).is_some_and(|errors| {
        at_most(&[completed, refused, timed_out, abandoned, errors], offered)
            && at_most(&[counts.unique_offered], offered)
            && at_most(&[counts.goodput], completed)
            && at_most(&[counts.refused_429], refused)
            && at_most(&counts.refused_by_reason, refused)
            && offered.max(counts.sent).max(counts.body_bytes) <= COUNT_MOST
    })
}

fn refused_by_reason(counts: &Counts) -> BTreeMap<String, u64> {
    let by_flashweir = Reason::ALL.into_iter().zip(counts.refused_by_reason);
    let others = counts.refused.saturating_sub(counts.refused_by_reason.iter().sum());
    by_flashweir
        .map(|(reason, count)| (reason.as_str(), count))
        .chain([(OTHER, others)])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn errors_by_kind(counts: &Counts) -> BTreeMap<String, u64> {
    ErrorKind::ALL
        .into_iter()
        .map(|kind| (kind.as_str().to_owned(), counts.errors_by_kind[kind as usize]))
        .filter(|(_, count)| *count > 0)
        .collect()
}

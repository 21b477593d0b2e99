//! Counts, shares and rates: every figure of a ledger that is not a time.

use super::Quantity;
use crate::{LoadResult, Second, Tally};

/// A figure of a ledger.
#[derive(Debug)]
pub(in super::super) struct LedgerMetric {
    pub(in super::super) name: &'static str,
    pub(in super::super) quantity: Quantity,
    /// From the ledger and the seconds that rates count over; `None` where there is nothing to divide by.
    pub(super) read: fn(&Tally, f64) -> Option<f64>,
}

/// A count of a whole run.
#[derive(Debug)]
pub(in super::super) struct RunMetric {
    pub(in super::super) name: &'static str,
    pub(super) read: fn(&LoadResult) -> u64,
}

/// A share that can be followed over the seconds of a series.
#[derive(Debug)]
pub(in super::super) struct Share {
    pub(in super::super) name: &'static str,
    /// Part and whole of one second.
    pub(in super::super) of: fn(&Second) -> (u64, u64),
    /// True if a high value is good.
    pub(in super::super) higher_is_better: bool,
}

/// The figures of a table are the same if their names are.
impl PartialEq for LedgerMetric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// As for [`LedgerMetric`].
impl PartialEq for RunMetric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// In the order they are shown in.
pub(in super::super) static LEDGER: [LedgerMetric; 22] = [
    figure("offered", Quantity::Count, |tally, _| whole(tally.offered)),
    figure("unique_offered", Quantity::Count, |tally, _| whole(tally.unique_offered)),
    figure("sent", Quantity::Count, |tally, _| whole(tally.sent)),
    figure("completed", Quantity::Count, |tally, _| whole(tally.completed)),
    figure("goodput", Quantity::Count, |tally, _| whole(tally.goodput)),
    figure("refused", Quantity::Count, |tally, _| whole(tally.refused)),
    figure("timed_out", Quantity::Count, |tally, _| whole(tally.timed_out)),
    figure("abandoned", Quantity::Count, |tally, _| whole(tally.abandoned)),
    figure("errors", Quantity::Count, |tally, _| whole(tally.errors)),
    figure("in_flight", Quantity::Count, |tally, _| whole(tally.in_flight)),
    figure("body_bytes", Quantity::Count, |tally, _| whole(tally.body_bytes)),
    figure("goodput_ratio", Quantity::Share, |tally, _| tally.goodput_ratio),
    figure("completed_ratio", Quantity::Share, |tally, _| per(tally.completed, tally.unique_offered as f64)),
    figure("abandoned_ratio", Quantity::Share, |tally, _| per(tally.abandoned, tally.unique_offered as f64)),
    figure("refused_ratio", Quantity::Share, |tally, _| per(tally.refused, tally.offered as f64)),
    figure("timed_out_ratio", Quantity::Share, |tally, _| per(tally.timed_out, tally.offered as f64)),
    figure("error_ratio", Quantity::Share, |tally, _| per(tally.errors, tally.offered as f64)),
    figure("offered_rps", Quantity::Rate, |tally, seconds| per(tally.offered, seconds)),
    figure("completed_rps", Quantity::Rate, |tally, seconds| per(tally.completed, seconds)),
    figure("goodput_rps", Quantity::Rate, |tally, seconds| per(tally.goodput, seconds)),
    figure("body_bytes_per_s", Quantity::Rate, |tally, seconds| per(tally.body_bytes, seconds)),
    figure("retry_amplification", Quantity::Factor, |tally, _| tally.retry_amplification),
];

/// The counts that only a whole run has.
pub(in super::super) static RUN: [RunMetric; 5] = [
    RunMetric { name: "connections", read: |result| result.connections.opened },
    RunMetric { name: "connections_reused", read: |result| result.connections.reused },
    RunMetric { name: "connections_failed", read: |result| result.connections.failed },
    RunMetric { name: "connections_given_up", read: |result| result.connections.given_up },
    RunMetric { name: "syn_retransmissions", read: |result| result.connections.syn_retransmissions },
];

/// The shares of [`LEDGER`], second by second.
pub(in super::super) static SHARES: [Share; 6] = [
    share("goodput_ratio", true, |second| (second.goodput, second.unique_offered)),
    share("completed_ratio", true, |second| (second.completed, second.unique_offered)),
    share("abandoned_ratio", false, |second| (second.abandoned, second.unique_offered)),
    share("refused_ratio", false, |second| (second.refused, second.offered)),
    share("timed_out_ratio", false, |second| (second.timed_out, second.offered)),
    share("error_ratio", false, |second| (second.errors, second.offered)),
];

const fn figure(
    name: &'static str,
    quantity: Quantity,
    read: fn(&Tally, f64) -> Option<f64>,
) -> LedgerMetric {
    LedgerMetric { name, quantity, read }
}

const fn share(name: &'static str, higher_is_better: bool, of: fn(&Second) -> (u64, u64)) -> Share {
    Share { name, of, higher_is_better }
}

/// Counts beyond 2⁵³ lose their last digits, which no run reaches.
fn whole(count: u64) -> Option<f64> {
    Some(count as f64)
}

fn per(part: u64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| part as f64 / of)
}

//! Series of counters that only grow: what each grew by within a bin.

use super::{ConnectionBin, DatagramBin, LinkBin};
use crate::router::GateCounts;

/// A counter, or several, as it grows.
pub(super) trait Growing: Copy + Default {
    /// Growth since `before`.
    fn since(&self, before: &Self) -> Self;
}

/// The growth of one counter, bin after bin.
#[derive(Debug, Default)]
pub(super) struct Series<C> {
    bins: Vec<C>,
    before: C,
}

impl<C: Growing> Series<C> {
    /// The bin is over, and the counter stands at `now`.
    pub(super) fn close(&mut self, now: C) {
        self.bins.push(now.since(&self.before));
        self.before = now;
    }

    /// The bins closed so far, and as many empty ones as make it `bins` in all.
    pub(super) fn into_bins(mut self, bins: usize) -> Vec<C> {
        self.bins.resize(bins, C::default());
        self.bins
    }
}

impl Growing for u64 {
    fn since(&self, before: &Self) -> Self {
        self - before
    }
}

impl Growing for GateCounts {
    fn since(&self, before: &Self) -> Self {
        self.minus(before)
    }
}

impl Growing for LinkBin {
    fn since(&self, before: &Self) -> Self {
        Self {
            offered: self.offered - before.offered,
            dropped: self.dropped - before.dropped,
            marked: self.marked - before.marked,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
        }
    }
}

impl Growing for ConnectionBin {
    fn since(&self, before: &Self) -> Self {
        Self {
            answered: self.answered - before.answered,
            not_connected: self.not_connected - before.not_connected,
            given_up: self.given_up - before.given_up,
            reset: self.reset - before.reset,
        }
    }
}

impl Growing for DatagramBin {
    fn since(&self, before: &Self) -> Self {
        Self { sent: self.sent - before.sent, delivered: self.delivered - before.delivered }
    }
}

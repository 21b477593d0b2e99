//! Pure estimators: transfer rates, averages, medians, quantiles and heavy hitters. Time is an argument.

pub mod average;
pub mod decayed_counters;
pub mod fastest;
pub mod histogram;
pub mod jain;
pub mod log_buckets;
pub mod running_median;
pub mod space_saving;
#[cfg(test)]
mod tests;
pub mod tsw;
pub mod useful;

pub use average::{DecayingMean, HighLowFilter};
pub use decayed_counters::DecayedCounters;
pub use fastest::mean_of_fastest;
pub use histogram::Histogram;
pub use jain::jain_index;
pub use running_median::RunningMedian;
pub use space_saving::SpaceSaving;
pub use tsw::{FirstWindow, TimeSlidingWindow};
pub use useful::Useful;

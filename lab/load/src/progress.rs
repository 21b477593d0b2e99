//! Progress of a run.

use crate::Counts;
use std::time::{Duration, Instant};

/// The state of a run, reported about five times a second and once more at its end.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time of the schedule's offset zero (past or future).
    pub started: Instant,
    /// Time since then.
    pub elapsed: Duration,
    /// End of the schedule, since then.
    pub length: Duration,
    /// Everything up to now.
    pub totals: Counts,
    /// Events of the last second (by the time they happened, not by the time people came).
    pub last_second: Counts,
    /// Median of the latency of what was completed in the last second, to 3 %.
    pub last_second_p50_ms: Option<f64>,
    /// 99th percentile of the same.
    pub last_second_p99_ms: Option<f64>,
    /// 99th percentile of the generator's lag so far, microseconds, to 3 %.
    pub lag_p99_us: u64,
}

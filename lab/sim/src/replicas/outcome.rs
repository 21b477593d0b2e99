//! Outcome of a run with replicas.

use flashweir_core::Duration;
use flashweir_core::measure::Histogram;
use flashweir_replication::ServerIndex;
use std::ops::Range;

/// Copies that were made at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopiesMade {
    /// Time, seconds.
    pub at_s: f64,
    /// Number of copies.
    pub copies: usize,
    /// Server that got the last of them.
    pub target: ServerIndex,
}

/// Outcome of a run with replicas.
#[derive(Clone, Debug)]
pub struct ReplicasOutcome {
    /// Width of a bin.
    pub bin: Duration,
    /// Requests that reached each server, by bin.
    pub arrivals: Vec<Vec<u32>>,
    /// Copies made, with their times.
    pub placements: Vec<CopiesMade>,
    /// Copies that were deleted.
    pub deleted: usize,
    /// Documents that got another home.
    pub rehomed: usize,
    /// Requests that came.
    pub offered: u64,
    /// Responses.
    pub completed: u64,
    /// Requests that found a station full or a server dead, or no usable host.
    pub failed: u64,
    /// Requests still under way at the end.
    pub under_way: u64,
    /// Fetches from the origin.
    pub fetches: u64,
    /// Response times, microseconds.
    pub latency_us: Histogram,
    /// Their sum, microseconds.
    pub latency_sum_us: u64,
    /// Equal for equal runs.
    pub event_hash: u64,
}

impl ReplicasOutcome {
    /// Each server's requests per second in these seconds (whole bins).
    #[must_use]
    pub fn loads_rps(&self, seconds: &Range<f64>) -> Vec<f64> {
        let bin_s = self.bin.as_secs_f64();
        let [from, to] = [seconds.start, seconds.end].map(|at| (at / bin_s).round() as usize);
        let count = |bins: &Vec<u32>| -> u32 { bins.iter().take(to).skip(from).sum() };
        self.arrivals.iter().map(|bins| f64::from(count(bins)) / (seconds.end - seconds.start)).collect()
    }

    /// The highest load over the mean, in these seconds.
    #[must_use]
    pub fn max_over_mean(&self, seconds: &Range<f64>) -> f64 {
        let loads = self.loads_rps(seconds);
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        loads.into_iter().fold(0.0, f64::max) / mean
    }

    /// The highest of [`max_over_mean`](Self::max_over_mean) over consecutive windows of `window_s` in these
    /// seconds.
    #[must_use]
    pub fn worst_max_over_mean(&self, seconds: &Range<f64>, window_s: f64) -> f64 {
        windows(seconds, window_s).map(|window| self.max_over_mean(&window)).fold(0.0, f64::max)
    }

    /// The highest load of any server in any bin of these seconds, requests per second.
    #[must_use]
    pub fn peak_rps(&self, seconds: &Range<f64>) -> f64 {
        let bins = windows(seconds, self.bin.as_secs_f64());
        bins.flat_map(|bin| self.loads_rps(&bin)).fold(0.0, f64::max)
    }

    /// The mean response time, milliseconds; none without responses.
    #[must_use]
    pub fn mean_latency_ms(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.latency_sum_us as f64 / self.completed as f64 / 1e3)
    }

    /// Copies made in these seconds.
    #[must_use]
    pub fn copies(&self, seconds: &Range<f64>) -> usize {
        self.placements.iter().filter(|it| seconds.contains(&it.at_s)).map(|it| it.copies).sum()
    }

    /// Time of the first copy that was made at or after this second.
    #[must_use]
    pub fn first_copy_s(&self, from_s: f64) -> Option<f64> {
        self.placements.iter().map(|it| it.at_s).find(|&at_s| at_s >= from_s)
    }

    /// Seconds from `from_s` until the loads stay within `part` of the mean for every window of `window_s`
    /// from there to `to_s`.
    #[must_use]
    pub fn balanced_after_s(&self, from_s: f64, to_s: f64, window_s: f64, part: f64) -> Option<f64> {
        let bin_s = self.bin.as_secs_f64();
        let steps = ((to_s - window_s - from_s) / bin_s).max(0.0) as usize;
        let is_even = |step: usize| {
            let start = from_s + step as f64 * bin_s;
            self.max_over_mean(&(start..start + window_s)) <= 1.0 + part
        };
        let last_uneven = (0..steps).rev().find(|&step| !is_even(step));
        match last_uneven {
            None if steps > 0 => Some(0.0),
            Some(step) if step + 1 < steps => Some((step + 1) as f64 * bin_s),
            _ => None,
        }
    }
}

/// Consecutive whole windows.
fn windows(seconds: &Range<f64>, window_s: f64) -> impl Iterator<Item = Range<f64>> + use<> {
    let (start, count) = (seconds.start, ((seconds.end - seconds.start) / window_s + 1e-9) as usize);
    (0..count).map(move |n| start + n as f64 * window_s..start + (n + 1) as f64 * window_s)
}

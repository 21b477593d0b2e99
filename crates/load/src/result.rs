//! What a run found, in the shape of its JSON.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// The whole truth about a run. `offered = completed + refused + timed_out + abandoned + errors + in_flight`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadResult {
    /// When offset zero of the schedule was.
    #[serde(skip)]
    pub started: Instant,
    /// From the start to the last answer awaited, seconds.
    pub duration_s: f64,
    /// People who came.
    pub offered: u64,
    /// The same, each counted once however often they tried.
    pub unique_offered: u64,
    /// Requests handed to a connection.
    pub sent: u64,
    /// Whole answers (2xx or 3xx) within patience.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// 503 or 429 within patience.
    pub refused: u64,
    /// Refusals by Flashweir's reason; `other` came from somebody else.
    pub refused_by_reason: BTreeMap<&'static str, u64>,
    /// People who left before the whole answer arrived.
    pub timed_out: u64,
    /// People who gave up a session for other reasons; always 0 so far.
    pub abandoned: u64,
    /// Attempts that broke.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_kind: BTreeMap<&'static str, u64>,
    /// People still on their way when the run ended; 0 unless something is wrong.
    pub in_flight: u64,
    /// Intended moment to the end of the answer, of completed requests.
    pub latency_ms: Percentiles,
    /// Intended moment to the end of the answer, of refused requests.
    pub refusal_ms: Percentiles,
    /// Intended moment to the head of the answer, of completed requests.
    pub ttfb_ms: Percentiles,
    /// Intended to real sending.
    pub lag_us: Percentiles,
    /// The generator could not keep up, so the figures say more about it than about the target.
    pub saturated: bool,
    /// By the second in which people came, from the first to the last.
    pub series: Vec<Second>,
}

/// Points of a distribution; `null` when nothing was measured. Each is exact to 0.1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Values measured.
    pub count: u64,
    /// Median.
    pub p50: Option<f64>,
    /// 90 % are at most this.
    pub p90: Option<f64>,
    /// 99 % are at most this.
    pub p99: Option<f64>,
    /// 99.9 % are at most this.
    pub p999: Option<f64>,
    /// 99.99 % are at most this.
    pub p9999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// What became of the people who came in one second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Which second, the first being 0.
    pub second: u64,
    /// People who came.
    pub offered: u64,
    /// Whole answers within patience.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// Refused within patience.
    pub refused: u64,
    /// Left before the whole answer.
    pub timed_out: u64,
    /// Broke.
    pub errors: u64,
    /// Median latency of the completed, to 1 %.
    pub latency_p50_ms: Option<f64>,
    /// 99th percentile of the latency of the completed, to 1 %.
    pub latency_p99_ms: Option<f64>,
}

//! Result of a run, in the shape of its JSON.

use crate::crowd_window::CrowdWindow;
use crate::transport::ConnectionCounts;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

/// The whole truth about a run. Read from a file it equals what was written, except `started`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Time of the schedule's offset zero; `None` when read from a file.
    #[serde(skip)]
    pub started: Option<Instant>,
    /// Facts about the run.
    pub run: RunFacts,
    /// All classes together.
    #[serde(flatten)]
    pub totals: Tally,
    /// Connections of all classes.
    #[serde(flatten)]
    pub connections: ConnectionCounts,
    /// The generator could not keep up, so the figures say more about it than about the target.
    pub saturated: bool,
    /// Hurst parameter of the arrivals; absent where there were too few to tell.
    pub hurst: Option<HurstFigure>,
    /// Beginning and end of the crowd in the schedule; absent where it has none.
    pub crowd: Option<CrowdWindow>,
    /// Recovery of the target after the crowd.
    pub recovery: Option<Recovery>,
    /// Number of seconds that an entry of every `series` stands for: 1, for long runs 2, 4, …
    pub series_bin_s: u64,
    /// Each class by its name.
    pub classes: BTreeMap<String, Tally>,
}

/// Facts about a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Version of this format.
    pub format: u32,
    /// The target.
    pub url: String,
    /// The target's addresses, over which connections were spread.
    pub addresses: BTreeSet<SocketAddr>,
    /// The seed.
    pub seed: u64,
    /// Length of the schedule, seconds.
    pub length_s: f64,
    /// From the start to the last answer awaited, seconds.
    pub duration_s: f64,
    /// The parts of the schedule in this result, each as `I/N`.
    pub shards: Vec<String>,
    /// Ended before its schedule.
    pub interrupted: bool,
    /// Lag, microseconds, whose 99th percentile is more than this makes the run saturated.
    pub lag_bound_us: u64,
    /// Limits by which each class's tries were judged.
    pub classes: BTreeMap<String, ClassFacts>,
}

/// Limits by which a class's tries were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassFacts {
    /// A completed answer within this time is goodput.
    pub target_ms: f64,
    /// The client gives a try up after this time.
    pub timeout_ms: f64,
}

/// The Hurst parameter of the arrivals, by `estimator`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HurstFigure {
    /// ½ without memory, towards 1 the more self-similar.
    pub h: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Name of the estimator.
    pub estimator: String,
}

/// Recovery of the target after the crowd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Goodput over unique offered before the crowd.
    pub goodput_ratio_before: f64,
    /// The longest 99th percentile of a second before the crowd.
    pub p99_before_ms: f64,
    /// From the end of the crowd to the first of [`STEADY_S`](crate::recovery::STEADY_S) seconds in a row
    /// that are as good as before. `null`: never in the time that was left, as when retries keep the overload
    /// alive (a metastable failure).
    pub seconds: Option<f64>,
    /// Time for which the run went on after the crowd.
    pub watched_s: f64,
}

/// One ledger: of all classes or of one.
/// `offered = completed + refused + timed_out + abandoned + errors + in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Tries that began.
    pub offered: u64,
    /// Requests: the tries of one person for one answer counted once.
    pub unique_offered: u64,
    /// Requests handed to a connection.
    pub sent: u64,
    /// Whole answers (2xx or 3xx) in time.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// 503 or 429 in time.
    pub refused: u64,
    /// Refusals by Flashweir's reason; `other` came from another program.
    pub refused_by_reason: BTreeMap<String, u64>,
    /// Refusals by status.
    #[serde(deserialize_with = "by_status")]
    pub refused_by_status: BTreeMap<u16, u64>,
    /// Tries given up by the client before the whole answer.
    pub timed_out: u64,
    /// Tries under way when the person lost patience and left for good.
    pub abandoned: u64,
    /// Tries that broke.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Tries still under way when the run ended; 0 unless something is wrong.
    pub in_flight: u64,
    /// Bytes of the bodies of whole answers.
    pub body_bytes: u64,
    /// Goodput over unique offered; `null` without requests.
    pub goodput_ratio: Option<f64>,
    /// Offered over unique offered: how much retries multiply the load; `null` without requests.
    pub retry_amplification: Option<f64>,
    /// Intended moment of the try to the end of the answer, of completed tries.
    pub latency_ms: Percentiles,
    /// The same, of refused tries.
    pub refusal_ms: Percentiles,
    /// Intended moment of the try to the head of the answer, of completed tries.
    pub ttfb_ms: Percentiles,
    /// From a person's first try to their whole answer, waits between tries included.
    pub served_ms: Percentiles,
    /// Intended to real beginning of tries.
    pub lag_us: Percentiles,
    /// By the second in which tries were to begin, from the first to the last.
    pub series: Vec<Second>,
    /// The distributions, whole.
    pub histograms: Histograms,
}

/// Points of a distribution; `null` when nothing was measured. Each is exact to 0.1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Values measured.
    pub count: u64,
    /// Mean.
    pub mean: Option<f64>,
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

/// Outcome of the tries of one second of the run (of `series_bin_s` seconds).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Number of the second, from 0.
    pub second: u64,
    /// Tries that began.
    pub offered: u64,
    /// Requests.
    pub unique_offered: u64,
    /// Requests handed to a connection.
    pub sent: u64,
    /// Whole answers in time.
    pub completed: u64,
    /// Of these, within the target.
    pub goodput: u64,
    /// Refused in time.
    pub refused: u64,
    /// Refusals by Flashweir's reason; the rest came from another program.
    pub refused_by_reason: BTreeMap<String, u64>,
    /// Refused with 429; the rest with 503.
    pub refused_429: u64,
    /// Given up by the client.
    pub timed_out: u64,
    /// Left with a person who lost patience.
    pub abandoned: u64,
    /// Broke.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Bytes of the bodies of whole answers.
    pub body_bytes: u64,
    /// Median latency of the completed, to 3 %.
    pub latency_p50_ms: Option<f64>,
    /// 99th percentile of the latency of the completed, to 3 %.
    pub latency_p99_ms: Option<f64>,
    /// The longest lag, microseconds.
    pub lag_max_us: u64,
    /// Latencies of the completed: buckets of the histogram of `flashweir-measure` (16 an octave,
    /// microseconds) and how many fell into each.
    pub latency_buckets: Vec<(u64, u64)>,
}

/// Values in microseconds and how often each was seen.
pub(crate) type Pairs = Vec<(u64, u64)>;

/// Distributions, whole: values in microseconds and how often each was seen, lowest first, to 0.1 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// Of `latency_ms`.
    pub latency_us: Pairs,
    /// Of `refusal_ms`.
    pub refusal_us: Pairs,
    /// Of `ttfb_ms`.
    pub ttfb_us: Pairs,
    /// Of `served_ms`.
    pub served_us: Pairs,
    /// Of `lag_us`.
    pub lag_us: Pairs,
}

/// Keys of JSON are text. serde_json makes numbers of them where it can, but not of those within a flattened
/// struct.
fn by_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u16, u64>, D::Error> {
    let by_text = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let number = |text: &str| text.parse().map_err(|_| D::Error::custom(format!("\"{text}\" is no status")));
    by_text.into_iter().map(|(status, count)| Ok((number(&status)?, count))).collect()
}

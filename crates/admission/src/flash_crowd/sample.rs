//! Measurements of a gate for the planner: counts, and how finished responses fared, as counts by class and
//! bucket.
//!
//! A sample's size does not grow with the number of requests. Latencies and rates are distinguished by
//! [`log_buckets`](flashweir_core::measure::log_buckets), to 1.6 %: a sixth of the smallest margin that is
//! judged, and less in a mean over many buckets.

use crate::Flow;
use alloc::vec::Vec;
use flashweir_core::{Instant, limits::URL_CLASSES};

/// Measurements of one gate between two drains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Index of the gate (worker); plans carry a share of the ceiling for each.
    pub gate: usize,
    /// Start of the interval measured.
    pub from: Instant,
    /// End of the interval measured.
    pub to: Instant,
    /// Outcomes of the requests, retries included.
    pub flow: Flow,
    /// Attempts: offered less recognised retries (unique offered).
    pub unique_offered: u64,
    /// Requests that entered what is judged: those admitted, or, where only delivery is judged, responses
    /// handed over.
    pub entered: u64,
    /// Of these, responses handed over: all of them where only delivery is judged, none where the whole
    /// response is.
    pub handed_over: u64,
    /// Of these, responses that their clients have, whole and without error (completed).
    pub completed: u64,
    /// Of these, those that ended otherwise: the client left, or something failed. Neither bad nor missing:
    /// they say nothing.
    pub unfinished: u64,
    /// Arrivals by hot-spot key (a hash of service and host), the busiest first, at most
    /// [`HOT_SPOT_ENTRIES`](flashweir_core::limits::HOT_SPOT_ENTRIES).
    pub hosts: Vec<HostCount>,
    /// Boundary between the two counts of [`Counted`]: the gate's
    /// [`Plan::evidence_from`](super::Plan::evidence_from).
    pub evidence_from: Instant,
    /// Latencies of responses that finished, by class and bucket, in this order; at most
    /// [`LATENCY_CELLS`](flashweir_core::limits::LATENCY_CELLS) and
    /// [`LATENCY_CELLS_UNCLASSED`](flashweir_core::limits::LATENCY_CELLS_UNCLASSED). Empty from a gate that
    /// knows only rates.
    pub latencies: Vec<LatencyCell>,
    /// Rates of those large enough to tell, by bucket, at most
    /// [`RATE_CELLS`](flashweir_core::limits::RATE_CELLS).
    pub rates: Vec<RateCell>,
    /// Responses counted without their class because [`LATENCY_CELLS`](flashweir_core::limits::LATENCY_CELLS)
    /// were in use.
    pub responses_unclassed: u64,
}

/// Responses whose latencies belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyCell {
    /// Latency class, below [`URL_CLASSES`](flashweir_core::limits::URL_CLASSES), or [`UNCLASSED`].
    pub class: u16,
    /// The bucket of the latency in microseconds. Latencies too short to matter share one: see
    /// [`FlashCrowdGate::observe_response`](super::FlashCrowdGate::observe_response).
    pub bucket: u16,
    /// Number of responses.
    pub count: Counted,
}

/// The class of responses that are compared with the whole service.
pub const UNCLASSED: u16 = URL_CLASSES as u16;

/// Responses whose rates belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateCell {
    /// The bucket of the rate in bytes per second.
    pub bucket: u16,
    /// Number of responses.
    pub count: Counted,
}

/// Responses, by whether they say anything about the limit in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Their requests were received before [`Sample::evidence_from`].
    pub before: u32,
    /// Their requests were received since.
    pub since: u32,
}

impl Counted {
    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        u64::from(self.before) + u64::from(self.since)
    }

    /// One more. Stops at the highest count instead of wrapping.
    pub(super) fn add_one(&mut self, is_evidence: bool) {
        let count = if is_evidence { &mut self.since } else { &mut self.before };
        *count = count.saturating_add(1);
    }

    /// The limit in force changed: all of them were received before that.
    pub(super) fn outdate(&mut self) {
        *self = Self { before: self.before.saturating_add(self.since), since: 0 };
    }
}

impl crate::Sample for Sample {
    fn flow(&self) -> Flow {
        self.flow
    }
}

/// Arrivals for one hot-spot key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCount {
    /// Hash of service and host.
    pub key: u64,
    /// Arrivals, at most the total over the table's size too many (Space-Saving).
    pub hits: u64,
}

/// One finished (or, for long transfers, progressing) response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Time at which its request was received: identifies the limit under which it was admitted.
    pub started: Instant,
    /// Body bytes.
    pub bytes: u64,
    /// Request received to last byte acknowledged by the client's kernel, seconds.
    pub latency_s: f32,
    /// First byte sent to last byte acknowledged, bytes per second; `None` where the ratio would be noise
    /// (small or very short transfers).
    pub rate_bytes_per_s: Option<f32>,
    /// URL class of the request: a hash of method and path, taken modulo the table by the planner.
    pub url_class: u32,
}

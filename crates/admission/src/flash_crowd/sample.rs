//! What a gate tells the planner: counts and finished responses.

use crate::Flow;
use alloc::vec::Vec;
use flashweir_core::Instant;

/// What one gate saw between two drains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Which gate (worker) this is; plans carry a share of the ceiling for each.
    pub gate: usize,
    /// Start of the interval measured.
    pub from: Instant,
    /// End of the interval measured.
    pub to: Instant,
    /// What became of the requests, retries included.
    pub flow: Flow,
    /// Attempts: offered less recognised retries (unique offered).
    pub unique_offered: u64,
    /// Responses finished without error (completed).
    pub completed: u64,
    /// Arrivals by hot-spot key (a hash of service and host), the busiest first, at most
    /// [`HOT_SPOT_ENTRIES`](flashweir_core::limits::HOT_SPOT_ENTRIES).
    pub hosts: Vec<HostCount>,
    /// Responses that finished, at most [`RESPONSES_PER_SAMPLE`](flashweir_core::limits::RESPONSES_PER_SAMPLE).
    pub responses: Vec<Response>,
    /// Responses beyond that bound, sampled away uniformly.
    pub responses_sampled_away: u64,
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
    /// When its request was received: tells which limit it was admitted under.
    pub started: Instant,
    /// Body bytes.
    pub bytes: u64,
    /// Request received to last byte acknowledged by the client's kernel, seconds.
    pub latency_s: f32,
    /// First byte sent to last byte acknowledged, bytes per second; `None` where the ratio would be noise
    /// (small or very short transfers).
    pub rate_bytes_per_s: Option<f32>,
    /// Which URL class it belongs to: a hash of method and path, taken modulo the table by the planner.
    pub url_class: u32,
}

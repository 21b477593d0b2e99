//! What one worker counts.

use flashweir_core::Reason;

use crate::classes::ClassTable;
use crate::counter::{Counter, CounterSet};
use crate::histogram::{FINE_BOUNDS_NS, Histogram, REQUEST_BOUNDS_NS};
use crate::label::{
    BadRequest, Bound, ConnectionFailure, HttpVersion, LoadReportOutcome, StatusClass, Unmeasured,
    UpstreamFailure,
};

/// Written by one worker alone, read by scrapes.
#[derive(Debug, Default)]
pub struct WorkerMetrics {
    /// Requests and what became of them.
    pub requests: RequestMetrics,
    /// Responses as clients see them.
    pub responses: ResponseMetrics,
    /// Connections from clients.
    pub connections: ConnectionMetrics,
    /// Exchanges with upstreams.
    pub upstream: UpstreamMetrics,
    /// What the detector gets to see.
    pub measurement: MeasurementMetrics,
    /// What became of each class of each service.
    pub classes: ClassTable,
    /// How often each bound was met.
    pub bound_hits: CounterSet<Bound>,
}

/// Requests and what became of them: offered = admitted + shed + left + waiting; admitted = completed + failed +
/// abandoned + in flight. A request whose head is bad is counted as bad and nowhere else.
#[derive(Debug, Default)]
pub struct RequestMetrics {
    /// Well-formed requests that arrived (offered).
    pub offered: Counter,
    /// People's attempts: offered less recognised retries (unique offered). Added when a sample is drained.
    pub unique_offered: Counter,
    /// Requests let in (admitted).
    pub admitted: Counter,
    /// Requests that had to wait for room at the origin, whatever became of them (held).
    pub held: Counter,
    /// Requests whose client left while they waited; neither admitted nor shed.
    pub left: Counter,
    /// Admitted requests answered in full by the upstream, whatever the status (completed).
    pub completed: Counter,
    /// Admitted requests that an upstream failed or had no connection for.
    pub failed: Counter,
    /// Admitted requests whose client went away.
    pub abandoned: Counter,
    /// Requests refused, by reason (shed).
    pub shed: CounterSet<Reason>,
    /// Requests that would have been refused but for shadow mode; they count as admitted, too.
    pub shadow_shed: Counter,
    /// Bad requests, by kind.
    pub bad: CounterSet<BadRequest>,
    /// Well-formed requests by what the client speaks.
    pub by_protocol: CounterSet<HttpVersion>,
}

/// Responses as clients see them.
#[derive(Debug)]
pub struct ResponseMetrics {
    /// By first digit of the status, refusals included.
    pub by_class: CounterSet<StatusClass>,
    /// Request received to last byte handed to the kernel, completed requests.
    pub duration: Histogram,
    /// Request received to first byte of the upstream's response, admitted requests.
    pub first_byte: Histogram,
    /// Request received to refusal handed to hyper.
    pub refusal_duration: Histogram,
}

impl Default for ResponseMetrics {
    fn default() -> Self {
        Self {
            by_class: CounterSet::default(),
            duration: Histogram::new(REQUEST_BOUNDS_NS),
            first_byte: Histogram::new(REQUEST_BOUNDS_NS),
            refusal_duration: Histogram::new(FINE_BOUNDS_NS),
        }
    }
}

/// Connections from clients. Open = opened − closed.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    /// Connections accepted and served, those that only get refusals included.
    pub opened: Counter,
    /// Connections that were opened and are closed now.
    pub closed: Counter,
    /// Connections beyond a bound: answered with refusals only, or closed at once.
    pub refused: CounterSet<Bound>,
    /// Connections that failed.
    pub failed: CounterSet<ConnectionFailure>,
    /// Bytes read from clients, TLS included.
    pub received_bytes: Counter,
    /// Bytes written to clients, TLS included.
    pub sent_bytes: Counter,
    /// Upgraded connections (WebSocket) begun.
    pub tunnels_opened: Counter,
    /// Upgraded connections ended.
    pub tunnels_closed: Counter,
}

/// Exchanges with upstreams.
#[derive(Debug, Default)]
pub struct UpstreamMetrics {
    /// Failures by kind.
    pub failures: CounterSet<UpstreamFailure>,
    /// Requests tried again because they were provably never sent.
    pub retries: Counter,
    /// Fields in which upstreams tell of their load or of a request's time.
    pub load_reports: CounterSet<LoadReportOutcome>,
    /// Reports of utilisation, and those added up, in thousandths.
    pub reported_utilisations: Counter,
    /// See there.
    pub reported_utilisation_milli: Counter,
}

/// What the detector gets to see.
#[derive(Debug, Default)]
pub struct MeasurementMetrics {
    /// Responses measured and handed to the detector.
    pub measured: Counter,
    /// Responses that say nothing about quality, by why.
    pub unmeasured: CounterSet<Unmeasured>,
}

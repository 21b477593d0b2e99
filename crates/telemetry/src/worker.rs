//! What one worker counts: a group for each component, in the component's own file in `groups`.

use crate::counter::CounterSet;
use crate::groups::bounds::Bound;
use crate::groups::classes::ClassTable;
use crate::groups::connections::ConnectionMetrics;
use crate::groups::requests::RequestMetrics;
use crate::groups::responses::{MeasurementMetrics, ResponseMetrics};
use crate::groups::upstream::UpstreamMetrics;

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

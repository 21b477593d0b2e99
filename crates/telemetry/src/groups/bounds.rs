//! Bounds that were met.

use crate::counter::CounterSet;
use crate::group::{Scrape, WorkerGroup};
use crate::label::labels;

impl WorkerGroup for CounterSet<Bound> {
    const TITLE: &'static str = "Bounds";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        scrape.counter_set("bound_hits", "How often a bound was met.", copies, |hits| hits);
    }
}

labels! {
    /// A bound that was met.
    Bound, "bound" {
        /// `bounds.max_connections`.
        Connections => "connections",
        /// `client.max_connections_per_client`.
        ConnectionsPerClient => "connections_per_client",
        /// The connections beyond a bound that are still answered.
        RefusedConnections => "refused_connections",
        /// `bounds.max_requests_in_flight`.
        RequestsInFlight => "requests_in_flight",
        /// `upstream.max_connections`.
        UpstreamConnections => "upstream_connections",
        /// Responses whose acknowledgement is awaited; more go unmeasured.
        AcksAwaited => "acks_awaited",
        /// Pipes for large bodies; without one, a part of a body is copied.
        Pipes => "pipes",
        /// Latencies counted by class between two samples; those of further classes are counted without it.
        LatencyCells => "latency_cells",
        /// Samples on the way to the planner; the worker keeps accumulating.
        SamplesQueued => "samples_queued",
        /// Nodes in front that are counted separately, for each service and worker; requests of further ones
        /// count with those of all other clients.
        FeedbackSenders => "feedback_senders",
        /// Requests that a candidate policy is asked about at once; it is not asked about more.
        CandidateRequests => "candidate_requests",
        /// Requests that wait for a response that another one fetches; further ones go to the origin by
        /// themselves.
        CacheWaiters => "cache_waiters",
        /// Fetches for others of one document by requests with fields by which its origin may choose; further
        /// ones go by themselves.
        CacheFlights => "cache_flights",
        /// Documents that a worker of a cluster counts between two samples; requests for further ones are
        /// routed and not counted.
        ReplicationCounted => "replication_counted",
    }
}

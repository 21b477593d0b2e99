//! Requests and what became of them.

use flashweir_core::Reason;

use crate::counter::{Counter, CounterSet};
use crate::group::{CounterRow, Scrape, WorkerGroup, sum};
use crate::label::labels;

/// Requests and what became of them: offered = admitted + shed + left + waiting; admitted = completed +
/// failed + abandoned + in flight. A request whose head is bad is counted as bad and nowhere else.
#[derive(Debug, Default)]
pub struct RequestMetrics {
    /// Well-formed requests that arrived (offered).
    pub offered: Counter,
    /// People's attempts: offered less recognised retries (unique offered). Added when a sample is drained.
    pub unique_offered: Counter,
    /// Requests let in (admitted).
    pub admitted: Counter,
    /// Requests that had to wait for room at the origin, with any outcome (held).
    pub held: Counter,
    /// Requests whose client left while they waited; neither admitted nor shed.
    pub left: Counter,
    /// Admitted requests answered in full by the upstream, with any status (completed).
    pub completed: Counter,
    /// Admitted requests that an upstream failed or had no connection for.
    pub failed: Counter,
    /// Admitted requests whose client went away.
    pub abandoned: Counter,
    /// Requests answered with a redirect to HTTPS (`listen.redirect`); counted nowhere else.
    pub redirected: Counter,
    /// Requests refused, by reason (shed).
    pub shed: CounterSet<Reason>,
    /// Requests that would have been refused but for shadow mode; they count as admitted, too.
    pub shadow_shed: Counter,
    /// Requests whose caller said for how long it can use an answer, by where that was read.
    pub deadlines: CounterSet<CallerDeadline>,
    /// Bad requests, by kind.
    pub bad: CounterSet<BadRequest>,
    /// Well-formed requests by what the client speaks.
    pub by_protocol: CounterSet<HttpVersion>,
}

impl WorkerGroup for RequestMetrics {
    const TITLE: &'static str = "Requests";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        scrape.counters(copies, COUNTERS);
        let help = "Requests refused, by the limit that was met.";
        scrape.counter_set("requests_shed", help, copies, |r| &r.shed);
        let help = "Requests with a deadline of their caller, by where it was read.";
        scrape.counter_set("requests_deadlines", help, copies, |r| &r.deadlines);
        let help = "Requests answered 4xx because they are malformed or too slow.";
        scrape.counter_set("requests_bad", help, copies, |r| &r.bad);
        let help = "Well-formed requests by what the client speaks.";
        scrape.counter_set("requests_by_protocol", help, copies, |r| &r.by_protocol);
        let help = "Requests admitted and not finished, tunnels included.";
        scrape.gauge("requests_in_flight", help, in_flight(copies) as f64);
    }
}

const COUNTERS: &[CounterRow<RequestMetrics>] = &[
    ("requests_offered", "Well-formed requests that arrived, retries included.", |r| &r.offered),
    ("requests_unique_offered", "People's attempts: requests offered, recognised retries folded.", |r| {
        &r.unique_offered
    }),
    ("requests_admitted", "Requests let in.", |r| &r.admitted),
    ("requests_held", "Requests that had to wait for room at the origin.", |r| &r.held),
    ("requests_left", "Requests whose client left while they waited for room.", |r| &r.left),
    ("requests_completed", "Admitted requests answered in full by an upstream.", |r| &r.completed),
    ("requests_failed", "Admitted requests that an upstream failed or had no connection for.", |r| &r.failed),
    ("requests_abandoned", "Admitted requests whose client went away.", |r| &r.abandoned),
    ("requests_redirected", "Requests in the clear answered with a redirect to HTTPS.", |r| &r.redirected),
    ("requests_shadow_shed", "Requests that would have been refused but for shadow mode.", |r| {
        &r.shadow_shed
    }),
];

/// Requests admitted and not finished yet.
fn in_flight(copies: &[&RequestMetrics]) -> u64 {
    // Finished before admitted: read the other way round, a request finishing in between would go negative.
    let finished = sum(copies, |r| &r.completed) + sum(copies, |r| &r.failed) + sum(copies, |r| &r.abandoned);
    sum(copies, |r| &r.admitted).saturating_sub(finished)
}

labels! {
    /// Source of a caller's deadline.
    CallerDeadline, "source" {
        /// `Flashweir-Deadline`.
        Field => "field",
        /// `grpc-timeout`.
        Grpc => "grpc",
        /// The class's target.
        Target => "target",
        /// A field that makes no sense; it was ignored.
        Malformed => "malformed",
    }
}

labels! {
    /// Kind of a request that the gateway itself answered 4xx.
    BadRequest, "kind" {
        /// Ambiguous or malformed framing (request smuggling): 400 and close.
        Framing => "framing",
        /// Malformed in another way: 400.
        Malformed => "malformed",
        /// More head bytes than `bounds.max_head_bytes`: 431.
        HeadTooLarge => "head_too_large",
        /// More fields than `bounds.max_fields`: 431.
        TooManyFields => "too_many_fields",
        /// The head did not arrive within `bounds.header_read_timeout`: 408.
        HeadTimeout => "head_timeout",
        /// The body came too slowly: 408.
        SlowBody => "slow_body",
        /// A method that is not served (CONNECT, TRACE): 405 or 501.
        Method => "method",
        /// A request target or Host that names no resource here: 400.
        Target => "target",
        /// A host that no service has: 421.
        Misdirected => "misdirected",
    }
    /// Protocol of a client.
    HttpVersion, "protocol" {
        /// HTTP/1.0 and HTTP/1.1.
        Http1 => "http1",
        /// HTTP/2.
        Http2 => "http2",
    }
}

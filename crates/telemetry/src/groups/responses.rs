//! Responses as clients see them, and what the detector gets to see of them.

use crate::counter::{Counter, CounterSet};
use crate::group::{Scrape, WorkerGroup};
use crate::histogram::{FINE_BOUNDS_NS, Histogram, REQUEST_BOUNDS_NS};
use crate::label::labels;

/// Responses as clients see them.
#[derive(Debug)]
pub struct ResponseMetrics {
    /// By first digit of the status, refusals included.
    pub by_class: CounterSet<StatusClass>,
    /// Interim responses of upstreams (1xx).
    pub interims: CounterSet<InterimOutcome>,
    /// Request received to last byte handed to the kernel, completed requests.
    pub duration: Histogram,
    /// Request received to first byte of the upstream's response, admitted requests.
    pub first_byte: Histogram,
    /// Request received to refusal handed to the HTTP library.
    pub refusal_duration: Histogram,
}

/// Measurements that reach the detector.
#[derive(Debug, Default)]
pub struct MeasurementMetrics {
    /// Responses measured and handed to the detector.
    pub measured: Counter,
    /// Responses that say nothing about quality, by why.
    pub unmeasured: CounterSet<Unmeasured>,
}

impl Default for ResponseMetrics {
    fn default() -> Self {
        Self {
            by_class: CounterSet::default(),
            interims: CounterSet::default(),
            duration: Histogram::new(REQUEST_BOUNDS_NS),
            first_byte: Histogram::new(REQUEST_BOUNDS_NS),
            refusal_duration: Histogram::new(FINE_BOUNDS_NS),
        }
    }
}

impl WorkerGroup for ResponseMetrics {
    const TITLE: &'static str = "Responses";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Responses by class of status, refusals included.";
        scrape.counter_set("responses", help, copies, |r| &r.by_class);
        let help = "Interim responses (1xx) of upstreams to clients of HTTP/1.1 and HTTP/2.";
        scrape.counter_set("responses_interim", help, copies, |r| &r.interims);
        let help = "Request received to last byte sent, completed requests.";
        scrape.histogram("request_duration_seconds", help, copies, |r| &r.duration);
        let help = "Request received to the upstream's first byte, admitted requests.";
        scrape.histogram("first_byte_seconds", help, copies, |r| &r.first_byte);
        let help = "Request received to refusal made, shed requests.";
        scrape.histogram("refusal_duration_seconds", help, copies, |r| &r.refusal_duration);
    }
}

impl WorkerGroup for MeasurementMetrics {
    const TITLE: &'static str = ResponseMetrics::TITLE;

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        scrape.counters(
            copies,
            &[("responses_measured", "Responses measured for the detector.", |m| &m.measured)],
        );
        let help = "Responses that say nothing about quality, by why.";
        scrape.counter_set("responses_unmeasured", help, copies, |m| &m.unmeasured);
    }
}

labels! {
    /// The first digit of a response's status.
    StatusClass, "class" {
        /// 1xx that ends an exchange: 101.
        Informational => "1xx",
        /// 2xx.
        Success => "2xx",
        /// 3xx.
        Redirection => "3xx",
        /// 4xx.
        ClientError => "4xx",
        /// 5xx.
        ServerError => "5xx",
    }
    /// End of an interim response.
    InterimOutcome, "outcome" {
        /// Passed on to the client.
        PassedOn => "passed_on",
        /// Not passed on: more than 16 KiB waited, or its head is not fit.
        Dropped => "dropped",
    }
    /// Kind of a finished response that says nothing about quality.
    Unmeasured, "kind" {
        /// No body: HEAD, 204, 304.
        Empty => "empty",
        /// Status 4xx or 5xx from the upstream, or a failed exchange.
        Error => "error",
        /// A refusal of our own.
        Refusal => "refusal",
        /// The client went away.
        Cancelled => "cancelled",
        /// A part of a resource (206).
        Partial => "partial",
        /// The upstream paused longer than a second inside the body, or the client kept it waiting for the
        /// request's.
        Paused => "paused",
        /// An upgraded connection.
        Tunnel => "tunnel",
        /// The connection closed before the client's kernel acknowledged the response.
        Unacknowledged => "unacknowledged",
        /// Enough others were measured at that moment.
        LeftOut => "left_out",
        /// Too many acknowledgements are awaited already.
        AcksOverflow => "acks_overflow",
        /// Answered from the cache.
        Cached => "cached",
    }
}

impl StatusClass {
    /// The class of a status code; what is no status counts as a server's error.
    #[must_use]
    pub const fn of(status: u16) -> Self {
        match status / 100 {
            1 => Self::Informational,
            2 => Self::Success,
            3 => Self::Redirection,
            4 => Self::ClientError,
            _ => Self::ServerError,
        }
    }
}

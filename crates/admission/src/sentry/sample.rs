//! What the gate tells the planner: counts, integrals over time and distributions.

use alloc::vec::Vec;
use flashweir_core::Instant;
use flashweir_measure::Histogram;

/// What the gate saw between two drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Start of the interval measured.
    pub from: Instant,
    /// End of the interval measured.
    pub to: Instant,
    /// Requests that arrived (offered).
    pub offered: u64,
    /// Requests that were sent to the origin (admitted), whether at once or after waiting.
    pub admitted: u64,
    /// Answers of the origin that came to their end (completed).
    pub completed: u64,
    /// Requests refused, at once or after waiting.
    pub shed: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u32,
    /// Requests held at the end of the interval.
    pub held: u32,
    /// Requests in flight, integrated over the interval, request-nanoseconds.
    pub in_flight_nanos: u64,
    /// How long somebody waited for room at the origin, nanoseconds.
    pub waiting_nanos: u64,
    /// From admission to the end of the answer, microseconds, of the completed.
    pub latency_us: Histogram,
    /// How long those in flight have been in flight, microseconds.
    pub age_us: Histogram,
    /// By class, in the policy's order.
    pub classes: Vec<ClassCounts>,
    /// The completed by URL class, at most [`URL_CLASSES`](flashweir_core::limits::URL_CLASSES).
    pub urls: Vec<UrlSum>,
    /// Time and completions by number in flight, at most [`BUCKETS`](flashweir_measure::histogram::BUCKETS).
    pub levels: Vec<LevelSum>,
}

/// What became of the requests of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Requests that arrived (offered).
    pub offered: u64,
    /// Requests that were sent to the origin (admitted), at once or after waiting.
    pub admitted: u64,
    /// Requests refused (shed), at once or after waiting.
    pub shed: u64,
    /// Answers of the origin that came to their end (completed).
    pub completed: u64,
    /// The completed within the class's target, from the request's arrival (goodput).
    pub good: u64,
    /// Estimated service times of the offered, added up, microseconds.
    pub offered_cost_us: u64,
    /// Estimated service times of the refused, added up, microseconds.
    pub shed_cost_us: u64,
    /// Requests that wait, at the end of the interval.
    pub held: u32,
    /// Requests in flight, at the end of the interval.
    pub in_flight: u32,
    /// How long the oldest that waits has waited, microseconds, at the end of the interval.
    pub oldest_held_us: u64,
}

/// Completed requests of one URL class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlSum {
    /// A hash of method and path, modulo the number of URL classes.
    pub url_class: u16,
    /// How many.
    pub count: u32,
    /// Their latencies added up, microseconds.
    pub latency_us: u64,
    /// The squares of their latencies, added up, microseconds squared.
    pub latency_us_squared: u64,
    /// How many of them came with a service time measured by the origin itself, and those added up, microseconds.
    pub measured_count: u32,
    /// See there.
    pub measured_us: u64,
}

/// What happened while so many requests were in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSum {
    /// The bucket of the number in flight, by [`index`](flashweir_measure::histogram::index).
    pub level: u16,
    /// For how long.
    pub nanos: u64,
    /// Requests in flight, integrated over that time, request-nanoseconds.
    pub in_flight_nanos: u64,
    /// How many completed.
    pub completed: u64,
}

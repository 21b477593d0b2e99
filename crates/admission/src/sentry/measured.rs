//! Measurements of the origin over a stretch of time.

/// Sums over a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) span_s: f64,
    /// Requests in flight, integrated over time.
    pub(super) in_flight_s: f64,
    /// Completions times their costs.
    pub(super) work: f64,
    pub(super) completed: f64,
    /// Times of the completed at the origin, added up.
    pub(super) latency_s: f64,
    /// Time during which a request waited for room.
    pub(super) waiting_s: f64,
    pub(super) shed: f64,
    /// Requests that went to the origin and came to no answer.
    pub(super) failed: f64,
    /// Of these, requests whose clients left after the target.
    pub(super) left_late: f64,
}

impl Measured {
    pub(super) fn add(&mut self, other: &Self) {
        self.span_s += other.span_s;
        self.in_flight_s += other.in_flight_s;
        self.work += other.work;
        self.completed += other.completed;
        self.latency_s += other.latency_s;
        self.waiting_s += other.waiting_s;
        self.shed += other.shed;
        self.failed += other.failed;
        self.left_late += other.left_late;
    }

    /// Requests in flight on average.
    pub(super) fn in_flight(&self) -> f64 {
        self.in_flight_s / self.span_s.max(1e-9)
    }

    /// Work done per second: with its inherent time, how many servers are busy.
    pub(super) fn work_rate(&self, variation: Variation) -> f64 {
        self.in_flight() / self.unit_s(variation)
    }

    /// Time that a unit of work took, seconds. The mean over the completed hardly depends on which ones
    /// happened to be completed, but does not know of those that are not; Little's law does: it says within
    /// which bounds to believe.
    pub(super) fn unit_s(&self, variation: Variation) -> f64 {
        let work = self.work.max(1e-12);
        let by_little_s = self.in_flight_s / work;
        let completed = self.completed.max(1.0);
        let under_way = UNDER_WAY * (1.0 + variation.all) * self.in_flight() / completed;
        let slack = 1.0 + 2.0 * (libm::sqrt(variation.all / completed) + under_way);
        (self.latency_s / work).clamp(by_little_s / slack, by_little_s * slack).max(1e-12)
    }

    /// The mean time of the completed at the origin, seconds.
    pub(super) fn latency_each_s(&self) -> f64 {
        self.latency_s / self.completed.max(1.0)
    }

    /// Returns true if many requests that went to the origin came to no answer: that is no room, however fast
    /// it goes.
    pub(super) fn is_refused_by_origin(&self, limit: u32) -> bool {
        self.failed > FAILED_MOST * self.completed.max(8.0) && self.in_flight() > 0.5 * f64::from(limit)
    }

    /// Returns true if more clients left after the target without an answer than were answered.
    pub(super) fn is_in_vain(&self) -> bool {
        self.left_late > self.completed
    }

    /// Returns true if the limit kept requests out.
    pub(super) fn is_bound(&self) -> bool {
        self.shed > 0.0 || self.waiting_s > 0.2 * self.span_s
    }
}

/// Variation of the work of requests: squared coefficients of variation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variation {
    /// Among requests of one URL class: what cannot be known beforehand.
    pub(super) within: f64,
    /// Among all requests.
    pub(super) all: f64,
}

/// Part of the work of those in flight that may be done or not at either end of a stretch.
const UNDER_WAY: f64 = 0.3;
/// Requests without an answer, over those with one. Some clients always leave.
const FAILED_MOST: f64 = 0.25;

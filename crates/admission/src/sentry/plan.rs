//! What the planner tells the gate, and how it explains itself.

use flashweir_core::Duration;

/// The limit in force and the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Counts changes; a gate applies a plan once.
    pub epoch: u64,
    /// Requests in flight at most, at least 1.
    pub limit: u32,
    /// Requests that may wait for room.
    pub hold_len: u32,
    /// How long a request may wait: afterwards it could not be answered within the target. While nothing is known of the
    /// origin, longer.
    pub hold_for: Duration,
    /// Once the oldest has waited so long, those who came last go first: they can still be answered in time.
    pub newest_first_after: Duration,
    /// When a refused client may hope for better; shells round up to seconds and add jitter.
    pub retry_after: Duration,
    /// Why.
    pub explanation: Explanation,
}

/// Which rule made the limit what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing was decided since the last plan.
    None,
    /// The limit does not bind: nothing is to be decided.
    Quiet,
    /// Not yet measured; the limit doubles as long as that helps.
    Start,
    /// More in flight served more, or would.
    Raise,
    /// The limit was moved to the knee that throughput and inherent service time tell.
    Knee,
    /// Lowered to see whether throughput falls.
    Trim,
    /// Lowering cost throughput: taken back.
    Restore,
    /// Lowered because responses take longer than the target.
    Target,
    /// Responses take longer than the target, and fewer in flight would not change that.
    Infeasible,
}

/// The inputs and the rule that fired: for the log, the decision record, `/status` and the simulator alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The rule that made this plan.
    pub rule: Rule,
    /// Requests in flight on average over the measurement.
    pub in_flight: f64,
    /// Requests completed per second over the measurement.
    pub completed_rps: f64,
    /// Requests in flight from which on more do not serve more, as far as known.
    pub knee: Option<f64>,
    /// How many times longer requests take than they would alone, as far as known.
    pub stretch: Option<f64>,
    /// The 95th percentile of the time at the origin, seconds, those still in flight counted with their ages.
    pub response_p95_s: Option<f64>,
    /// The service's own responses are slower than the target, whatever the limit.
    pub target_infeasible: bool,
}

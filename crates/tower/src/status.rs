//! Status of a layer: the learned limit and what it does.

use flashweir_admission::sentry::{Plan, Rule};

/// Present state, for a health page or metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Requests in flight at most.
    pub limit: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests in the queue.
    pub queued: usize,
    /// Capacity as far as known, requests a second.
    pub capacity_rps: f64,
    /// Even without overload one response in twenty is later than the target.
    pub target_infeasible: bool,
    /// Rule that set the limit last.
    pub rule: Rule,
    /// Requests that arrived (offered).
    pub offered: u64,
    /// Requests that were sent to the service (admitted).
    pub admitted: u64,
    /// Responses that ended (completed).
    pub completed: u64,
    /// Requests that were refused (shed).
    pub shed: u64,
    /// Requests whose clients left the queue. Offered are the admitted, the shed, these, and the queued.
    pub left: u64,
}

/// Sums over the time of a layer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) completed: u64,
    pub(crate) shed: u64,
    pub(crate) left: u64,
}

impl Status {
    pub(crate) fn new(plan: &Plan, totals: Totals, in_flight: u32, queued: usize) -> Self {
        Self {
            limit: plan.limit,
            in_flight,
            queued,
            capacity_rps: plan.explanation.capacity_rps,
            target_infeasible: plan.explanation.target_infeasible,
            rule: plan.explanation.rule,
            offered: totals.offered,
            admitted: totals.admitted,
            completed: totals.completed,
            shed: totals.shed,
            left: totals.left,
        }
    }
}

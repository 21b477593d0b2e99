//! What the planner tells the gate, and how it explains itself.

use alloc::sync::Arc;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Rate};

/// The limit in force and the numbers behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Counts changes; a gate applies a plan once.
    pub epoch: u64,
    /// Requests in flight at most, at least 1.
    pub limit: u32,
    /// For each class of the policy, in its order.
    pub classes: Vec<ClassPlan>,
    /// What requests cost, for those who decide by it.
    pub costs: Arc<Costs>,
    /// What one second of a server earns with the least important request that is let in; 0 while there is room for all.
    pub price: f64,
    /// Why.
    pub explanation: Explanation,
}

/// What the gate is to do with one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassPlan {
    /// Requests in flight, of all classes together, below which one of this class is let in; at most [`Plan::limit`].
    pub limit: u32,
    /// Requests of this class that may wait for room, over all gates.
    pub hold_len: u32,
    /// How long a request may wait: afterwards it could not be answered within the target. While nothing is known of the
    /// origin, longer.
    pub hold_for: Duration,
    /// Once the oldest has waited so long, those who came last go first: they can still be answered in time.
    pub newest_first_after: Duration,
    /// The guaranteed rate, scaled down if the origin cannot serve all guarantees.
    pub guaranteed_rate: Rate,
    /// When a refused client may hope for better; shells round up to seconds and add jitter.
    pub retry_after: Duration,
}

/// Inherent service times, microseconds: what a request takes at the origin when it is alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// By URL class; 0 where nothing is known. [`URL_CLASSES`] of them.
    pub by_url_class_us: Vec<u32>,
    /// Of a request of which nothing is known; 0 if nothing at all is.
    pub usual_us: u32,
}

impl Costs {
    /// Of one request.
    #[must_use]
    pub fn of(&self, url_class: u32) -> u32 {
        match self.by_url_class_us.get(url_class as usize % URL_CLASSES) {
            Some(&known) if known > 0 => known,
            _ => self.usual_us,
        }
    }
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

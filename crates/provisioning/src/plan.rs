//! Decision of a planner of capacity, and its reasons.

use crate::queueing::WaitModel;
use alloc::vec::Vec;
use flashweir_core::Duration;

/// Servers, sentries and targets of all applications. One epoch holds all of it: a target is obeyed together
/// with the servers that it was made for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Number of the plan; each is larger than the one before.
    pub epoch: u64,
    /// In the order of the policy.
    pub applications: Vec<ApplicationPlan>,
    /// True if minimums and guarantees together exceed the pool: they were scaled down, and someone has to
    /// act.
    pub is_short_of_minimum: bool,
}

/// Servers of one application in the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationPlan {
    /// Servers, those that are starting included.
    pub servers: u32,
    /// Sentries, at least one.
    pub sentries: u32,
    /// The target for the 95th percentile of its response times, for admission to obey from this epoch on.
    pub target: Duration,
    /// The step of the ladder that this target is.
    pub ladder_step: usize,
    /// Explanation of the plan.
    pub explanation: Explanation,
}

/// The numbers and the rule behind one application's servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The rule that decided.
    pub rule: Rule,
    /// Unique offered requests a second over the stable window.
    pub offered_rps: f64,
    /// The same over the panic window.
    pub panic_rps: f64,
    /// The rate that servers are planned for.
    pub forecast_rps: f64,
    /// The part of the requests of the panic window that was refused for want of capacity.
    pub refused_share: f64,
    /// Servers that the forecast needs at the first target; none where no number is enough, or nothing was
    /// measured.
    pub servers_needed: Option<u32>,
    /// The model that says so.
    pub model: Option<WaitModel>,
    /// Time of a server for one request, seconds, mean of all classes.
    pub service_s: Option<f64>,
    /// Start-up time that was reckoned with.
    pub start_up: Duration,
}

/// The rule that decided one application's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing was measured yet: it keeps what it has.
    Unknown,
    /// It has what it needs.
    Keep,
    /// The forecast needs more.
    Predict,
    /// Demand of the last seconds needs more: requests are refused, or arrive faster than chance explains.
    Panic,
    /// The target is shorter than a request takes alone, or nearly: servers are planned by work alone.
    TargetInfeasible,
    /// It needs fewer, but requests were refused or in excess lately, or its need is not known for long
    /// enough.
    Hold,
    /// It has needed fewer for long enough.
    Release,
    /// It needs more than the pool, its maximum or its revenue gives it.
    Short,
}

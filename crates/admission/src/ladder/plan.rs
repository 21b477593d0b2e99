//! Measurements that the ladder's planner takes, and the plan that it makes of them.

use super::Rungs;
use flashweir_core::Rate;
use flashweir_core::limits::CLASSES;

/// Measurements of the node since the last plan.
#[derive(Clone, Debug, Default)]
pub struct LadderInput {
    /// Work queued and in service now, in usual requests, thousandths: one that costs twice the usual counts
    /// 2,000.
    pub backlog_milli: u64,
    /// The thresholds by the sentry's present plan; none while it does not know the origin.
    pub rungs: Option<Rungs>,
    /// Requests per second that the origin can complete, as the sentry takes it; the ladder's own estimate
    /// replaces it.
    pub capacity_rps: f64,
    /// Requests that arrived, by rank.
    pub arrived: [u64; CLASSES],
    /// Work that the origin completed, in the same unit as the backlog.
    pub completed_milli: u64,
    /// Requests waited for the origin, or were refused because of it, since the last plan: what was completed
    /// is what it can do.
    pub is_short: bool,
    /// Maximum wait of requests for the origin, microseconds: see [`wait_us`](super::wait_us).
    pub wait_us: u64,
    /// The sentry has refused requests since the last plan: there is more work than may wait, even if the
    /// estimated level is low.
    pub is_refusing: bool,
}

/// Decision of the ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderPlan {
    /// The thresholds for the gates; none where nothing is to be throttled or discarded.
    pub rungs: Option<Rungs>,
    /// The thresholds within which the backlog is held by what is asked, for [`in_order`](super::in_order);
    /// none where nothing is asked.
    pub holds: Option<Rungs>,
    /// Rate advertised to senders: the first rank that it limits, and the rate of all limited ranks together;
    /// none without overload.
    pub asks: Option<(u8, Rate)>,
    /// Onset levels crossed.
    pub severity: u8,
    /// The capacity by which a backlog is a level: see [`level_us`](super::level_us).
    pub capacity: Rate,
    /// Reason for the plan.
    pub explanation: Explanation,
}

/// The inputs and the rule that fired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explanation {
    /// The rule.
    pub rule: Rule,
    /// Unfinished work, microseconds.
    pub level_us: u64,
    /// Level that the backlog is to settle at, microseconds; 0 while nothing is asked.
    pub reference_us: u64,
    /// The origin's capacity per second.
    pub capacity_rps: f64,
    /// Requests per second of the ranks that are not limited.
    pub unlimited_rps: f64,
    /// Requests per second of the ranks that are.
    pub used_rps: f64,
}

/// Rule that made the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing is known of the origin.
    Unknown,
    /// Nothing is known of the origin yet but that more comes than it completes: about what it completes is
    /// asked for.
    First,
    /// No onset was crossed: nothing is asked.
    Quiet,
    /// The level is above an abatement: the rate holds it near the reference.
    Throttle,
    /// The level is below every abatement, and senders still use the rate: it rises until they do not.
    Release,
}

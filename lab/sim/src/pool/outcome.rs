//! Outcome of a run with a pool of servers.

use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{Plan, Rule};
use std::ops::Range;

/// Outcome of a run with a pool of servers.
#[derive(Clone, Debug)]
pub struct PoolOutcome {
    /// In the order of the scenario.
    pub applications: Vec<ApplicationOutcome>,
    /// Width of the bins.
    pub bin: Duration,
    /// The last plan of a planner.
    pub last_plan: Option<Plan>,
}

/// One application's.
#[derive(Clone, Debug, Default)]
pub struct ApplicationOutcome {
    /// By time.
    pub bins: Vec<Bin>,
    /// Changes of the number of servers.
    pub orders: Vec<Order>,
    /// Changes of the number of sentries: when, and how many from then on.
    pub sentries: Vec<(Instant, u32)>,
    /// Server-hours, from the order of each server until it was given back.
    pub server_hours: f64,
    /// Number of times that growing turned into shrinking or back.
    pub reversals: u32,
    /// Width of the bins, seconds.
    pub bin_s: f64,
}

/// Counts of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Requests that arrived.
    pub offered: u64,
    /// Of them, admitted.
    pub admitted: u64,
    /// Of the admitted, answered later than the target.
    pub late: u64,
    /// Earned.
    pub revenue: f64,
    /// Server-seconds of servers that serve.
    pub ready_s: f64,
    /// Server-seconds worked.
    pub worked_s: f64,
    /// The target in force at its end.
    pub target: Duration,
}

/// A change of the number of servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// Time of the change.
    pub at: Instant,
    /// Servers from then on, those that start included.
    pub servers: u32,
    /// The planner's rule, if a planner ordered.
    pub rule: Option<Rule>,
}

impl Bin {
    /// Requests refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.offered - self.admitted
    }

    /// Returns true if no request was refused and at most one answer in twenty was late.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.refused() == 0 && self.late * 20 <= self.admitted
    }
}

impl ApplicationOutcome {
    /// The bins that lie within these seconds.
    #[must_use]
    pub fn within(&self, seconds: Range<usize>) -> &[Bin] {
        let bin = |second: usize| ((second as f64 / self.bin_s) as usize).min(self.bins.len());
        &self.bins[bin(seconds.start)..bin(seconds.end)]
    }

    /// The share of these seconds' requests that was admitted and answered within the target; 1 of none.
    #[must_use]
    pub fn served_share(&self, seconds: Range<usize>) -> f64 {
        let bins = self.within(seconds);
        let offered: u64 = bins.iter().map(|bin| bin.offered).sum();
        let served: u64 = bins.iter().map(|bin| bin.admitted - bin.late).sum();
        if offered == 0 { 1.0 } else { served as f64 / offered as f64 }
    }

    /// The share of all bins in which targets were kept and no request was refused.
    #[must_use]
    pub fn kept_share(&self) -> f64 {
        let kept = self.bins.iter().filter(|bin| bin.is_kept()).count();
        kept as f64 / self.bins.len().max(1) as f64
    }

    /// Servers, those that start included, at this time.
    #[must_use]
    pub fn servers_at(&self, at: Instant) -> Option<u32> {
        self.orders.iter().rev().find(|order| order.at <= at).map(|order| order.servers)
    }
}

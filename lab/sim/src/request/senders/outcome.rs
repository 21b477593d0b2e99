//! Outcome of a run with senders.

use crate::request::Level;
use flashweir_core::Duration;
use flashweir_core::measure::Histogram;

/// Outcome of a run with senders.
#[derive(Clone, Debug)]
pub struct SendersOutcome {
    /// By sender, in the scenario's order; user requests that began in the measured time.
    pub senders: Vec<SenderOutcome>,
    /// Series of the node, bin after bin from the start on.
    pub node: Vec<NodeBin>,
    /// Fill of the server, in the same bins.
    pub levels: Vec<Level>,
    /// The hash of all events: two runs with the same are the same.
    pub event_hash: u64,
    /// Time from which no limit was in force at any sender any more, if one ever was.
    pub last_limited: Option<Duration>,
}

/// User requests of one sender, counted by result.
#[derive(Clone, Debug, Default)]
pub struct SenderOutcome {
    /// That arrived at the sender.
    pub offered: u64,
    /// That it refused itself.
    pub refused_here: u64,
    /// That failed because the node's ladder, sentry or server refused a call.
    pub refused_at_node: u64,
    /// That failed because a connection was dropped too often.
    pub dropped: u64,
    /// That were completed.
    pub completed: u64,
    /// Of these, within the target.
    pub good: u64,
    /// From arrival at the sender to completion, microseconds.
    pub response_us: Histogram,
    /// The sum of the same, seconds.
    pub response_sum_s: f64,
    /// Calls that the node received.
    pub calls: u64,
    /// Calls that the server served, those of failed user requests included.
    pub served: u64,
}

/// Counts and advertised rate of the node in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeBin {
    /// Calls that arrived.
    pub calls: u64,
    /// Calls that ladder, sentry or server refused or dropped.
    pub refused: u64,
    /// Of these, those that the ladder discarded.
    pub discarded: u64,
    /// The rate advertised last, per second; none while nothing was asked.
    pub advertised_rps: Option<f64>,
}

impl SendersOutcome {
    /// All senders together.
    #[must_use]
    pub fn total(&self) -> SenderOutcome {
        self.senders.iter().fold(SenderOutcome::default(), |sum, sender| sum.plus(sender))
    }
}

impl SenderOutcome {
    /// Sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.offered += other.offered;
        self.refused_here += other.refused_here;
        self.refused_at_node += other.refused_at_node;
        self.dropped += other.dropped;
        self.completed += other.completed;
        self.good += other.good;
        self.response_us.add(&other.response_us);
        self.response_sum_s += other.response_sum_s;
        self.calls += other.calls;
        self.served += other.served;
        self
    }

    /// The mean time to completion, seconds; none where nothing was completed.
    #[must_use]
    pub fn mean_response_s(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.response_sum_s / self.completed as f64)
    }

    /// The 95th percentile of the same.
    #[must_use]
    pub fn response_p95_s(&self) -> Option<f64> {
        self.response_us.quantile(0.95).map(|us| us as f64 / 1e6)
    }
}

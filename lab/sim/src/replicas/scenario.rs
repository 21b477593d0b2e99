//! Scenarios of a cluster.

use flashweir_core::Duration;
use flashweir_replication::placement::published::PublishedRule;
use flashweir_replication::{RedirectorSettings, ServerIndex};
use flashweir_workload::ArrivalProcess;
use flashweir_workload::documents::Popularity;

/// A cluster, a crowd and a seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Servers, 1 to 256, all alike.
    pub servers: u16,
    /// Model of a server.
    pub server: StationModel,
    /// Documents, numbered from zero; the home of all of them is server 0.
    pub documents: u32,
    /// True if all servers have all documents from the beginning.
    pub is_everywhere: bool,
    /// Distributors and redirectors as stations that take time; none: they cost nothing.
    pub front: Option<Front>,
    /// Redirectors, 1 to 256; each owns the documents that the ring gives it.
    pub redirectors: u16,
    /// Settings of each redirector.
    pub settings: RedirectorSettings,
    /// Rule that moves copies.
    pub placement: PlacementRule,
    /// True if servers report at once when they become overloaded.
    pub has_early_reports: bool,
    /// Time at which all servers report first; none: each at its own moment within the first interval.
    pub first_report: Option<Duration>,
    /// Time that the origin takes to deliver a document to a server that does not have it.
    pub fetch_time: Duration,
    /// Load in phases, one after the other.
    pub phases: Vec<Phase>,
    /// A server that is dead for a while.
    pub silence: Option<Silence>,
    /// Width of the bins in which loads are counted.
    pub bin: Duration,
    /// Decides everything that is random.
    pub seed: u64,
}

/// A part of a run.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Arrivals of requests; their length is that of the phase.
    pub arrivals: ArrivalProcess,
    /// Requested documents: numbers below the scenario's documents; others are taken modulo their count.
    pub popularity: Popularity,
}

/// Processors with a bounded queue before them, first come, first served; work is exponential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationModel {
    /// Processors, 1 or more.
    pub processors: u8,
    /// Mean work of a request.
    pub work: Duration,
    /// Requests in the station at most; further ones fail.
    pub requests_max: usize,
    /// Added to each response, without using a processor.
    pub delay: Duration,
}

/// Distributors and redirectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Front {
    /// Distributors, 1 or more; requests go to them in turns.
    pub distributors: u16,
    /// Model of a distributor or a redirector.
    pub station: StationModel,
}

/// Rule that moves copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementRule {
    /// No copy is ever made.
    Never,
    /// Overloaded servers ask, with each report (Esser §4.2.4).
    Published(PublishedRule),
    /// Redirectors plan.
    Repaired,
}

/// A server neither reports nor answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Index of the server.
    pub server: ServerIndex,
    /// From when on.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
}

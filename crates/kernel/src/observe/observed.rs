//! Observations between two readings.

use std::net::SocketAddr;

use super::RateHistogram;
use flashweir_core::kernel_counts::QueueCounts;

/// Observations since the last reading (the first time: since the observer was loaded).
///
/// Only traffic of the endpoints that are watched. What the gate refused before never got this far, so its
/// counters and these differ by just that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// New connections by destination, busiest first; at most [`flashweir_core::limits::HOT_SPOT_ENTRIES`].
    pub destinations: Vec<DestinationCount>,
    /// Responses that sent data, by their rate at their last packet: of connections that began before
    /// [`super::Observer::plan_changed`] was called last, and of those that began since. A connection whose
    /// beginning was not seen counts as one from before. A response that has fallen silent stands where its
    /// last packet left it.
    pub rates: [RateHistogram; 2],
    /// Connection attempts (SYNs).
    pub offered: u64,
    /// Offered, without retransmissions of attempts that were seen already.
    pub unique_offered: u64,
    /// Responses that ended: the server sent its FIN, after data.
    pub completed: u64,
    /// The table of flows.
    pub flows: FlowCounts,
    /// Attempts that are counted above but missing in `destinations`, because the table of destinations
    /// ([`flashweir_core::limits::KERNEL_DESTINATIONS`]) was full.
    pub attempts_left_out: u64,
    /// The queue before the interface, through which the responses go; `None` when the observer stands before
    /// none, or the kernel reports nothing.
    pub queue: Option<QueueCounts>,
}

/// Attempts to connect to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestinationCount {
    /// Address and port.
    pub destination: SocketAddr,
    /// Connection attempts (SYNs).
    pub offered: u64,
    /// Offered, without retransmissions.
    pub unique_offered: u64,
}

/// Events in the table of flows. A flow stays there until its place is needed, also when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Flows in the table now, at most: what was put in, up to the size of the table.
    pub tracked: u64,
    /// Flows that began: connections that opened, and such as were noticed by their data only.
    pub begun: u64,
    /// Flows that lost their place to others, at least: what was put in beyond the size of the table. The
    /// kernel keeps no count; it sets up to 128 places for each processor aside, so there may be that many
    /// more.
    pub evicted: u64,
    /// Flows that spoke again after 64 seconds of silence and were measured from the start again.
    pub expired: u64,
    /// Flows that got no place, and so were not measured. The kernel gives one to nearly all: it may refuse
    /// when every processor wants one at the same moment.
    pub left_out: u64,
}

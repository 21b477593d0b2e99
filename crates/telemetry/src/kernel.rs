//! What the programs in the kernel count and are about, as user space last read it.
//!
//! Services are called as in the configuration, or by their role (`hot_spot_1`): never by an address.

/// Everything of one gate and, behind a router, its observer. Replaced whole by whoever reads the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelFigures {
    /// Each protected service.
    pub services: Vec<KernelService>,
    /// Frames that went on unjudged, by reason.
    pub passed: Vec<(&'static str, u64)>,
    /// Interfaces guarded at this moment: fewer than configured when one is gone.
    pub interfaces: usize,
    /// Counts plans put into force.
    pub generation: u64,
    /// Seconds from one sign of life to the next, as last seen.
    pub heartbeat_age_s: f64,
    /// What the observer follows; `None` without one.
    pub flows: Option<KernelFlows>,
    /// The queue of the interface that is observed, where that is known.
    pub queue: Option<KernelQueue>,
}

/// One service in the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelService {
    /// Its name, from a bounded list.
    pub name: String,
    /// The ceiling on new connections per second; `None` lets everything in.
    pub ceiling_per_s: Option<f64>,
    /// What was counted since the start.
    pub counts: KernelCounts,
    /// The same by rank, the most important first, preferred networks left out; empty where all are equal.
    pub tiers: Vec<KernelTier>,
}

/// New connections of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTier {
    /// Connection attempts that arrived (offered).
    pub offered: u64,
    /// Let in, for whatever reason (admitted).
    pub admitted: u64,
}

impl KernelTier {
    /// Those that were not let in.
    #[must_use]
    pub fn refused(self) -> u64 {
        self.offered.saturating_sub(self.admitted)
    }
}

/// New connections of one service: offered = admitted + dropped + reset + answered + purged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Connection attempts that arrived (offered).
    pub offered: u64,
    /// Those, without retransmissions of attempts that were refused (unique offered).
    pub unique_offered: u64,
    /// Let in, for whatever reason (admitted).
    pub admitted: u64,
    /// Refused without a word.
    pub dropped: u64,
    /// Refused with a reset.
    pub reset: u64,
    /// Refused with a response of the kernel's own.
    pub answered: u64,
    /// Refused because their source is purged.
    pub purged: u64,
    /// Let in because user space was silent (part of admitted).
    pub failed_open: u64,
    /// Let in in shadow, and refused otherwise (part of admitted).
    pub shadowed: u64,
    /// From preferred networks (part of offered).
    pub preferred_offered: u64,
    /// From preferred networks (part of admitted).
    pub preferred_admitted: u64,
    /// Responses sent on answered connections.
    pub responses: u64,
    /// Answered connections that were reset because they spoke no HTTP/1 or went on after their end.
    pub late_resets: u64,
    /// Other segments of answered connections that ended in the kernel.
    pub absorbed: u64,
    /// Replies for which the packet had no room.
    pub unsent: u64,
}

/// The observer's table of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFlows {
    /// Followed now.
    pub tracked: u64,
    /// Begun since the start.
    pub begun: u64,
    /// Forgotten to make room.
    pub evicted: u64,
    /// Forgotten because they had been silent.
    pub expired: u64,
    /// Never followed, because there was no place.
    pub left_out: u64,
    /// Connection attempts whose destination had no place in the table of destinations.
    pub attempts_left_out: u64,
}

/// What an interface's queue tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelQueue {
    /// Packets that went through.
    pub packets: u64,
    /// Packets it dropped.
    pub dropped: u64,
    /// Packets it marked (ECN).
    pub marked: u64,
    /// Bytes that wait in it.
    pub backlog_bytes: u64,
}

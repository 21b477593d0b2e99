//! Counts of the programs in the kernel: read by the crate that loads them, shown by the metrics.

use crate::limits::KERNEL_TIERS;

/// New connections of one rank since the gate was loaded, preferred networks left out: they have no rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Connection attempts that arrived.
    pub offered: u64,
    /// Admitted, for any reason.
    pub admitted: u64,
}

impl TierCounts {
    /// Neither let in nor still being counted.
    #[must_use]
    pub fn refused(self) -> u64 {
        self.offered.saturating_sub(self.admitted)
    }
}

/// New connections of one service since the gate was loaded: `offered` is the sum of admitted, dropped,
/// reset, answered and purged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounts {
    /// Connection attempts that arrived.
    pub offered: u64,
    /// Offered, without retransmissions of attempts that were refused, and without purged sources.
    pub unique_offered: u64,
    /// Admitted, for any reason.
    pub admitted: u64,
    /// Refused without a word.
    pub dropped: u64,
    /// Refused with a reset.
    pub reset: u64,
    /// Refused, to be answered once the request is there.
    pub answered: u64,
    /// Refused because their source is purged.
    pub purged: u64,
    /// Let in because user space was not heard of (part of `admitted`).
    pub failed_open: u64,
    /// Let in in shadow, and refused otherwise (part of `admitted`).
    pub shadowed: u64,
    /// From preferred networks (part of `offered`).
    pub preferred_offered: u64,
    /// From preferred networks (part of `admitted`).
    pub preferred_admitted: u64,
    /// Responses sent on answered connections; more than one if a request comes in pieces or again.
    pub responses: u64,
    /// Answered connections that spoke no HTTP/1, or went on after their end, and were reset.
    pub late_resets: u64,
    /// Other segments of answered connections that ended here.
    pub absorbed: u64,
    /// Replies for which the packet had no room: a SYN was dropped, a request reset.
    pub unsent: u64,
    /// By rank, for any number of tiers in the plan; with `preferred_offered` and `preferred_admitted` they
    /// add up to `offered` and `admitted`.
    pub tiers: [TierCounts; KERNEL_TIERS],
}

/// Packets and bytes at a link: offered = purged + refused + sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets of IP that arrived.
    pub offered_packets: u64,
    /// Their bytes, Ethernet headers included.
    pub offered_bytes: u64,
    /// Packets dropped because their flow is over its share.
    pub purged_packets: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// Packets dropped at the link's price, because their sender does not understand marks.
    pub refused_packets: u64,
    /// Their bytes.
    pub refused_bytes: u64,
    /// Packets marked at the link's price, and sent.
    pub marked_packets: u64,
    /// Frames that are not IP or cannot be read: they pass, and are in no other number.
    pub unread_frames: u64,
}

impl LinkCounts {
    /// Bytes that were handed to the queue: what the price counts.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.survived_bytes().saturating_sub(self.refused_bytes)
    }

    /// Bytes of packets that were not dropped because of their flow.
    #[must_use]
    pub fn survived_bytes(&self) -> u64 {
        self.offered_bytes.saturating_sub(self.purged_bytes)
    }

    /// These and those.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// These without those before.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            offered_packets: of(self.offered_packets, other.offered_packets),
            offered_bytes: of(self.offered_bytes, other.offered_bytes),
            purged_packets: of(self.purged_packets, other.purged_packets),
            purged_bytes: of(self.purged_bytes, other.purged_bytes),
            refused_packets: of(self.refused_packets, other.refused_packets),
            refused_bytes: of(self.refused_bytes, other.refused_bytes),
            marked_packets: of(self.marked_packets, other.marked_packets),
            unread_frames: of(self.unread_frames, other.unread_frames),
        }
    }
}

/// Counts of a queue of the kernel (a qdisc).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets that left it.
    pub packets: u64,
    /// Packets refused or thrown away.
    pub dropped: u64,
    /// Packets marked in place of being dropped (ECN, RFC 3168); 0 of queues that never do.
    pub marked: u64,
    /// Bytes that wait in it now.
    pub backlog_bytes: u64,
}

impl QueueCounts {
    /// Combines each pair of counters by `mine`.
    #[must_use]
    pub fn with(self, other: Self, mine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            packets: mine(self.packets, other.packets),
            dropped: mine(self.dropped, other.dropped),
            marked: mine(self.marked, other.marked),
            backlog_bytes: mine(self.backlog_bytes, other.backlog_bytes),
        }
    }
}

//! Counts of the gate, over all processors.

use super::abi;
use super::tiers::TIERS;

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
pub struct ServiceCounts {
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
    pub tiers: [TierCounts; TIERS],
}

impl ServiceCounts {
    pub(super) fn sum(of_processors: impl Iterator<Item = abi::Counts>) -> Self {
        let mut sums = [0u64; 15];
        let mut tiers = [TierCounts::default(); TIERS];
        for counts in of_processors {
            for (sum, count) in sums.iter_mut().zip(counts.of_service) {
                *sum += count;
            }
            for (tier, [offered, admitted]) in tiers.iter_mut().zip(counts.of_tiers) {
                tier.offered += offered;
                tier.admitted += admitted;
            }
        }
        let [offered, unique_offered, admitted, dropped, reset, answered, purged, rest @ ..] = sums;
        let [failed_open, shadowed, preferred_offered, preferred_admitted, rest @ ..] = rest;
        let [responses, late_resets, absorbed, unsent] = rest;
        Self {
            offered,
            unique_offered,
            admitted,
            dropped,
            reset,
            answered,
            purged,
            failed_open,
            shadowed,
            preferred_offered,
            preferred_admitted,
            responses,
            late_resets,
            absorbed,
            unsent,
            tiers,
        }
    }
}

/// Reason for which a frame went on unjudged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// Another protocol than TCP.
    NotTcp,
    /// A fragment without a TCP header.
    Fragment,
    /// Shorter than it says, or otherwise impossible.
    Malformed,
    /// Behind more IPv6 extension headers than are looked through.
    TooManyHeaders,
    /// A segment that opens no connection, to any receiver.
    NotNew,
    /// A new connection to an unprotected server.
    NotProtected,
}

impl Passed {
    /// All of them, in the kernel's order.
    pub const ALL: [Self; 7] = [
        Self::NotIp,
        Self::NotTcp,
        Self::Fragment,
        Self::Malformed,
        Self::TooManyHeaders,
        Self::NotNew,
        Self::NotProtected,
    ];

    /// The one spelling used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::NotTcp => "not_tcp",
            Self::Fragment => "fragment",
            Self::Malformed => "malformed",
            Self::TooManyHeaders => "too_many_headers",
            Self::NotNew => "not_new",
            Self::NotProtected => "not_protected",
        }
    }
}

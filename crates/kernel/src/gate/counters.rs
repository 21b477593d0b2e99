//! Counts of the gate, over all processors.

use super::abi;
use super::tiers::TIERS;
use flashweir_core::kernel_counts::{GateCounts, TierCounts};

/// Counts of a service over all processors.
pub(super) fn sum(of_processors: impl Iterator<Item = abi::Counts>) -> GateCounts {
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
    GateCounts {
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

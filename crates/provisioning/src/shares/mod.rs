//! One limit on requests in flight over many gateways: the limit is shared, not multiplied.
//!
//! Gateways report ten times a second what they were offered, what they admitted and what is in flight; one
//! of them, the leader, divides the limit and broadcasts the shares under an epoch. A shell elects the leader
//! and carries the messages (in process, a lease of Kubernetes, NATS).
//!
//! | part | what |
//! |---|---|
//! | [`water_filling`] | shares by demand |
//! | [`ShareLeader`] | who reports, what each may still be using, the next broadcast |
//! | [`ShareHolder`] | what a gateway may use now, with the leader or without |
//! | [`SlotGate`] | a share that is no whole number, kept as a mean |
//! | [`ServiceLeader`] | a limit that is learned: one planner for what all gateways measure |
//! | [`ServiceMember`] | a gateway's part of that planner's plan |
//!
//! **Never more than the limit in use.** A gateway uses its old share until a broadcast reaches it. So the
//! leader counts for each gateway the largest share that it may still be using: the one that its reports
//! acknowledge, and every one sent since. A share grows only by what the others have acknowledged to have
//! given up. Broadcasts may be lost, late or in any order: the sum over all gateways that report stays within
//! the limit.
//!
//! **Demand** of a gateway is what it would have in flight if it refused nothing: in flight · offered /
//! admitted, each smoothed.
//!
//! **Silence.** A gateway that is not heard for [`MEMBER_SILENCE`] has its share given to the others. It
//! keeps it for [`HOLD`] all the same, because to it the leader is silent, and then approaches limit / last
//! known number of gateways over [`DECAY`]. So one gateway that is cut off admits too much by its last share,
//! or by an equal one if that is larger; and all gateways together, without any leader, end at the limit.

mod holder;
mod leader;
mod member;
mod service_leader;
mod slot_gate;
mod water_filling;

pub use holder::{DECAY, HOLD, ShareHolder};
pub use leader::{LeaderError, MEMBER_SILENCE, SETTLING, ShareLeader};
pub use member::{JOIN_WAIT, MemberFigures, ServiceMember, ShareState};
pub use service_leader::{ROUND_MAX, ServiceBroadcast, ServiceLeader, ServiceReport};
pub use slot_gate::SlotGate;
pub use water_filling::water_filling;

use alloc::vec::Vec;

/// A number of a broadcast: the leader's term, then its place in the term. Larger is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    /// Term of the leader: larger than that of every leader before (a lease's transition count).
    pub term: u64,
    /// Number of the broadcast within the term, from 1.
    pub sequence: u64,
}

/// Report of one gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShareReport {
    /// Gateway that reports.
    pub gateway: u64,
    /// The newest broadcast that it has applied; the default before the first.
    pub applied: Epoch,
    /// The share that it uses.
    pub share: f64,
    /// Requests offered since its last report.
    pub offered: u64,
    /// Of them, admitted.
    pub admitted: u64,
    /// Requests in flight now.
    pub in_flight: u64,
}

/// Shares of all gateways.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareBroadcast {
    /// Its number.
    pub epoch: Epoch,
    /// The limit that is divided, for gateways that lose the leader.
    pub limit: f64,
    /// Number of gateways that share it, where not all of them get each other's share.
    pub gateways: u32,
    /// Gateways and their shares, by ascending gateway. One that is not in it was not heard, and is as good
    /// as without a leader.
    pub shares: Vec<(u64, f64)>,
}

impl ShareBroadcast {
    /// The part of the broadcast that one gateway needs. O(log gateways).
    #[must_use]
    pub fn for_one(&self, gateway: u64) -> Self {
        let shares = self.share_of(gateway).map(|share| (gateway, share));
        Self { shares: shares.into_iter().collect(), ..*self }
    }

    /// The share of one gateway. O(log gateways).
    #[must_use]
    pub fn share_of(&self, gateway: u64) -> Option<f64> {
        let place = self.shares.binary_search_by_key(&gateway, |&(it, _)| it).ok()?;
        Some(self.shares[place].1)
    }
}

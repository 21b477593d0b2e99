//! Tiers of a service's plan, and which connection has which rank.

use std::net::IpAddr;

use flashweir_core::{Rate, limits};

use super::GateError;
use super::abi;
use super::ceiling::Ceiling;

/// Tiers of a plan at most: ranks 0, the most important, to 7.
pub const TIERS: usize = limits::KERNEL_TIERS;

/// The ceilings of a service by rank, the most important first; none at all lets everything in.
///
/// Each tier brings a rate and a burst. All rates together are the service's ceiling: rank 0 may use all of
/// it, and each rank what the more important ones leave. So of more load than fits the least important is
/// refused first, and a rank only if it and the more important ones together exceed the ceiling for longer
/// than its own burst makes up for (`flashweir_admission::tiered_bucket` says and proves it exactly). A rank
/// beyond the last tier is judged as the last: with one tier all ranks are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    count: usize,
    ceilings: [Ceiling; TIERS],
}

const NOTHING: Ceiling = Ceiling { rate: Rate::ZERO, burst: 0 };

/// Connections of an important rank that may come at once beside its rate.
const RESERVE_MAX: u64 = 10;

impl Tiers {
    /// Without a ceiling.
    pub const OPEN: Self = Self { count: 0, ceilings: [NOTHING; TIERS] };

    /// One ceiling for all ranks.
    #[must_use]
    pub const fn one(ceiling: Ceiling) -> Self {
        let mut ceilings = [NOTHING; TIERS];
        ceilings[0] = ceiling;
        Self { count: 1, ceilings }
    }

    /// As many tiers as there are ranks, under one ceiling, where only the sum is known: the last brings all
    /// of it, each before it its own burst, so that the important are refused last. The bursts are small,
    /// because an important rank's is filled again at the whole rate, and not larger than a quarter of a
    /// second fills from empty.
    #[must_use]
    pub fn under(ceiling: Ceiling, ranks: usize) -> Self {
        let last = ranks.clamp(1, TIERS) - 1;
        let quarter = ceiling.rate.as_milli() / 4_000 / last.max(1) as u64;
        // Lossless: at most ten.
        let burst = quarter.clamp(1, RESERVE_MAX) as u32;
        let mut tiers = Self { count: last + 1, ..Self::OPEN };
        tiers.ceilings[..last].fill(Ceiling { rate: Rate::ZERO, burst });
        tiers.ceilings[last] = ceiling;
        tiers
    }

    /// A tier for each ceiling, rank 0 first.
    ///
    /// # Errors
    /// When there are more than [`TIERS`].
    pub fn new(of_ranks: &[Ceiling]) -> Result<Self, GateError> {
        let count = of_ranks.len();
        let mut tiers = Self { count, ..Self::OPEN };
        let room = tiers.ceilings.get_mut(..count);
        let room = room.ok_or(GateError::TooMany { what: "tiers", count, most: TIERS })?;
        room.copy_from_slice(of_ranks);
        Ok(tiers)
    }

    /// Returns whether everything is let in.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.count == 0
    }

    /// The ceilings, rank 0 first.
    #[must_use]
    pub fn ceilings(&self) -> &[Ceiling] {
        &self.ceilings[..self.count]
    }

    /// The ceiling on all ranks together.
    #[must_use]
    pub fn total_rate(&self) -> Option<Rate> {
        let milli = self.ceilings().iter().map(|ceiling| ceiling.rate.as_milli()).sum();
        (!self.is_open()).then(|| Rate::from_milli(milli))
    }

    /// As the kernel has them.
    pub(super) fn in_kernel(&self) -> [abi::Ceiling; TIERS] {
        let mut tiers = [abi::Ceiling::default(); TIERS];
        tiers.iter_mut().zip(self.ceilings()).for_each(|(tier, ceiling)| *tier = ceiling.in_kernel());
        tiers
    }

    pub(super) fn of_kernel(tiers: &[abi::Ceiling; TIERS]) -> Self {
        let limited = tiers.iter().take_while(|tier| tier.limited != 0);
        let mut read = Self::OPEN;
        for (ceiling, tier) in read.ceilings.iter_mut().zip(limited) {
            *ceiling = Ceiling { rate: Rate::from_milli(tier.rate_milli), burst: tier.burst };
            read.count += 1;
        }
        read
    }
}

impl Default for Tiers {
    fn default() -> Self {
        Self::OPEN
    }
}

/// One ceiling, or none.
impl From<Option<Ceiling>> for Tiers {
    fn from(ceiling: Option<Ceiling>) -> Self {
        ceiling.map_or(Self::OPEN, Self::one)
    }
}

/// Ranks of new connections: that of its network, else of its mark, else of its port, else the default. The
/// networks are the operator's own knowledge and come first; of several that contain a source, the longest
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// An address, how many of its first bits count, and the rank; each network once.
    pub networks: Vec<(IpAddr, u8, u8)>,
    /// Values of the field for differentiated services in the IP header (RFC 2474), 0 to 63, and the rank.
    /// Before the stack a packet has no other mark: `skb->mark` belongs to a socket buffer, which is not
    /// there yet. Any client can write this one, so it says something only where the network's edge sets it.
    pub marks: Vec<(u8, u8)>,
    /// Ports of protected services, and the rank.
    pub ports: Vec<(u16, u8)>,
    /// The rank of all others.
    pub default_rank: u8,
}

/// All are of the least important rank.
impl Default for Ranks {
    fn default() -> Self {
        Self { networks: Vec::new(), marks: Vec::new(), ports: Vec::new(), default_rank: TIERS as u8 - 1 }
    }
}

impl Ranks {
    /// Reports errors before the kernel gets any order.
    pub(super) fn check(&self) -> Result<(), GateError> {
        let networks = self.networks.iter().map(|&(_, _, rank)| rank);
        let others = self.marks.iter().map(|&(_, rank)| rank).chain(self.ports.iter().map(|&(_, rank)| rank));
        let ranks = networks.chain(others).chain([self.default_rank]);
        if let Some(rank) = ranks.into_iter().find(|rank| usize::from(*rank) >= TIERS) {
            return Err(GateError::Rank(rank));
        }
        match self.marks.iter().find(|(mark, _)| usize::from(*mark) >= abi::MARKS) {
            Some(&(mark, _)) => Err(GateError::Mark(mark)),
            None => Ok(()),
        }
    }

    /// The rank of a port by itself.
    pub(super) fn of_port(&self, port: u16) -> Option<u8> {
        self.ports.iter().find(|(of, _)| *of == port).map(|&(_, rank)| rank)
    }

    /// Ranks by mark as the kernel has them.
    pub(super) fn by_mark(&self) -> [u8; abi::MARKS] {
        let mut ranks = [0; abi::MARKS];
        self.marks.iter().for_each(|&(mark, rank)| ranks[usize::from(mark)] = rank + 1);
        ranks
    }
}
